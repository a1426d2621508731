/*
 * A WebP made gray, by libwebp. A lossy one is encoded anew, of its luminance, at the quality that
 * is asked for or WEBP_GRAY_QUALITY; a lossless one stays lossless. Transparency and EXIF stay, a
 * colour profile goes. Animations are left alone.
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
