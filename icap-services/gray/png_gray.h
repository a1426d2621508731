/*
 * Makes a PNG gray, with libpng. In a picture with a palette only the palette becomes gray, and
 * every other byte stays, also in an animation. RGB becomes gray, and RGBA becomes gray with alpha,
 * in the same depth; in linear light if the file tells its gamma. Interlacing, transparency, gamma,
 * resolution and texts stay. An animation in RGB or RGBA stays as it is.
 *
 *     png_gray(bytes, length, &options, &output)          picture.h
 *
 * Threads: none shared.
 */
#ifndef RETORT_GRAY_PNG_GRAY_H
#define RETORT_GRAY_PNG_GRAY_H

#include "gray/picture.h"

enum picture_result png_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output);

#endif
