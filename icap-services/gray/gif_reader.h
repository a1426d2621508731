/*
 * Reads the blocks of a GIF (87a or 89a) one after the other, to find its colour tables.
 *
 *     struct gif_reader reader;
 *     struct gif_block block;
 *     if (!gif_reader_open(&reader, bytes, length)) ...     no GIF
 *     while (gif_reader_next(&reader, &block))
 *         block.table: the colour table of a frame
 *     reader.whole: the reader has come to the trailer
 *
 * A table has `count` entries of red, green and blue. `entries` is NULL when there is no table. The
 * reader does not look at bytes behind the trailer. Threads: values; the bytes stay the caller's.
 */
#ifndef RETORT_GRAY_GIF_READER_H
#define RETORT_GRAY_GIF_READER_H

#include "base/slice.h"

enum { GIF_HEADER = 13 };

struct gif_table {
    const unsigned char *entries;
    unsigned count;
};

/* A frame or an extension. */
struct gif_block {
    struct gif_table table; /* the frame's own */
};

struct gif_reader {
    const unsigned char *at, *end;
    struct gif_table table; /* of all frames that have no table of their own */
    bool whole;
};

bool gif_reader_open(struct gif_reader *reader, const unsigned char *bytes, size_t length);
/* False at the trailer, and when the bytes that follow are no block of a GIF. */
bool gif_reader_next(struct gif_reader *reader, struct gif_block *block);

#endif
