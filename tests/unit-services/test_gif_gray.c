#include "suites.h"

#include "gray/gif_gray.h"

/* Two frames, a global table of four colours, a local one of two, a comment, an animation block. */
static const unsigned char animated[] = {
    'G',  'I',  'F',  '8',  '9',  'a',  2,    0,    2,   0,    0x81, 0,   0,   255, 0, 0,    0,
    255,  0,    0,    0,    255,  10,   10,   10, /* global table at 13 */
    0x21, 0xff, 11,   'N',  'E',  'T',  'S',  'C',  'A', 'P',  'E',  '2', '.', '0', 3, 1,    0,
    0,    0,    0x21, 0xf9, 4,    1,    10,   0,    3,   0,    0x2c, 0,   0,   0,   0, 2,    0,
    2,    0,    0x40, 2,    3,    0x44, 0x02, 0x05, 0,   0x21, 0xfe, 2,   'h', 'i', 0, 0x2c, 0,
    0,    0,    0,    2,    0,    2,    0,    0x80, 1,   2,    3,    4,   5,   6, /* local table */
    2,    3,    0x44, 0x02, 0x05, 0,    0x3b, 't',  'a', 'i',  'l'};
enum { GLOBAL_AT = 13, GLOBAL_SIZE = 12, LOCAL_AT = 84, LOCAL_SIZE = 6 };

START_TEST(tables_become_gray_and_nothing_else) {
    unsigned char bytes[sizeof animated];
    memcpy(bytes, animated, sizeof bytes);
    ck_assert_int_eq(gif_gray(bytes, sizeof bytes), GIF_GRAY_DONE);
    unsigned changed = 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        bool in_table = (i >= GLOBAL_AT && i < GLOBAL_AT + GLOBAL_SIZE) ||
                        (i >= LOCAL_AT && i < LOCAL_AT + LOCAL_SIZE);
        EXPECT(in_table || bytes[i] == animated[i], "byte %zu changed", i);
        changed += bytes[i] != animated[i];
    }
    ck_assert_uint_gt(changed, 9);
    for (size_t i = GLOBAL_AT; i < GLOBAL_AT + GLOBAL_SIZE; i += 3)
        ck_assert(bytes[i] == bytes[i + 1] && bytes[i] == bytes[i + 2]);
    ck_assert_uint_eq(bytes[GLOBAL_AT], 76);
    ck_assert_uint_eq(bytes[GLOBAL_AT + 3], 150);
    ck_assert_uint_eq(bytes[GLOBAL_AT + 6], 29);
    ck_assert_uint_eq(bytes[GLOBAL_AT + 9], 10);
    ck_assert_int_eq(gif_gray(bytes, sizeof bytes), GIF_GRAY_UNCHANGED);
}
END_TEST

START_TEST(cut_anywhere_is_bad) {
    for (size_t length = 0; length < sizeof animated - 5; length++) {
        struct slice input = guard_put(slice_make((const char *)animated, length));
        EXPECT(gif_gray((unsigned char *)input.base, length) == GIF_GRAY_BAD, "cut at %zu", length);
    }
}
END_TEST

START_TEST(any_byte_may_be_wrong) {
    for (size_t at = 0; at < sizeof animated; at++)
        for (unsigned value = 0; value < 256; value += 5) {
            struct slice input = guard_put(slice_make((const char *)animated, sizeof animated));
            ((unsigned char *)input.base)[at] = (unsigned char)value;
            gif_gray((unsigned char *)input.base, input.length);
        }
}
END_TEST

Suite *gif_gray_suite(void) {
    const TTest *const tests[] = {tables_become_gray_and_nothing_else, cut_anywhere_is_bad,
                                  any_byte_may_be_wrong};
    return suite_of("gif_gray", tests, COUNT_OF(tests));
}
