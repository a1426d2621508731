/*
 * The operator's own picture, which replaces advertisements. The service loads it when it starts.
 *
 *     struct own_picture picture;
 *     if (!own_picture_load(&picture, "/etc/retort/house.png", error, sizeof error)) ...
 *     picture.type "image/png", picture.body
 *     own_picture_release(&picture);
 *
 * An empty path means that there is no picture: the answer is true, and the body is empty. The
 * first bytes of the file tell its type: GIF, PNG, JPEG, WebP or SVG. Errors: false, and a sentence
 * in `error`. Threads: read-only once loaded.
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
