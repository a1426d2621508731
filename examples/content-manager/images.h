/*
 * Finds the images of a page while it passes: the values of src in img elements.
 *
 *     struct images images = {0};
 *     images_scan(&images, piece, on_image, arg);      each piece of the body, in any pieces
 *
 * Tags of more than IMAGES_TAG bytes, comments and scripts are passed over. It is no parser of HTML: a
 * page that wants to hide its images from it can.
 *
 * Threads: values. Memory: none besides the struct.
 */
#ifndef MANAGER_IMAGES_H
#define MANAGER_IMAGES_H

#include "base/slice.h"

enum { IMAGES_TAG = 4096 };

enum images_place { IMAGES_TEXT, IMAGES_IN_TAG, IMAGES_IN_COMMENT, IMAGES_IN_SCRIPT };

struct images {
    enum images_place place;
    size_t length; /* of the tag so far; more than IMAGES_TAG: it is too long */
    char tag[IMAGES_TAG];
    char last[8]; /* bytes, the newest last, where a comment or a script may end */
};

/* `see` gets what stands in src, as it stands there. */
void images_scan(struct images *images, struct slice piece,
                 void (*see)(void *arg, struct slice source), void *arg);

/* The URL of an image of a page, in `out`; 0: it has none, or is none that a cache could fetch. */
size_t images_resolve(struct slice page, struct slice source, char *out, size_t capacity);
/* Have both URLs the same scheme, host and port? */
bool images_same_site(struct slice one, struct slice other);

#endif
