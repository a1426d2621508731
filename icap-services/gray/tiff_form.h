/*
 * Tells whether netpbm's tifftopnm reads a TIFF of this form right. For some forms tifftopnm fails.
 * For others it gives a wrong picture: those turned on their side, CMYK of 16 bits, those with
 * transparency, and those whose samples are no integers.
 *
 *     const char *why = tiff_refusal(bytes);       NULL: it reads the form; else why not
 *
 * These forms are known to be read right: bilevel and gray of 1 to 16 bits, RGB of 8 and 16 bits,
 * palettes, and CMYK of 8 bits, each of one page, and upright, turned by half or mirrored.
 * Threads: pure.
 */
#ifndef RETORT_GRAY_TIFF_FORM_H
#define RETORT_GRAY_TIFF_FORM_H

#include "base/slice.h"

const char *tiff_refusal(struct slice bytes);

#endif
