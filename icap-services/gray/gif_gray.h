/*
 * A GIF made gray by its colour tables alone: frames, delays, transparency, interlacing and every
 * compressed byte stay what they are.
 *
 *     switch (gif_gray(bytes, length)) {           changes the bytes in place
 *     case GIF_GRAY_DONE:      ...
 *     case GIF_GRAY_UNCHANGED: all tables were gray before, or there are none
 *     case GIF_GRAY_BAD:       no whole GIF; the bytes may be half changed, throw them away
 *     }
 *
 * Bytes behind the trailer are left alone. Threads: pure.
 */
#ifndef RETORT_GRAY_GIF_GRAY_H
#define RETORT_GRAY_GIF_GRAY_H

#include "base/slice.h"

enum gif_gray_result { GIF_GRAY_DONE, GIF_GRAY_UNCHANGED, GIF_GRAY_BAD };

enum gif_gray_result gif_gray(unsigned char *bytes, size_t length);

#endif
