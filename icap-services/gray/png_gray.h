/*
 * A PNG made gray, by libpng. Where it has a palette, that alone becomes gray and every other byte
 * stays, animations too. RGB and RGBA become gray and gray with alpha of the same depth, in linear
 * light where the file tells its gamma; interlacing, transparency, gamma, resolution and texts
 * stay. Animated RGB is left alone.
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
