/*
 * A spool: bytes that wait in memory between a producer and a consumer, first in, first out. They
 * are in blocks, so that appending never moves bytes.
 *
 *     struct spool spool;
 *     spool_init(&spool);
 *     spool_append(&spool, data, length);           false when memory is exhausted
 *     size_t n = spool_read(&spool, buf, sizeof buf);
 *     spool_release(&spool);
 *
 * A cursor reads without consuming, for bytes that may be needed again (a virgin body kept until
 * the ICAP server's verdict). Cursors stay valid until spool_read consumes bytes.
 *
 * Spools of one thread may share their free blocks, which saves allocations: call spool_share after
 * spool_init.
 *
 * Threads: belongs to one thread.
 */
#ifndef RETORT_BASE_SPOOL_H
#define RETORT_BASE_SPOOL_H

#include <stdbool.h>
#include <stddef.h>

enum { SPOOL_BLOCK = 4096 - 32, SPOOL_BLOCKS_SPARE = 512 };

struct spool_block;

/* Free blocks, at most SPOOL_BLOCKS_SPARE. The struct begins as {0}. */
struct spool_blocks {
    struct spool_block *first;
    unsigned count;
    size_t taken; /* blocks in use by spools */
};

struct spool {
    struct spool_block *first, *last;
    size_t length;              /* bytes inside */
    struct spool_blocks *spare; /* NULL: not shared */
};

struct spool_cursor {
    struct spool_block *block;
    size_t offset; /* in the block; NULL block: at the beginning */
};

void spool_init(struct spool *spool);
void spool_share(struct spool *spool, struct spool_blocks *spare);
void spool_blocks_release(struct spool_blocks *spare);
void spool_release(struct spool *spool);
bool spool_append(struct spool *spool, const void *data, size_t length);
/* Takes up to `capacity` bytes off the front. */
size_t spool_read(struct spool *spool, void *buffer, size_t capacity);
/* Reads on from the cursor and moves it. */
size_t spool_peek(const struct spool *spool, struct spool_cursor *cursor, void *buffer,
                  size_t capacity);

#endif
