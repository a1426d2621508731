/*
 * An arena: memory of one transaction, taken in small pieces and given back all at once.
 *
 *     struct arena arena;
 *     arena_init(&arena);
 *     char *copy = arena_copy(&arena, slice);     lives until arena_reset or arena_release
 *     arena_reset(&arena);                        for the next transaction; keeps one block
 *     arena_release(&arena);
 *
 * The first block (ARENA_BLOCK bytes) is allocated at the first use and kept by arena_reset, so a
 * recycled arena costs no malloc. It has room for all that a request takes that a service adapts;
 * what nobody writes to takes no memory. Requests larger than a block get a block of their own.
 * Threads: an arena belongs to one thread. Errors: an arena draws on the reserve when memory is
 * exhausted. So use it only for sizes that have a limit (heads, URLs, log lines).
 */
#ifndef RETORT_BASE_ARENA_H
#define RETORT_BASE_ARENA_H

#include "base/slice.h"

#include <stdalign.h>
#include <stddef.h>

enum { ARENA_BLOCK = 49152 };

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first; the last one is kept by reset */
    char *at, *end;
};

void arena_init(struct arena *arena);
void arena_reset(struct arena *arena);
void arena_release(struct arena *arena);

/* For arena_alloc: where the current block has no room. `size` is a multiple of the alignment. */
void *arena_alloc_elsewhere(struct arena *arena, size_t size);
/* Aligned for any type; not zeroed. */
static inline void *arena_alloc(struct arena *arena, size_t size) {
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if ((size_t)(arena->end - arena->at) < size || arena->at == NULL)
        return arena_alloc_elsewhere(arena, size);
    void *memory = arena->at;
    arena->at += size;
    return memory;
}
void *arena_zalloc(struct arena *arena, size_t size);
/* Copies the bytes and appends a NUL. */
char *arena_copy(struct arena *arena, struct slice bytes);
struct slice arena_slice(struct arena *arena, struct slice bytes);
/* Joins the pieces, in their order, and appends a NUL, which the length does not count. */
struct slice arena_join(struct arena *arena, const struct slice *pieces, unsigned count);
/* Joins its arguments in the same way: arena_concat(arena, host, SLICE(":"), port) */
#define arena_concat(arena, ...)                                                                   \
    arena_join((arena), (const struct slice[]){__VA_ARGS__},                                       \
               sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice))
/* Formats like asprintf(3). */
struct slice arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3), nonnull(2)));

#endif
