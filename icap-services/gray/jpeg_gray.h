/*
 * A JPEG made gray, by libjpeg. Where the picture is YCbCr, as nearly all are, the chroma
 * components are dropped from the coefficients and the luminance is not encoded again, so nothing
 * is lost. RGB, CMYK and YCCK pictures, and those that are wanted smaller or in another quality,
 * are decoded and encoded anew, at JPEG_GRAY_QUALITY unless another is asked for. A progressive
 * picture stays progressive; EXIF, XMP and comments stay, or of them the orientation alone; a
 * colour profile that is not for gray goes. Pictures of 12 bits are refused.
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
