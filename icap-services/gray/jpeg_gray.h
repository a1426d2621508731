/*
 * A JPEG made gray, by libjpeg. Where the picture is YCbCr, as nearly all are, the chroma
 * components are dropped from the coefficients and the luminance is not encoded again, so nothing
 * is lost. RGB, CMYK and YCCK pictures are decoded and encoded anew at JPEG_GRAY_QUALITY. A
 * progressive picture stays progressive; EXIF, XMP and comments stay (the orientation is there); a
 * colour profile that is not for gray goes.
 *
 *     struct jpeg_gray_output output;
 *     switch (jpeg_gray(bytes, length, max_pixels, &output)) {
 *     case JPEG_GRAY_DONE:      output.bytes, output.length; free(output.bytes)
 *     case JPEG_GRAY_UNCHANGED: it is gray
 *     case JPEG_GRAY_BAD:       output.error says why
 *     }
 *
 * Threads: none shared.
 */
#ifndef RETORT_GRAY_JPEG_GRAY_H
#define RETORT_GRAY_JPEG_GRAY_H

#include "base/slice.h"

enum { JPEG_GRAY_QUALITY = 90, JPEG_GRAY_SCANS_MAX = 200 };

enum jpeg_gray_result { JPEG_GRAY_DONE, JPEG_GRAY_UNCHANGED, JPEG_GRAY_BAD };

struct jpeg_gray_output {
    unsigned char *bytes; /* malloc'ed */
    size_t length;
    char error[200];
};

enum jpeg_gray_result jpeg_gray(const unsigned char *bytes, size_t length, uint64_t max_pixels,
                                struct jpeg_gray_output *output);

#endif
