#include "gray/gif_gray.h"

#include "gray/gif_scale.h"

#include <stdlib.h>

/*
 * Reads the blocks of a GIF (87a or 89a) one after the other, to find its colour tables.
 *
 * A table has `count` entries of red, green and blue. `entries` is NULL when there is no table. The
 * reader does not look at bytes behind the trailer.
 */

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

enum {
    MAGIC = 6,
    FLAGS = 4, /* behind the magic */
    FRAME = 9,
    FRAME_FLAGS = 8,
    HAS_TABLE = 0x80,
    TABLE_SIZE = 0x07,
    BLOCK_EXTENSION = 0x21,
    BLOCK_FRAME = 0x2c,
    BLOCK_TRAILER = 0x3b,
};

static bool gif_reader_skip(struct gif_reader *reader, size_t length) {
    if ((size_t)(reader->end - reader->at) < length)
        return false;
    reader->at += length;
    return true;
}

static bool read_table(struct gif_reader *reader, unsigned flags, struct gif_table *table) {
    *table = (struct gif_table){NULL, 0};
    if ((flags & HAS_TABLE) == 0)
        return true;
    *table = (struct gif_table){reader->at, 2u << (flags & TABLE_SIZE)};
    return gif_reader_skip(reader, (size_t)table->count * 3);
}

/* Skips sub-blocks: each is a length and as many bytes. A length of 0 ends them. */
static bool skip_sub_blocks(struct gif_reader *reader) {
    for (size_t length = 1; length > 0;) {
        if (reader->at == reader->end)
            return false;
        length = *reader->at++;
        if (!gif_reader_skip(reader, length))
            return false;
    }
    return true;
}

/* The one byte is a label, or it says how long codes are. */
static bool skip_data(struct gif_reader *reader) {
    return gif_reader_skip(reader, 1) && skip_sub_blocks(reader);
}

static bool read_frame(struct gif_reader *reader, struct gif_block *block) {
    const unsigned char *head = reader->at;
    return gif_reader_skip(reader, FRAME) && read_table(reader, head[FRAME_FLAGS], &block->table) &&
           skip_data(reader);
}

static bool gif_reader_open(struct gif_reader *reader, const unsigned char *bytes, size_t length) {
    memset(reader, 0, sizeof *reader);
    if (length < GIF_HEADER ||
        (memcmp(bytes, "GIF87a", MAGIC) != 0 && memcmp(bytes, "GIF89a", MAGIC) != 0))
        return false;
    reader->at = bytes + GIF_HEADER;
    reader->end = bytes + length;
    return read_table(reader, bytes[MAGIC + FLAGS], &reader->table);
}

/* False at the trailer, and when the bytes that follow are no block of a GIF. */
static bool gif_reader_next(struct gif_reader *reader, struct gif_block *block) {
    memset(block, 0, sizeof *block);
    if (reader->whole || reader->at == reader->end)
        return false;
    switch (*reader->at++) {
    case BLOCK_EXTENSION: return skip_data(reader);
    case BLOCK_FRAME: return read_frame(reader, block);
    case BLOCK_TRAILER: reader->whole = true; return false;
    default: return false;
    }
}

/* Makes a table gray in `copy`, which is a copy of the file's bytes; the table has the same place
 * in both. */
static bool gray_table(unsigned char *copy, const unsigned char *bytes,
                       const struct gif_table *table) {
    bool changed = false;
    unsigned char *entry = copy + (table->entries - bytes);
    for (unsigned i = 0; i < table->count; i++, entry += 3) {
        unsigned char luma = gray_luma(entry[0], entry[1], entry[2]);
        changed |= entry[0] != luma || entry[1] != luma || entry[2] != luma;
        entry[0] = entry[1] = entry[2] = luma;
    }
    return changed;
}

static enum picture_result gray_tables(const unsigned char *bytes, size_t length,
                                       struct picture_output *output) {
    struct gif_reader reader;
    struct gif_block block;
    bool changed = false;
    if (!gif_reader_open(&reader, bytes, length))
        return picture_bad(output, "not a whole GIF");
    output->bytes = malloc(length);
    if (output->bytes == NULL)
        return picture_bad(output, "out of memory");
    memcpy(output->bytes, bytes, length);
    output->length = length;
    if (reader.table.count > 0)
        changed = gray_table(output->bytes, bytes, &reader.table);
    while (gif_reader_next(&reader, &block))
        if (block.table.count > 0)
            changed |= gray_table(output->bytes, bytes, &block.table);
    if (!reader.whole)
        return picture_bad(output, "not a whole GIF");
    if (changed)
        return PICTURE_DONE;
    free(output->bytes);
    output->bytes = NULL;
    return PICTURE_UNCHANGED;
}

enum picture_result gif_gray(const unsigned char *bytes, size_t length,
                             const struct picture_options *options, struct picture_output *output) {
    if (options->width > 0 && gif_scale(bytes, length, options, output) == PICTURE_DONE)
        return PICTURE_DONE;
    memset(output, 0, sizeof *output);
    return gray_tables(bytes, length, output);
}
