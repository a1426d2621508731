/*
 * Takes the metadata out of a PNG: texts, the time, and all EXIF data but the orientation. The
 * other chunks stay as they are, byte for byte.
 *
 *     if (png_info_read(&info, slice) && info.is_whole)
 *         length = png_strip(bytes, length);            in place; never longer
 *
 * The function checks bounds but no checksums. Threads: pure.
 */
#ifndef RETORT_GRAY_PNG_STRIP_H
#define RETORT_GRAY_PNG_STRIP_H

#include <stddef.h>

size_t png_strip(unsigned char *bytes, size_t length);

#endif
