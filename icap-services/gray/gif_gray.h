/*
 * A GIF made gray by its colour tables alone: frames, delays, transparency, interlacing and every
 * compressed byte stay what they are. One that is too wide is scaled down besides (gif_scale.h),
 * unless it can't be, or would be larger then: better gray and too wide than neither.
 *
 *     switch (gif_gray(bytes, length, &options, &output)) {       see picture.h
 *
 * Bytes behind the trailer are left alone. Threads: pure.
 */
#ifndef RETORT_GRAY_GIF_GRAY_H
#define RETORT_GRAY_GIF_GRAY_H

#include "gray/picture.h"

enum picture_result gif_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output);

#endif
