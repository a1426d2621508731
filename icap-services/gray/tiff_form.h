/*
 * Is a TIFF of a form that netpbm's tifftopnm reads right? It has no picture for some forms, and
 * another one for others: turned on their side, CMYK of 16 bits, with transparency, of numbers that
 * are no integers.
 *
 *     const char *why = tiff_refusal(bytes);       NULL: it is; else why not
 *
 * Known to be right: bilevel and gray of 1 to 16 bits, RGB of 8 and 16 bits, palettes, CMYK of 8
 * bits, upright, turned by half or mirrored, of one page. Threads: pure.
 */
#ifndef RETORT_GRAY_TIFF_FORM_H
#define RETORT_GRAY_TIFF_FORM_H

#include "base/slice.h"

const char *tiff_refusal(struct slice bytes);

#endif
