/*
 * What must be known of a PNG before it is converted: is it gray already, does it carry
 * transparency, is it animated, how large is it.
 *
 *     struct png_info info;
 *     if (!png_info_read(&info, bytes)) -> no PNG, or cut
 *
 * Walks the chunks; checks bounds, not checksums. A picture whose pixels begin counts as known,
 * even if it is cut there: is_whole tells. Threads: pure.
 */
#ifndef RETORT_GRAY_PNG_INFO_H
#define RETORT_GRAY_PNG_INFO_H

#include "base/slice.h"

struct png_info {
    uint64_t pixels;
    uint32_t width, height;
    uint32_t gamma;          /* as in the file, in hundred-thousandths; 0: not told */
    size_t palette_at;       /* where its entries stand in the file */
    uint32_t palette_length; /* bytes; 0: none */
    bool is_gray;            /* by colour type, or all of its palette is */
    bool has_alpha;
    bool is_animated;
    bool is_interlaced;
    bool is_turned; /* shown on its side, by EXIF data before the pixels */
    bool is_whole;  /* its end is there */
};

bool png_info_read(struct png_info *info, struct slice bytes);

#endif
