#include "suites.h"

#include "base/text.h"

START_TEST(utf8_is_read_to_the_letter) {
    static const struct {
        const char *bytes;
        size_t length;
        uint32_t character;
    } cases[] = {
        {"a", 1, 'a'},
        {"\xc3\xa9x", 2, 0xe9},
        {"\xe2\x80\xae", 3, 0x202e},
        {"\xef\xbf\xbf", 3, 0xffff},
        {"\xf0\x90\x80\x80", 4, 0x10000},
        {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
        /* overlong, surrogates, too large, cut off, no first byte */
        {"\xc0\xaf", 0, 0},
        {"\xe0\x9f\xbf", 0, 0},
        {"\xf0\x8f\xbf\xbf", 0, 0},
        {"\xed\xa0\x80", 0, 0},
        {"\xf4\x90\x80\x80", 0, 0},
        {"\xe2\x80", 0, 0},
        {"\xe2(\xae", 0, 0},
        {"\x80", 0, 0},
        {"\xff", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t character = 0;
        struct slice text = guard_put(slice_from(cases[i].bytes));
        ck_assert_uint_eq(text_decode(text, &character), cases[i].length);
        if (cases[i].length > 0)
            ck_assert_uint_eq(character, cases[i].character);
    }
}
END_TEST

/* Unicode's Bidi_Control, its controls, and separators of lines; not what has a shape. */
START_TEST(what_steers_is_hidden) {
    static const uint32_t hidden[] = {0,      0x1b,   0x7f,   0x85,   0x9b,   0x61c,  0x200e,
                                      0x2028, 0x2029, 0x202a, 0x202e, 0x2066, 0x2069, 0xfeff};
    static const uint32_t seen[] = {' ', '~', 0xa0, 0xe9, 0x2010, 0x2027, 0x4e00, 0x1f600};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        ck_assert_msg(text_is_hidden(hidden[i]), "%x", hidden[i]);
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
        ck_assert_msg(!text_is_hidden(seen[i]), "%x", seen[i]);
}
END_TEST

Suite *text_suite(void) {
    const TTest *const tests[] = {utf8_is_read_to_the_letter, what_steers_is_hidden};
    return suite_of("text", tests, sizeof tests / sizeof *tests);
}
