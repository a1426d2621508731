#include "gray/gif_reader.h"

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

bool gif_reader_open(struct gif_reader *reader, const unsigned char *bytes, size_t length) {
    memset(reader, 0, sizeof *reader);
    if (length < GIF_HEADER ||
        (memcmp(bytes, "GIF87a", MAGIC) != 0 && memcmp(bytes, "GIF89a", MAGIC) != 0))
        return false;
    reader->at = bytes + GIF_HEADER;
    reader->end = bytes + length;
    return read_table(reader, bytes[MAGIC + FLAGS], &reader->table);
}

bool gif_reader_next(struct gif_reader *reader, struct gif_block *block) {
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
