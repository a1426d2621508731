/*
 * Makes a GIF gray by changing its colour tables alone: frames, delays, transparency, interlacing
 * and every compressed byte stay what they are. A GIF that is too wide is also scaled down
 * (gif_scale.h). If that fails, or would make the file larger, the GIF becomes gray and stays wide.
 *
 *     switch (gif_gray(bytes, length, &options, &output)) {       see picture.h
 *
 * Bytes behind the trailer stay as they are. Threads: pure.
 */
#ifndef RETORT_GRAY_GIF_GRAY_H
#define RETORT_GRAY_GIF_GRAY_H

#include "base/slice.h"
#include "gray/picture.h"

enum picture_result gif_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output);

enum { GIF_HEADER = 13 };

#endif
