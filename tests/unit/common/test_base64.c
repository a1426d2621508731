#include "suites.h"

#include "base/base64.h"

#include <stdint.h>
#include <string.h>

START_TEST(what_was_written_is_read) {
    char bytes[64], text[BASE64_ROOM(64)], again[64];
    for (size_t length = 1; length <= sizeof bytes; length++) {
        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)(i * 37 + length);
        size_t written = base64_write(text, guard_put(slice_make(bytes, length)));
        ck_assert_uint_eq(written, BASE64_ROOM(length));
        ck_assert_uint_eq(base64_decode(guard_put(slice_make(text, written)), again, length),
                          length);
        ck_assert_mem_eq(again, bytes, length);
        ck_assert_uint_eq(base64_decode(slice_make(text, written), again, length - 1), SIZE_MAX);
    }
}
END_TEST

/* Each text that is read has one spelling. The vectors are those of RFC 4648 §10. */
START_TEST(one_text_for_each_sequence_of_bytes) {
    static const struct {
        const char *text, *plain, *url; /* what each reads; NULL: malformed */
    } cases[] = {
        {"", NULL, ""},
        {"Zg==", "f", NULL},
        {"Zm8=", "fo", NULL},
        {"Zm9v", "foo", "foo"},
        {"Zm9vYg==", "foob", NULL},
        {"Zm9vYmE=", "fooba", NULL},
        {"Zm9vYmFy", "foobar", "foobar"},
        {"Zg", NULL, "f"},
        {"Zm8", NULL, "fo"},
        {"+/+/", "\xfb\xff\xbf", NULL},
        {"-_-_", NULL, "\xfb\xff\xbf"},
        /* bits behind the last byte, blanks, padding in the middle, too much or alone, one digit */
        {"Zh==", NULL, NULL},
        {"Zm9=", NULL, NULL},
        {"Zh", NULL, NULL},
        {"Zm9", NULL, NULL},
        {"Zm9v Zm9v", NULL, NULL},
        {"Zm9v\n", NULL, NULL},
        {"Zg==Zg==", NULL, NULL},
        {"Z===", NULL, NULL},
        {"====", NULL, NULL},
        {"Zm9v====", NULL, NULL},
        {"Z", NULL, NULL},
        {"Zm9vZ", NULL, NULL},
        {"Zm9\xc3", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        struct slice text = guard_put(slice_from(cases[i].text));
        const char *expected[] = {cases[i].plain, cases[i].url};
        size_t lengths[] = {base64_decode(text, out, sizeof out), 0};
        if (expected[0] != NULL)
            ck_assert_mem_eq(out, expected[0], strlen(expected[0]));
        lengths[1] = base64url_decode(text, out, sizeof out);
        if (expected[1] != NULL)
            ck_assert_mem_eq(out, expected[1], strlen(expected[1]));
        for (size_t k = 0; k < 2; k++)
            ck_assert_msg(lengths[k] == (expected[k] != NULL ? strlen(expected[k]) : SIZE_MAX),
                          "\"%s\" (%zu)", cases[i].text, k);
    }
}
END_TEST

Suite *base64_suite(void) {
    const TTest *const tests[] = {what_was_written_is_read, one_text_for_each_sequence_of_bytes};
    return suite_of("base64", tests, sizeof tests / sizeof *tests);
}
