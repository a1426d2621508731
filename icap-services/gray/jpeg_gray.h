/*
 * Makes a JPEG gray, with libjpeg. Nearly all pictures are YCbCr. From these the chroma components
 * are dropped, and the luminance is not encoded again, so that nothing is lost. Other pictures
 * (RGB, CMYK and YCCK) are decoded and encoded again; so are pictures that are wanted smaller or in
 * another quality. The quality is JPEG_GRAY_QUALITY unless the options name one. A progressive
 * picture stays progressive. EXIF, XMP and comments stay; with options.strip only the orientation
 * stays. A colour profile that is not for gray goes. Pictures of 12 bits are refused.
 *
 *     jpeg_gray(bytes, length, &options, &output)          picture.h
 *
 * Threads: none shared.
 */
#ifndef RETORT_GRAY_JPEG_GRAY_H
#define RETORT_GRAY_JPEG_GRAY_H

#include "gray/picture.h"

enum { JPEG_GRAY_QUALITY = 90, JPEG_GRAY_SCANS_MAX = 200 };

enum picture_result jpeg_gray(const unsigned char *bytes, size_t length,
                              const struct picture_options *options, struct picture_output *output);

#endif
