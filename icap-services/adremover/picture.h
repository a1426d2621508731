/*
 * The operator's own picture, to stand in place of advertisements.
 *
 *     struct picture picture;
 *     if (!picture_load(&picture, "/etc/retort/house.png", error, sizeof error)) ...
 *     picture.type "image/png", picture.body
 *     picture_release(&picture);
 *
 * An empty path is no picture: true, with an empty body. The type is told by the first bytes: GIF,
 * PNG, JPEG, WebP, SVG. Errors: false and a sentence. Threads: read-only once loaded.
 */
#ifndef RETORT_ADREMOVER_PICTURE_H
#define RETORT_ADREMOVER_PICTURE_H

#include "base/slice.h"

enum { PICTURE_MAX = 1 << 20 };

struct picture {
    struct slice type, body; /* the body is owned */
};

bool picture_load(struct picture *picture, const char *path, char *error, size_t error_size);
void picture_release(struct picture *picture);

#endif
