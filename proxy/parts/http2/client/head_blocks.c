#include "http2/client/head_blocks.h"

#include "base/assert.h"

#include <stdlib.h>

struct head_block {
    size_t room;
    size_t head, block; /* bytes; the block stands behind the head */
    char text[];
};

/* Heads stand behind the URLs of their objects, so the low bits of their addresses differ, too. */
static unsigned head_block_place(struct slice head) {
    uintptr_t at = (uintptr_t)head.base;
    return (unsigned)((at ^ at >> 8 ^ at >> 16) % HEAD_BLOCKS);
}

struct slice head_blocks_find(const struct head_blocks *blocks, struct slice head) {
    const struct head_block *kept = blocks->places[head_block_place(head)];
    if (kept == NULL || !slice_equal(slice_make(kept->text, kept->head), head))
        return slice_make(NULL, 0);
    return slice_make(kept->text + kept->head, kept->block);
}

void head_blocks_keep(struct head_blocks *blocks, struct slice head, struct slice block) {
    struct head_block **place = &blocks->places[head_block_place(head)];
    if (head.length + block.length > HEAD_BLOCKS_TEXT)
        return;
    size_t length = head.length + block.length;
    if (*place == NULL || (*place)->room < length) {
        free(*place);
        *place = xmalloc(sizeof **place + length);
        (*place)->room = length;
    }
    (*place)->head = head.length;
    (*place)->block = block.length;
    slice_put(slice_put((*place)->text, head), block);
}

void head_blocks_release(struct head_blocks *blocks) {
    for (unsigned i = 0; i < HEAD_BLOCKS; i++)
        free(blocks->places[i]);
    *blocks = (struct head_blocks){{NULL}};
}
