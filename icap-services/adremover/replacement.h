/*
 * Chooses the neutral resource that is answered in place of an advertisement.
 *
 *     const struct neutral *neutral = replacement_of(request.types, answer.resource);
 *
 * If the lists name a resource (redirect=) and http/neutral.h has it, the answer is that one.
 * Otherwise the answer is an empty resource of the type that the page asked for: an image, a
 * script, a style sheet, a page or a film. If the type is not known, the answer is an empty text,
 * which does no harm in any place. Threads: pure.
 */
#ifndef RETORT_ADREMOVER_REPLACEMENT_H
#define RETORT_ADREMOVER_REPLACEMENT_H

#include "base/slice.h"
#include "http/neutral.h"

const struct neutral *replacement_of(unsigned types, struct slice resource);
/* Is the resource an image? */
bool replacement_is_picture(const struct neutral *neutral);

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

enum { OWN_PICTURE_MAX = 1 << 20 };

struct own_picture {
    struct slice type, body; /* the body is owned */
};

bool own_picture_load(struct own_picture *picture, const char *path, char *error,
                      size_t error_size);
void own_picture_release(struct own_picture *picture);

#endif
