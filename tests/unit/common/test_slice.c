#include "suites.h"

#include <stdio.h>
#include <stdlib.h>

START_TEST(equal_compares_length_and_bytes) {
    ck_assert(slice_equal(SLICE("abc"), SLICE("abc")));
    ck_assert(!slice_equal(SLICE("abc"), SLICE("abd")));
    ck_assert(!slice_equal(SLICE("abc"), SLICE("abcd")));
    ck_assert(!slice_equal(SLICE("a\0b"), SLICE("a\0c")));
    ck_assert(slice_equal(slice_make(NULL, 0), SLICE("")));
}
END_TEST

START_TEST(nocase_folds_letters_only) {
    ck_assert(slice_equal_nocase(SLICE("Content-LENGTH"), SLICE("cONTENT-length")));
    ck_assert(!slice_equal_nocase(SLICE("@"), SLICE("`")));
    ck_assert(!slice_equal_nocase(SLICE("["), SLICE("{")));
    ck_assert(!slice_equal_nocase(SLICE("\xc4"), SLICE("\xe4")));
    ck_assert(!slice_equal_nocase(SLICE("ab"), SLICE("abc")));
}
END_TEST

/* Compared in words, whose ends and whose middle must count like any byte. */
START_TEST(nocase_at_every_place) {
    char one[20], other[20];
    for (size_t length = 1; length <= sizeof one; length++)
        for (size_t at = 0; at < length; at++)
            for (unsigned i = 0; i < 256 * 4; i++) {
                static const unsigned differences[] = {0, 0x20, 0x80, 1};
                unsigned char a = (unsigned char)(i / 4);
                unsigned char b = (unsigned char)(a ^ differences[i % 4]);
                memset(one, 'x', length);
                memset(other, 'X', length);
                one[at] = (char)a;
                other[at] = (char)b;
                bool same = slice_equal_nocase(slice_make(one, length), slice_make(other, length));
                ck_assert(same == (ascii_lower(a) == ascii_lower(b)));
            }
}
END_TEST

START_TEST(lower_at_every_length) {
    static const char text[] = "AzZa@[`{19-._\xc1\xe1QWErty",
                      lower[] = "azza@[`{19-._\xc1\xe1qwerty";
    char out[sizeof text + 1];
    for (size_t length = 0; length < sizeof text; length++) {
        memset(out, '!', sizeof out);
        char *end = slice_put_lower(out, guard_put(slice_make(text, length)));
        ck_assert_ptr_eq(end, out + length);
        ck_assert_mem_eq(out, lower, length);
        ck_assert(*end == '!');
    }
}
END_TEST

static void check_number(int64_t number) {
    char digits[SLICE_DIGITS], expected[SLICE_DIGITS + 1];
    snprintf(expected, sizeof expected, "%lld", (long long)number);
    ck_assert_slice_eq(slice_of_number(digits, number), slice_from(expected));
}

START_TEST(numbers_are_written_in_hex) {
    char expected[SLICE_HEX + 1], text[SLICE_HEX + 1] = "................";
    for (uint64_t number = 1, i = 0; i < 200; i++, number = number * 6364136223846793005u + i) {
        snprintf(expected, sizeof expected, "%016llx", (unsigned long long)number);
        ck_assert_ptr_eq(slice_put_hex(text, number), text + SLICE_HEX);
        ck_assert_str_eq(text, expected);
    }
    slice_put_hex(text, 0x0123456789abcdef);
    ck_assert_str_eq(text, "0123456789abcdef");
}
END_TEST

START_TEST(numbers_are_written) {
    static const int64_t numbers[] = {0,    7,     10,        42,        99,        100, 101, 999,
                                      1000, 65535, 123456789, INT64_MAX, INT64_MIN, -1,  -10, -100};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        check_number(numbers[i]);
    for (uint64_t power = 10; power <= INT64_MAX / 10; power *= 10)
        for (int64_t number = (int64_t)power - 2; number <= (int64_t)power + 2; number++)
            check_number(number);
    for (unsigned bit = 0; bit < 63; bit++)
        for (int64_t number = ((int64_t)1 << bit) - 1; number <= ((int64_t)1 << bit) + 1; number++)
            check_number(number);
}
END_TEST

START_TEST(starts_and_ends) {
    ck_assert(slice_starts_with(SLICE("http://"), SLICE("http")));
    ck_assert(slice_starts_with(SLICE("http"), SLICE("http")));
    ck_assert(!slice_starts_with(SLICE("htt"), SLICE("http")));
    ck_assert(!slice_starts_with(SLICE("Http"), SLICE("http")));
    ck_assert(slice_starts_with_nocase(SLICE("HTTP://"), SLICE("http")));
    ck_assert(!slice_starts_with_nocase(SLICE("HTT"), SLICE("http")));
    ck_assert(slice_ends_with_nocase(SLICE("a.GIF"), SLICE(".gif")));
    ck_assert(!slice_ends_with_nocase(SLICE("gif"), SLICE(".gif")));
    ck_assert(!slice_ends_with_nocase(SLICE("a.gif "), SLICE(".gif")));
}
END_TEST

