#include "gray/gif_reader.h"

enum {
    MAGIC = 6,
    FRAME = 9,
    FRAME_FLAGS = 8,
    HAS_TABLE = 0x80,
    INTERLACED = 0x40,
    TABLE_SIZE = 0x07,
    BLOCK_EXTENSION = 0x21,
    BLOCK_FRAME = 0x2c,
    BLOCK_TRAILER = 0x3b,
};

static unsigned number_at(const unsigned char *at) {
    return (unsigned)(at[0] | at[1] << 8);
}

static bool skip(struct gif_reader *reader, size_t length) {
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
    return skip(reader, (size_t)table->count * 3);
}

/* A length and as many bytes, until a length of 0. */
static bool read_sub_blocks(struct gif_reader *reader, struct slice *data) {
    const unsigned char *start = reader->at;
    for (size_t length = 1; length > 0;) {
        if (reader->at == reader->end)
            return false;
        length = *reader->at++;
        if (!skip(reader, length))
            return false;
    }
    *data = slice_make((const char *)start, (size_t)(reader->at - start));
    return true;
}

static bool read_frame(struct gif_reader *reader, struct gif_block *block) {
    const unsigned char *head = reader->at;
    if (!skip(reader, FRAME))
        return false;
    block->kind = GIF_FRAME;
    block->place = (struct gif_rectangle){number_at(head), number_at(head + 2), number_at(head + 4),
                                          number_at(head + 6)};
    block->interlaced = head[FRAME_FLAGS] & INTERLACED;
    if (!read_table(reader, head[FRAME_FLAGS], &block->table) || reader->at == reader->end)
        return false;
    block->code_size = *reader->at++;
    return read_sub_blocks(reader, &block->data);
}

static bool read_extension(struct gif_reader *reader, struct gif_block *block) {
    const unsigned char *start = reader->at - 1;
    if (reader->at == reader->end)
        return false;
    block->kind = GIF_EXTENSION;
    block->label = *reader->at++;
    if (!read_sub_blocks(reader, &block->data))
        return false;
    block->whole = slice_make((const char *)start, (size_t)(reader->at - start));
    return true;
}

bool gif_reader_open(struct gif_reader *reader, const unsigned char *bytes, size_t length) {
    memset(reader, 0, sizeof *reader);
    if (length < GIF_HEADER ||
        (memcmp(bytes, "GIF87a", MAGIC) != 0 && memcmp(bytes, "GIF89a", MAGIC) != 0))
        return false;
    reader->at = bytes + GIF_HEADER;
    reader->end = bytes + length;
    reader->width = number_at(bytes + MAGIC);
    reader->height = number_at(bytes + MAGIC + 2);
    reader->background = bytes[MAGIC + 5];
    reader->aspect = bytes[MAGIC + 6];
    return read_table(reader, bytes[MAGIC + 4], &reader->table);
}

bool gif_reader_next(struct gif_reader *reader, struct gif_block *block) {
    memset(block, 0, sizeof *block);
    if (reader->whole || reader->at == reader->end)
        return false;
    switch (*reader->at++) {
    case BLOCK_EXTENSION: return read_extension(reader, block);
    case BLOCK_FRAME: return read_frame(reader, block);
    case BLOCK_TRAILER: reader->whole = true; return false;
    default: return false;
    }
}
