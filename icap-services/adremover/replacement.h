/*
 * What stands in for an advertisement: the neutral resource of its kind.
 *
 *     const struct neutral *neutral = replacement_of(request.types, answer.resource);
 *
 * The lists' word counts (redirect=), where it names something there is; "none" is no such thing.
 * Else it is what the page asked for: an image, a script, a style sheet, a page, a film; and where
 * that is not known an empty text, which does no harm in any place.
 * Threads: pure.
 */
#ifndef RETORT_ADREMOVER_REPLACEMENT_H
#define RETORT_ADREMOVER_REPLACEMENT_H

#include "http/neutral.h"

const struct neutral *replacement_of(unsigned types, struct slice resource);
/* It stands where a picture was to be. */
bool replacement_is_picture(const struct neutral *neutral);

#endif
