/*
 * Tells from the headers of a picture what it costs to make it gray, before anybody decodes it. A
 * file of 65 KB may have twenty million pixels.
 *
 *     struct picture_cost cost = picture_cost_of(bytes, &options);
 *     cost.pixels     of a frame; 0 when the headers do not tell, and for GIF: no GIF has too many,
 *                     since its colour tables alone can make it gray
 *     cost.work       the work, as a number of PNG pixels that would take as long (about 20 ns each
 *                     on a small server); at least the number of bytes
 *
 * `bytes` may be the first part of a picture. The part that is missing is not counted, nor what is
 * behind the first 16 MB. The function takes some milliseconds at most, whatever the bytes are: a
 * picture with 262144 chunks, markers or blocks there has UINT64_MAX pixels. The function believes what the headers say; the converters decode no more than the headers say. Threads: pure.
 */
#ifndef RETORT_GRAY_PICTURE_COST_H
#define RETORT_GRAY_PICTURE_COST_H

#include "gray/picture.h"

struct picture_cost {
    uint64_t pixels, work;
};

struct picture_cost picture_cost_of(struct slice bytes, const struct picture_options *options);

#endif
