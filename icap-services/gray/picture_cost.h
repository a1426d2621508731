/*
 * What a picture will cost to make gray, told by its headers before anybody decodes it: a file of
 * 65 KB may have twenty million pixels.
 *
 *     struct picture_cost cost = picture_cost_of(bytes, &options);
 *     cost.pixels     of a frame; 0 where the headers do not tell, and for GIF, where no number of
 *                     them is too large, since what can't be decoded is made gray by its tables
 *     cost.work       about so many pixels of a PNG would take as long: 20 ns each on a small
 *                     server; at least the number of bytes
 *
 * `bytes` may be the first part of a picture: then what is not there is not counted. What the
 * headers say is taken as it is; converters keep to it. Threads: pure.
 */
#ifndef RETORT_GRAY_PICTURE_COST_H
#define RETORT_GRAY_PICTURE_COST_H

#include "gray/picture.h"

struct picture_cost {
    uint64_t pixels, work;
};

struct picture_cost picture_cost_of(struct slice bytes, const struct picture_options *options);

#endif
