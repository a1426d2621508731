#include "suites.h"

#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

START_TEST(pieces_do_not_overlap) {
    struct arena arena;
    unsigned char *pieces[300];
    arena_init(&arena);
    for (unsigned i = 0; i < COUNT_OF(pieces); i++) {
        pieces[i] = arena_alloc(&arena, i * 7);
        ck_assert_uint_eq((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        memset(pieces[i], (int)(i & 0xff), i * 7);
    }
    for (unsigned i = 0; i < COUNT_OF(pieces); i++)
        for (unsigned j = 0; j < i * 7; j++)
            EXPECT(pieces[i][j] == (i & 0xff), "piece %u was overwritten at %u", i, j);
    arena_release(&arena);
}
END_TEST

START_TEST(large_pieces) {
    struct arena arena;
    arena_init(&arena);
    memset(arena_alloc(&arena, 10 * ARENA_BLOCK), 1, 10 * ARENA_BLOCK);
    char *small = arena_alloc(&arena, 100);
    memset(small, 2, 100);
    memset(arena_alloc(&arena, ARENA_BLOCK), 3, ARENA_BLOCK);
    memset(arena_alloc(&arena, ARENA_BLOCK / 2 + 1), 4, ARENA_BLOCK / 2 + 1);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(small[i], 2);
    arena_release(&arena);
}
END_TEST

START_TEST(a_large_piece_leaves_the_current_block_in_use) {
    struct arena arena;
    arena_init(&arena);
    char *before = arena_alloc(&arena, 64);
    arena_alloc(&arena, ARENA_BLOCK);
    char *after = arena_alloc(&arena, 64);
    ck_assert_ptr_eq(after, before + 64);
    arena_release(&arena);
}
END_TEST

START_TEST(reset_keeps_the_first_block) {
    struct arena arena;
    arena_init(&arena);
    void *first = arena_alloc(&arena, 16);
    for (int i = 0; i < 100; i++)
        arena_alloc(&arena, 1000);
    arena_reset(&arena);
    ck_assert_ptr_eq(arena_alloc(&arena, 16), first);
    arena_release(&arena);
}
END_TEST

START_TEST(reset_keeps_the_first_block_behind_a_large_piece) {
    struct arena arena;
    arena_init(&arena);
    void *first = arena_alloc(&arena, 16);
    arena_alloc(&arena, 2 * ARENA_BLOCK);
    arena_reset(&arena);
    ck_assert_msg(arena.at != NULL, "no block was kept");
    ck_assert_ptr_eq(arena_alloc(&arena, 16), first);
    arena_release(&arena);
}
END_TEST

START_TEST(reset_and_release_of_an_unused_arena) {
    struct arena arena;
    arena_init(&arena);
    arena_reset(&arena);
    arena_release(&arena);
    arena_release(&arena);
    ck_assert_ptr_null(arena.blocks);
    ck_assert_ptr_nonnull(arena_alloc(&arena, 0));
    arena_release(&arena);
}
END_TEST

START_TEST(zalloc_clears_recycled_memory) {
    struct arena arena;
    arena_init(&arena);
    memset(arena_alloc(&arena, 256), 0xff, 256);
    arena_reset(&arena);
    const char *zeros = arena_zalloc(&arena, 256);
    for (int i = 0; i < 256; i++)
        ck_assert_int_eq(zeros[i], 0);
    arena_release(&arena);
}
END_TEST

START_TEST(copies_end_with_nul) {
    struct arena arena;
    arena_init(&arena);
    ck_assert_str_eq(arena_copy(&arena, SLICE("abc")), "abc");
    ck_assert_str_eq(arena_copy(&arena, slice_make(NULL, 0)), "");
    struct slice slice = arena_slice(&arena, SLICE("a\0b"));
    ck_assert_slice_eq(slice, SLICE("a\0b"));
    ck_assert_int_eq(slice.base[slice.length], '\0');
    struct slice text = arena_printf(&arena, "%s:%d", "host", 8080);
    ck_assert_slice_eq(text, SLICE("host:8080"));
    ck_assert_int_eq(text.base[text.length], '\0');
    ck_assert_uint_eq(arena_printf(&arena, "%*d", 20000, 1).length, 20000);
    arena_release(&arena);
}
END_TEST

Suite *arena_suite(void) {
    const TTest *const tests[] = {
        pieces_do_not_overlap,
        large_pieces,
        a_large_piece_leaves_the_current_block_in_use,
        reset_keeps_the_first_block,
        reset_keeps_the_first_block_behind_a_large_piece,
        reset_and_release_of_an_unused_arena,
        zalloc_clears_recycled_memory,
        copies_end_with_nul,
    };
    return suite_of("arena", tests, COUNT_OF(tests));
}
