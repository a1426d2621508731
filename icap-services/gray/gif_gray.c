#include "gray/gif_gray.h"

#include "gray/picture.h"

enum {
    HEADER_SIZE = 6,
    SCREEN_SIZE = 7,
    SCREEN_FLAGS = 4,
    IMAGE_SIZE = 9,
    IMAGE_FLAGS = 8,
    HAS_TABLE = 0x80,
    TABLE_SIZE = 0x07,
    BLOCK_EXTENSION = 0x21,
    BLOCK_IMAGE = 0x2c,
    BLOCK_TRAILER = 0x3b,
};

/* The part of the file not walked over yet. */
struct gif_walk {
    unsigned char *at, *end;
    bool changed;
};

static bool skip(struct gif_walk *walk, size_t length) {
    if ((size_t)(walk->end - walk->at) < length)
        return false;
    walk->at += length;
    return true;
}

static bool gray_table(struct gif_walk *walk, unsigned flags) {
    if ((flags & HAS_TABLE) == 0)
        return true;
    size_t count = (size_t)2 << (flags & TABLE_SIZE);
    unsigned char *entry = walk->at;
    if (!skip(walk, count * 3))
        return false;
    for (; entry < walk->at; entry += 3) {
        unsigned char luma = gray_luma(entry[0], entry[1], entry[2]);
        walk->changed |= entry[0] != luma || entry[1] != luma || entry[2] != luma;
        entry[0] = entry[1] = entry[2] = luma;
    }
    return true;
}

/* Sub-blocks: a length and as many bytes, until a length of 0. */
static bool skip_sub_blocks(struct gif_walk *walk) {
    for (;;) {
        if (walk->at == walk->end)
            return false;
        size_t length = *walk->at++;
        if (length == 0)
            return true;
        if (!skip(walk, length))
            return false;
    }
}

static bool walk_image(struct gif_walk *walk) {
    unsigned char *descriptor = walk->at;
    return skip(walk, IMAGE_SIZE) && gray_table(walk, descriptor[IMAGE_FLAGS]) &&
           skip(walk, 1) /* LZW code size */ && skip_sub_blocks(walk);
}

static bool walk_blocks(struct gif_walk *walk) {
    while (walk->at < walk->end) {
        switch (*walk->at++) {
        case BLOCK_EXTENSION:
            if (!skip(walk, 1) || !skip_sub_blocks(walk))
                return false;
            break;
        case BLOCK_IMAGE:
            if (!walk_image(walk))
                return false;
            break;
        case BLOCK_TRAILER: return true;
        default: return false;
        }
    }
    return false;
}

enum gif_gray_result gif_gray(unsigned char *bytes, size_t length) {
    struct gif_walk walk = {bytes, bytes + length, false};
    if (length < HEADER_SIZE + SCREEN_SIZE ||
        (memcmp(bytes, "GIF87a", HEADER_SIZE) != 0 && memcmp(bytes, "GIF89a", HEADER_SIZE) != 0))
        return GIF_GRAY_BAD;
    walk.at += HEADER_SIZE + SCREEN_SIZE;
    if (!gray_table(&walk, bytes[HEADER_SIZE + SCREEN_FLAGS]) || !walk_blocks(&walk))
        return GIF_GRAY_BAD;
    return walk.changed ? GIF_GRAY_DONE : GIF_GRAY_UNCHANGED;
}
