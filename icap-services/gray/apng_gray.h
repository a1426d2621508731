/*
 * Makes an animated PNG gray whose pixels have colours: each of its frames, by png_gray. Those with
 * a palette need no more than another palette.
 *
 *     switch (apng_gray(bytes, length, &options, &output)) ...     as in picture.h
 *
 * Where frames go, when, and how they are drawn stays; so do the picture for those who know no
 * animations, gamma, resolution, EXIF and texts. They are not scaled. Refused where all frames
 * together have more pixels than are allowed, each counted as 1024 more than it has.
 *
 * PNG, third edition, 11.3.6: acTL, fcTL and fdAT. Threads: pure.
 */
#ifndef RETORT_GRAY_APNG_GRAY_H
#define RETORT_GRAY_APNG_GRAY_H

#include "gray/picture.h"

enum picture_result apng_gray(const unsigned char *bytes, size_t length,
                              const struct picture_options *options, struct picture_output *output);

#endif
