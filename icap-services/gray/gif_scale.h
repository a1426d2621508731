/*
 * A GIF made smaller and gray. Frames stay frames, with their delays, ways of going away and the
 * rectangles that they cover, and every one shows what it showed, scaled down: what shows through a
 * frame, and what an earlier one left, is taken into account where a new pixel covers both. A pixel
 * of which less than half was drawn is transparent.
 *
 *     switch (gif_scale(bytes, length, &options, &output)) {       see picture.h
 *
 * BAD where it is damaged, would be larger, or has more than options.max_pixels, of all frames
 * together. Extensions, which say how often it is repeated, stay, but for texts to be drawn, which
 * no viewer draws; interlacing goes. Threads: pure.
 */
#ifndef RETORT_GRAY_GIF_SCALE_H
#define RETORT_GRAY_GIF_SCALE_H

#include "gray/picture.h"

enum picture_result gif_scale(const unsigned char *bytes, size_t length,
                              const struct picture_options *options, struct picture_output *output);

#endif
