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

#include "http/neutral.h"

const struct neutral *replacement_of(unsigned types, struct slice resource);
/* Is the resource an image? */
bool replacement_is_picture(const struct neutral *neutral);

#endif
