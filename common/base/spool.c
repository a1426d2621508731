#include "base/spool.h"

#include "base/assert.h"

#include <string.h>

struct spool_block {
    struct spool_block *next;
    size_t begin, end; /* the bytes that wait in data */
    char data[SPOOL_BLOCK];
};

void spool_init(struct spool *spool) {
    memset(spool, 0, sizeof *spool);
}

void spool_share(struct spool *spool, struct spool_blocks *spare) {
    spool->spare = spare;
}

static struct spool_block *spool_take_spare(struct spool_blocks *spare) {
    struct spool_block *block = spare->first;
    spare->first = block->next;
    spare->count--;
    return block;
}

void spool_blocks_release(struct spool_blocks *spare) {
    while (spare->first != NULL)
        free(spool_take_spare(spare));
}

static struct spool_block *get_block(struct spool_blocks *spare) {
    struct spool_block *block = spare != NULL && spare->first != NULL
                                    ? spool_take_spare(spare)
                                    : malloc(sizeof(struct spool_block));
    if (spare != NULL && block != NULL)
        spare->taken++;
    return block;
}

static void spool_let_go(struct spool_blocks *spare, struct spool_block *block) {
    if (spare != NULL)
        spare->taken--;
    if (spare == NULL || spare->count == SPOOL_BLOCKS_SPARE) {
        free(block);
        return;
    }
    block->next = spare->first;
    spare->first = block;
    spare->count++;
}

static void drop_first(struct spool *spool) {
    struct spool_block *block = spool->first;
    spool->first = block->next;
    if (spool->first == NULL)
        spool->last = NULL;
    spool_let_go(spool->spare, block);
}

void spool_release(struct spool *spool) {
    while (spool->first != NULL)
        drop_first(spool);
    spool->length = 0;
}

static struct spool_block *spool_add_block(struct spool *spool) {
    struct spool_block *block = get_block(spool->spare);
    if (block == NULL)
        return NULL;
    block->next = NULL;
    block->begin = block->end = 0;
    if (spool->last != NULL)
        spool->last->next = block;
    else
        spool->first = block;
    spool->last = block;
    return block;
}

bool spool_append(struct spool *spool, const void *data, size_t length) {
    const char *from = data;
    while (length > 0) {
        struct spool_block *block = spool->last;
        if (block == NULL || block->end == SPOOL_BLOCK)
            block = spool_add_block(spool);
        if (block == NULL)
            return false;
        size_t piece = SPOOL_BLOCK - block->end;
        if (piece > length)
            piece = length;
        memcpy(block->data + block->end, from, piece);
        block->end += piece;
        spool->length += piece;
        from += piece;
        length -= piece;
    }
    return true;
}

size_t spool_read(struct spool *spool, void *buffer, size_t capacity) {
    char *to = buffer;
    size_t total = 0;
    while (total < capacity && spool->first != NULL) {
        struct spool_block *block = spool->first;
        size_t piece = block->end - block->begin;
        if (piece > capacity - total)
            piece = capacity - total;
        memcpy(to + total, block->data + block->begin, piece);
        block->begin += piece;
        total += piece;
        if (block->begin == block->end)
            drop_first(spool);
    }
    spool->length -= total;
    return total;
}

size_t spool_peek(const struct spool *spool, struct spool_cursor *cursor, void *buffer,
                  size_t capacity) {
    char *to = buffer;
    size_t total = 0;
    if (cursor->block == NULL && spool->first != NULL) {
        cursor->block = spool->first;
        cursor->offset = spool->first->begin;
    }
    while (total < capacity && cursor->block != NULL) {
        struct spool_block *block = cursor->block;
        size_t piece = block->end - cursor->offset;
        if (piece == 0 && block->next != NULL) {
            cursor->block = block->next;
            cursor->offset = block->next->begin;
            continue;
        }
        if (piece == 0)
            break;
        if (piece > capacity - total)
            piece = capacity - total;
        memcpy(to + total, block->data + cursor->offset, piece);
        cursor->offset += piece;
        total += piece;
    }
    return total;
}