START_TEST(trim_takes_spaces_and_tabs) {
    ck_assert_slice_eq(slice_trim(SLICE(" \t a b\t ")), SLICE("a b"));
    ck_assert_slice_eq(slice_trim(SLICE("a")), SLICE("a"));
    ck_assert_slice_eq(slice_trim(SLICE(" \t ")), SLICE(""));
    ck_assert_slice_eq(slice_trim(SLICE("\ra\n")), SLICE("\ra\n"));
    ck_assert_slice_eq(slice_trim(SLICE("")), SLICE(""));
}
END_TEST

START_TEST(numbers_are_digits_only) {
    static const struct slice bad[] = {
        {"", 0},    {"+1", 2},  {"-1", 2},   {" 1", 2},
        {"1 ", 2},  {"1a", 2},  {"0x1", 3},  {"1\0", 2},
        {"1,1", 3}, {"1.0", 3}, {"\xb1", 1}, {"18446744073709551616", 20},
        {":", 1},   {"/", 1},   {"1e3", 3},  {"99999999999999999999", 20},
    };
    uint64_t value;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_msg(!slice_to_uint64(bad[i], &value), "\"%.*s\"", SLICE_PRINT(bad[i]));
    ck_assert(slice_to_uint64(SLICE("0"), &value) && value == 0);
    ck_assert(slice_to_uint64(SLICE("007"), &value) && value == 7);
    ck_assert(slice_to_uint64(SLICE("9876543210"), &value) && value == 9876543210u);
    ck_assert(slice_to_uint64(SLICE("18446744073709551615"), &value) && value == UINT64_MAX);
}
END_TEST

static void check_elements(struct slice list, const char *const *expected, size_t count) {
    struct slice rest = guard_put(list), element;
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(slice_next_element(&rest, &element), "%.*s ends early", SLICE_PRINT(list));
        ck_assert_slice_eq(element, slice_from(expected[i]));
    }
    ck_assert_msg(!slice_next_element(&rest, &element), "%.*s goes on", SLICE_PRINT(list));
    ck_assert_msg(!slice_next_element(&rest, &element), "%.*s begins anew", SLICE_PRINT(list));
}

START_TEST(lists_are_split_at_commas) {
    check_elements(SLICE("a"), (const char *[]){"a"}, 1);
    check_elements(SLICE("a,b , c"), (const char *[]){"a", "b", "c"}, 3);
    check_elements(SLICE(" ,, a ,\t, "), (const char *[]){"a"}, 1);
    check_elements(SLICE("a b;c=d"), (const char *[]){"a b;c=d"}, 1);
    check_elements(SLICE(""), NULL, 0);
    check_elements(SLICE(",, ,"), NULL, 0);
}
END_TEST

START_TEST(quoted_commas_do_not_split) {
    check_elements(SLICE("a=\"b,c\", d"), (const char *[]){"a=\"b,c\"", "d"}, 2);
    check_elements(SLICE("\"b\\\",c\",d"), (const char *[]){"\"b\\\",c\"", "d"}, 2);
    check_elements(SLICE("\"\\\\\",d"), (const char *[]){"\"\\\\\"", "d"}, 2);
    check_elements(SLICE("a\\,b"), (const char *[]){"a\\", "b"}, 2);
    check_elements(SLICE("\"a,b"), (const char *[]){"\"a,b"}, 1);
    check_elements(SLICE("\"a\\"), (const char *[]){"\"a\\"}, 1);
}
END_TEST

START_TEST(dup_ends_with_nul) {
    char *copy = slice_dup(SLICE("abc"));
    ck_assert_str_eq(copy, "abc");
    free(copy);
    copy = slice_dup(slice_make(NULL, 0));
    ck_assert_str_eq(copy, "");
    free(copy);
}
END_TEST

START_TEST(from_text) {
    ck_assert_uint_eq(slice_from(NULL).length, 0);
    ck_assert_slice_eq(slice_from("ab"), SLICE("ab"));
}
END_TEST

Suite *slice_suite(void) {
    const TTest *const tests[] = {
        equal_compares_length_and_bytes,
        nocase_folds_letters_only,
        starts_and_ends,
        nocase_at_every_place,
        lower_at_every_length,
        numbers_are_written_in_hex,
        numbers_are_written,
        trim_takes_spaces_and_tabs,
        numbers_are_digits_only,
        lists_are_split_at_commas,
        quoted_commas_do_not_split,
        dup_ends_with_nul,
        from_text,
    };
    return suite_of("slice", tests, COUNT_OF(tests));
}
