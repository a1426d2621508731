#include "suites.h"

#include "client/first_bytes.h"

static void check_judged(const char *text, size_t length, enum first_bytes expected) {
    struct slice bytes = guard_put(slice_make(text, length));
    ck_assert_msg(first_bytes_judge(bytes) == expected, "%zu bytes of \"%s\"", length, text);
}

/* The last byte decides, and no byte before it does. */
static void check_decides(const char *text, enum first_bytes expected) {
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        check_judged(text, i, FIRST_BYTES_MORE);
    check_judged(text, length, expected);
}

START_TEST(the_first_bytes_tell_the_protocol) {
    check_decides("GET /", FIRST_BYTES_HTTP);
    check_decides("\r\n\r\nM-SEARCH *", FIRST_BYTES_HTTP);
    check_decides("POST h", FIRST_BYTES_HTTP);
    check_decides("CONNECT w", FIRST_BYTES_HTTP);
    check_decides("PRI *", FIRST_BYTES_HTTP);
    check_decides("\x16\x03", FIRST_BYTES_TLS);
    check_decides("\x16\x02", FIRST_BYTES_OTHER);
    check_decides("SSH-2.", FIRST_BYTES_OTHER);
    check_decides("EHLO w", FIRST_BYTES_OTHER);
    check_decides("GET\t", FIRST_BYTES_OTHER);
    check_decides("GET\r", FIRST_BYTES_OTHER);
    check_decides(" ", FIRST_BYTES_OTHER);
    check_decides("\xff\xff\xff\xff", FIRST_BYTES_OTHER);
    check_decides("\x80\x2e\x01\x03", FIRST_BYTES_TLS); /* in the form of SSLv2 */
    check_decides("\x80\x2e\x01\x02", FIRST_BYTES_OTHER);
    check_decides("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", FIRST_BYTES_OTHER);
    check_judged("\0GET /", 1, FIRST_BYTES_OTHER);
}
END_TEST

static void check_preface(const char *text, size_t length, enum http2_preface expected) {
    struct slice bytes = guard_put(slice_make(text, length));
    ck_assert_msg(first_bytes_preface(bytes) == expected, "%zu bytes of \"%s\"", length, text);
}

/* RFC 9113 §3.4: the preface has 24 bytes. */
START_TEST(the_preface_of_http2_comes_in_pieces) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4";
    for (size_t i = 0; i < 24; i++)
        check_preface(preface, i, HTTP2_PREFACE_PART);
    for (size_t i = 24; i < sizeof preface; i++)
        check_preface(preface, i, HTTP2_PREFACE_WHOLE);
    check_preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r", 24, HTTP2_PREFACE_NONE);
    check_preface("PRI * HTTP/2.0\r\n\r\nGET / HTTP/1.1\r\n\r\n", 36, HTTP2_PREFACE_NONE);
    check_preface("\r\nPRI", 5, HTTP2_PREFACE_NONE);
    check_preface("pri", 3, HTTP2_PREFACE_NONE);
}
END_TEST

Suite *first_bytes_suite(void) {
    Suite *suite = suite_create("first_bytes");
    TCase *group = tcase_create("first_bytes");
    tcase_add_test(group, the_first_bytes_tell_the_protocol);
    tcase_add_test(group, the_preface_of_http2_comes_in_pieces);
    suite_add_tcase(suite, group);
    return suite;
}
