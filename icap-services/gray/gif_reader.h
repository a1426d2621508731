/*
 * The blocks of a GIF (89a), one after the other: where tables, frames and extensions stand.
 *
 *     struct gif_reader reader;
 *     struct gif_block block;
 *     if (!gif_reader_open(&reader, bytes, length)) ...     no GIF
 *     while (gif_reader_next(&reader, &block))
 *         block.kind is GIF_FRAME or GIF_EXTENSION
 *     reader.whole: it has come to the trailer
 *
 * Tables have `count` entries of red, green and blue, or are NULL. Pixels are read with gray/lzw.h
 * from block.data. Bytes behind the trailer are not looked at. Threads: values; the bytes stay the
 * caller's.
 */
#ifndef RETORT_GRAY_GIF_READER_H
#define RETORT_GRAY_GIF_READER_H

#include "base/slice.h"

enum { GIF_HEADER = 13, GIF_EXTENSION_CONTROL = 0xf9, GIF_EXTENSION_TEXT = 0x01 };

struct gif_table {
    const unsigned char *entries;
    unsigned count;
};

struct gif_rectangle {
    unsigned left, top, width, height;
};

enum gif_kind { GIF_FRAME, GIF_EXTENSION };

struct gif_block {
    enum gif_kind kind;
    unsigned label;     /* of an extension */
    struct slice whole; /* the extension, its introducer included */
    struct gif_rectangle place;
    bool interlaced;
    struct gif_table table; /* the frame's own */
    unsigned code_size;
    struct slice data; /* sub-blocks, the empty one at their end included */
};

struct gif_reader {
    const unsigned char *at, *end;
    unsigned width, height, background, aspect;
    struct gif_table table; /* of all frames that have none */
    bool whole;
};

bool gif_reader_open(struct gif_reader *reader, const unsigned char *bytes, size_t length);
/* False at the trailer, and where the bytes are no GIF any more. */
bool gif_reader_next(struct gif_reader *reader, struct gif_block *block);

#endif
