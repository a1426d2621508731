/*
 * Makes an animated PNG gray, frame by frame, with png_gray. It is for pictures whose pixels have
 * colours of their own. A picture with a palette needs only another palette, which png_gray gives
 * it.
 *
 *     switch (apng_gray(bytes, length, &options, &output)) ...     as in picture.h
 *
 * The place, the time and the way of drawing of each frame stay. So do gamma, resolution, EXIF,
 * texts, and the picture for viewers that know no animations. The frames are not scaled. The
 * picture is refused when all its frames together have more pixels than are allowed; each frame
 * counts as 1024 pixels more than it has.
 *
 * PNG, third edition, 11.3.6: acTL, fcTL and fdAT. Threads: pure.
 */
#ifndef RETORT_GRAY_APNG_GRAY_H
#define RETORT_GRAY_APNG_GRAY_H

#include "gray/picture.h"

enum picture_result apng_gray(const unsigned char *bytes, size_t length,
                              const struct picture_options *options, struct picture_output *output);

#endif
