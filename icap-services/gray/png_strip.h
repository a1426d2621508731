/*
 * Takes the chunks out of a PNG that only speak about it: texts, the time, and of its EXIF data all
 * but the orientation. The picture stays as it is, byte for byte.
 *
 *     if (png_info_read(&info, slice) && info.is_whole)
 *         length = png_strip(bytes, length);            in place; never longer
 *
 * Bounds are checked, checksums are not. Threads: pure.
 */
#ifndef RETORT_GRAY_PNG_STRIP_H
#define RETORT_GRAY_PNG_STRIP_H

#include <stddef.h>

size_t png_strip(unsigned char *bytes, size_t length);

#endif
