/*
 * Blocks of HPACK that were made of stored heads. A hot object is asked for again and again, and the
 * block of its head is the same for every connection (http2/hpack_encode.h). A worker keeps those of
 * the heads that it sent last.
 *
 *     struct slice block = head_blocks_find(&blocks, head);
 *     if (block.base == NULL)
 *         head_blocks_keep(&blocks, head, made);              copies both
 *     head_blocks_release(&blocks);
 *
 * The address of the head only says where to look. A block is used for a head with the same bytes,
 * wherever these stand, so it does not matter when an object goes and another takes its memory.
 *
 * Memory: HEAD_BLOCKS times HEAD_BLOCKS_TEXT at most, and none before the first head. A hit that
 * finds its block takes about 1,100 instructions less.
 *
 * Threads: the worker's. A block is good until the next head_blocks_keep.
 */
#ifndef RETORT_HTTP2_CLIENT_HEAD_BLOCKS_H
#define RETORT_HTTP2_CLIENT_HEAD_BLOCKS_H

#include "base/slice.h"

/* HEAD_BLOCKS_TEXT: bytes of a head and its block together that are worth keeping. */
enum { HEAD_BLOCKS = 256, HEAD_BLOCKS_TEXT = 2048 };

struct head_block;

/* Begins as {0}. */
struct head_blocks {
    struct head_block *places[HEAD_BLOCKS];
};

struct slice head_blocks_find(const struct head_blocks *blocks, struct slice head);
void head_blocks_keep(struct head_blocks *blocks, struct slice head, struct slice block);
void head_blocks_release(struct head_blocks *blocks);

#endif
