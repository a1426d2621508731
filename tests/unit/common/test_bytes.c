#include "suites.h"

#include "http/bytes.h"

/* Looked at in pieces of several widths: any byte must count in each of them, and none behind. */
static void check_skip(const char *(*skip)(const char *at, const char *end), unsigned class) {
    char text[40];
    for (size_t length = 0; length <= sizeof text; length++)
        for (size_t at = 0; at <= length; at++)
            for (unsigned byte = 0; byte < 256; byte++) {
                memset(text, 'x', length);
                if (at < length)
                    text[at] = (char)byte;
                struct slice input = guard_put(slice_make(text, length));
                size_t expected = bytes_is((char)byte, class) ? length : at;
                const char *stop = skip(input.base, input.base + length);
                EXPECT(stop == input.base + expected, "byte %u at %zu of %zu stops it at %td", byte,
                       at, length, stop - input.base);
            }
}

static const char *skip_target(const char *at, const char *end) {
    return bytes_skip(at, end, BYTES_TARGET);
}

static const char *skip_text(const char *at, const char *end) {
    return bytes_skip(at, end, BYTES_TEXT);
}

static const char *skip_plain(const char *at, const char *end) {
    return bytes_skip(at, end, BYTES_PLAIN);
}

START_TEST(skip_at_every_place) {
    check_skip(skip_target, BYTES_TARGET);
    check_skip(skip_text, BYTES_TEXT);
    check_skip(skip_plain, BYTES_PLAIN);
    check_skip(bytes_skip_token, BYTES_TOKEN);
}
END_TEST

Suite *bytes_suite(void) {
    const TTest *const tests[] = {skip_at_every_place};
    return suite_of("bytes", tests, COUNT_OF(tests));
}
