/*
 * Makes a BMP gray.
 *
 *     switch (bmp_gray(bytes, length, &options, &output)) ...      as in picture.h
 *
 * Where there is a palette, that alone changes, so run-length coding stays. Pixels of 16, 24 and 32
 * bits, in whatever masks, become one byte each, with a palette of grays; in those that are
 * transparent, and in those so small that a palette would make them larger, each pixel is made gray
 * in its place, with its alpha. Rows from below and from above stay so.
 * Read are the headers of OS/2 (12, 16 and 64 bytes) and of Windows (40 to 124). Refused are JPEG,
 * PNG and facsimile inside, masks that are no run of bits, and what is cut. Threads: pure.
 */
#ifndef RETORT_GRAY_BMP_GRAY_H
#define RETORT_GRAY_BMP_GRAY_H

#include "gray/picture.h"

enum picture_result bmp_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output);

#endif
