/*
 * Finds the images of a page while it passes: src and srcset of img elements, srcset of source
 * elements, and the base element, by which a page says what its URLs begin with.
 *
 *     const struct images_reader reader = {.see_image = on_image, .see_base = on_base, .arg = page};
 *     struct images images = {0};
 *     images_scan(&images, piece, &reader);      each piece of the body, in any pieces
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
    char quote; /* that began the value; 0: none has begun */
    bool behind_equals;
    bool has_base;
    char last[8]; /* bytes, the newest last, where a comment or a script may end */
};

/* What is found: the text, as it stands there. */
struct images_reader {
    void (*see_image)(void *arg, struct slice source);
    void (*see_base)(void *arg, struct slice href); /* the first one alone counts */
    void *arg;
    bool all_sizes; /* all images of a srcset; else the first one of each */
};

void images_scan(struct images *images, struct slice piece, const struct images_reader *reader);

/* The canonical URL of what `source` names, in a page whose URLs begin with `base`; 0: it has none, or is
 * none that a cache could fetch. */
size_t images_resolve(struct slice base, struct slice source, char *out, size_t capacity);
/* Have both URLs the same scheme, host and port? */
bool images_same_site(struct slice one, struct slice other);

#endif
