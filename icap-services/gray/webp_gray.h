/*
 * Makes a WebP gray, with libwebp. The luminance of a lossy picture is encoded again, in the
 * quality that the options name, or in WEBP_GRAY_QUALITY. A lossless picture stays lossless, unless
 * the options name a quality. Transparency and EXIF stay; a colour profile goes. An animation stays
 * as it is.
 *
 *     webp_gray(bytes, length, &options, &output)          picture.h
 *
 * Threads: none shared.
 */
#ifndef RETORT_GRAY_WEBP_GRAY_H
#define RETORT_GRAY_WEBP_GRAY_H

#include "gray/picture.h"

enum { WEBP_GRAY_QUALITY = 80 };

enum picture_result webp_gray(const unsigned char *bytes, size_t length,
                              const struct picture_options *options, struct picture_output *output);

#endif
