/*
 * What a converter must know about a PNG before it begins: is it gray already, does it have
 * transparency, is it animated, how large is it?
 *
 *     struct png_info info;
 *     if (!png_info_read(&info, bytes)) -> no PNG, or cut
 *
 * The function walks over the chunks. It checks bounds but no checksums. It succeeds as soon as the
 * pixels begin, even if the file is cut behind that; is_whole tells whether it is. Threads: pure.
 */
#ifndef RETORT_GRAY_PNG_CHUNKS_H
#define RETORT_GRAY_PNG_CHUNKS_H

#include "base/slice.h"

#include <stddef.h>

struct png_info {
    uint64_t pixels;
    uint32_t width, height;
    uint32_t gamma;          /* as in the file, in hundred-thousandths; 0: not told */
    size_t palette_at;       /* where its entries stand in the file */
    uint32_t palette_length; /* bytes; 0: none */
    bool is_gray;            /* by its colour type, or because its whole palette is gray */
    bool has_alpha;
    bool is_animated;
    bool is_interlaced;
    bool is_turned; /* shown on its side, by EXIF data before the pixels */
    bool is_whole;  /* its end is there */
};

bool png_info_read(struct png_info *info, struct slice bytes);

/*
 * Takes the metadata out of a PNG: texts, the time, and all EXIF data but the orientation. The
 * other chunks stay as they are, byte for byte.
 *
 *     if (png_info_read(&info, slice) && info.is_whole)
 *         length = png_strip(bytes, length);            in place; never longer
 *
 * The function checks bounds but no checksums. Threads: pure.
 */

size_t png_strip(unsigned char *bytes, size_t length);

#endif
