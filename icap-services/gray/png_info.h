/*
 * What must be known of a PNG before it is converted: is it gray already, does it carry
 * transparency, is it animated, how large is it.
 *
 *     struct png_info info;
 *     if (!png_info_read(&info, bytes)) -> no PNG, or cut
 *
 * Walks the chunks up to the first IDAT; checks bounds, not checksums. Threads: pure.
 */
#ifndef RETORT_GRAY_PNG_INFO_H
#define RETORT_GRAY_PNG_INFO_H

#include "base/slice.h"

struct png_info {
    uint64_t pixels;
    bool is_gray; /* by colour type, or all of its palette is */
    bool has_alpha;
    bool is_animated;
    bool is_interlaced;
};

bool png_info_read(struct png_info *info, struct slice bytes);

#endif
