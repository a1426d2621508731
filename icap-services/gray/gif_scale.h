/*
 * Makes a GIF smaller and gray. Each frame keeps its delay, its disposal and the rectangle that it
 * covers, scaled down. After each frame a viewer shows the same as before, scaled down. For this a
 * new pixel is made of all old pixels that it covers, also of those that an earlier frame has
 * drawn. A new pixel is transparent when less than half of its area was drawn.
 *
 *     switch (gif_scale(bytes, length, &options, &output)) {       see picture.h
 *
 * The result is PICTURE_BAD when the GIF is damaged, when it would become larger, and when all
 * frames together have more than options.max_pixels. Extensions stay, such as the one that says how
 * often the animation is repeated. Extensions with texts to be drawn go, since no viewer draws
 * them. Interlacing goes too. Threads: pure.
 */
#ifndef RETORT_GRAY_GIF_SCALE_H
#define RETORT_GRAY_GIF_SCALE_H

#include "gray/picture.h"

enum picture_result gif_scale(const unsigned char *bytes, size_t length,
                              const struct picture_options *options, struct picture_output *output);

#endif
