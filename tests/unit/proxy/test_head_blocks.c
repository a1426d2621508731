/* Blocks of HPACK that are kept for stored heads. */
#include "http2/client/head_blocks.h"
#include "suites.h"

static void check_block_found(const struct head_blocks *blocks, struct slice head,
                              struct slice block) {
    struct slice found = head_blocks_find(blocks, head);
    ck_assert_ptr_nonnull(found.base);
    ck_assert(slice_equal(found, block));
}

START_TEST(a_block_is_found_for_its_head) {
    struct head_blocks blocks = {{NULL}};
    struct slice head = SLICE("HTTP/1.1 200 OK\r\nA: 1\r\n");
    ck_assert_ptr_null(head_blocks_find(&blocks, head).base);
    head_blocks_keep(&blocks, head, SLICE("block"));
    check_block_found(&blocks, head, SLICE("block"));
    head_blocks_release(&blocks);
    ck_assert_ptr_null(head_blocks_find(&blocks, head).base);
}
END_TEST

/* An object may go, and another take its memory. */
START_TEST(another_head_in_the_same_place_has_another_block) {
    char text[] = "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\n";
    struct slice head = slice_make(text, sizeof text - 1);
    struct head_blocks blocks = {{NULL}};
    head_blocks_keep(&blocks, head, SLICE("of the first"));
    memcpy(strstr(text, "a=1"), "b=2", 3);
    ck_assert_ptr_null(head_blocks_find(&blocks, head).base);
    ck_assert_ptr_null(head_blocks_find(&blocks, slice_make(text, head.length - 1)).base);
    head_blocks_keep(&blocks, head, SLICE("of the other one, which is longer"));
    check_block_found(&blocks, head, SLICE("of the other one, which is longer"));
    head_blocks_release(&blocks);
}
END_TEST

START_TEST(a_long_head_is_not_kept) {
    static char text[HEAD_BLOCKS_TEXT];
    struct head_blocks blocks = {{NULL}};
    memset(text, 'a', sizeof text);
    head_blocks_keep(&blocks, slice_make(text, sizeof text), SLICE("b"));
    ck_assert_ptr_null(head_blocks_find(&blocks, slice_make(text, sizeof text)).base);
    head_blocks_keep(&blocks, slice_make(text, sizeof text - 1), SLICE("b"));
    check_block_found(&blocks, slice_make(text, sizeof text - 1), SLICE("b"));
    head_blocks_release(&blocks);
}
END_TEST

Suite *head_blocks_suite(void) {
    Suite *suite = suite_create("head_blocks");
    TCase *group = tcase_create("head_blocks");
    tcase_add_test(group, a_block_is_found_for_its_head);
    tcase_add_test(group, another_head_in_the_same_place_has_another_block);
    tcase_add_test(group, a_long_head_is_not_kept);
    suite_add_tcase(suite, group);
    return suite;
}
