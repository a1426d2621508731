/*
 * The operator's own picture, to stand in place of advertisements.
 *
 *     struct own_picture picture;
 *     if (!own_picture_load(&picture, "/etc/retort/house.png", error, sizeof error)) ...
 *     picture.type "image/png", picture.body
 *     own_picture_release(&picture);
 *
 * An empty path is no picture: true, with an empty body. The type is told by the first bytes: GIF,
 * PNG, JPEG, WebP, SVG. Errors: false and a sentence. Threads: read-only once loaded.
 */
#ifndef RETORT_ADREMOVER_OWN_PICTURE_H
#define RETORT_ADREMOVER_OWN_PICTURE_H

#include "base/slice.h"

enum { OWN_PICTURE_MAX = 1 << 20 };

struct own_picture {
    struct slice type, body; /* the body is owned */
};

bool own_picture_load(struct own_picture *picture, const char *path, char *error,
                      size_t error_size);
void own_picture_release(struct own_picture *picture);

#endif
