#include "base/arena.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

struct arena_block {
    struct arena_block *next;
    size_t size;
    alignas(max_align_t) char data[];
};

void arena_init(struct arena *arena) {
    memset(arena, 0, sizeof *arena);
}

static void arena_use(struct arena *arena, struct arena_block *block) {
    arena->at = block->data;
    arena->end = block->data + block->size;
}

/* Keeps one block of the usual size and frees the others. The block may be anywhere in the list,
 * because arena_alloc_elsewhere inserts a block for a large piece behind the current block. */
void arena_reset(struct arena *arena) {
    struct arena_block *kept = NULL, *next;
    for (struct arena_block *block = arena->blocks; block != NULL; block = next) {
        next = block->next;
        if (block->size != ARENA_BLOCK) {
            free(block);
        } else {
            free(kept);
            kept = block;
        }
    }
    arena_init(arena);
    if (kept == NULL)
        return;
    kept->next = NULL;
    arena->blocks = kept;
    arena_use(arena, kept);
}

void arena_release(struct arena *arena) {
    while (arena->blocks != NULL) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena_init(arena);
}

static struct arena_block *arena_grow(struct arena *arena, size_t size) {
    struct arena_block *block = xmalloc(sizeof *block + size);
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *arena_alloc_elsewhere(struct arena *arena, size_t size) {
    if (size > ARENA_BLOCK / 2 && arena->blocks != NULL) {
        /* A large piece gets its own block; the current block is still used for small pieces. */
        struct arena_block *block = xmalloc(sizeof *block + size);
        block->size = size;
        block->next = arena->blocks->next;
        arena->blocks->next = block;
        return block->data;
    }
    struct arena_block *block = arena_grow(arena, size > ARENA_BLOCK ? size : ARENA_BLOCK);
    arena_use(arena, block);
    arena->at += size;
    return block->data;
}

void *arena_zalloc(struct arena *arena, size_t size) {
    return memset(arena_alloc(arena, size), 0, size);
}

char *arena_copy(struct arena *arena, struct slice bytes) {
    char *copy = arena_alloc(arena, bytes.length + 1);
    if (bytes.length > 0)
        memcpy(copy, bytes.base, bytes.length);
    copy[bytes.length] = '\0';
    return copy;
}

struct slice arena_slice(struct arena *arena, struct slice bytes) {
    return slice_make(arena_copy(arena, bytes), bytes.length);
}

struct slice arena_join(struct arena *arena, const struct slice *pieces, unsigned count) {
    size_t length = 0;
    for (unsigned i = 0; i < count; i++)
        length += pieces[i].length;
    char *text = arena_alloc(arena, length + 1), *at = text;
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].length > 0)
            memcpy(at, pieces[i].base, pieces[i].length);
        at += pieces[i].length;
    }
    *at = '\0';
    return slice_make(text, length);
}

struct slice arena_printf(struct arena *arena, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    ASSERT(length >= 0);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    return slice_make(text, (size_t)length);
}
