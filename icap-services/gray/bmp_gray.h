/*
 * Makes a BMP gray.
 *
 *     switch (bmp_gray(bytes, length, &options, &output)) ...      as in picture.h
 *
 * In a picture with a palette only the palette changes, so run-length coding stays. In other
 * pictures (16, 24 or 32 bits a pixel, with any masks) each pixel becomes one byte, with a palette
 * of grays. There are two exceptions: pictures with transparency, and pictures so small that a
 * palette would make them larger. In these each pixel becomes gray in its place and keeps its
 * alpha. The order of rows, from the bottom or from the top, stays. Headers of OS/2 (12, 16 and 64
 * bytes) and of Windows (40 to 124 bytes) are understood. A file is refused when it holds JPEG, PNG
 * or facsimile data, when the bits of a mask are not side by side, and when it is cut. Threads:
 * pure.
 */
#ifndef RETORT_GRAY_BMP_GRAY_H
#define RETORT_GRAY_BMP_GRAY_H

#include "gray/picture.h"

enum picture_result bmp_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output);

#endif
