#include "suites.h"

#include "http/framing.h"
#include "http/head_parser.h"

/* How a message whose head has these field lines is framed. */
static bool frame_request(struct framing *framing, const char *start_line, const char *lines) {
    char bytes[1024];
    struct http_head head;
    size_t length = (size_t)snprintf(bytes, sizeof bytes, "%s\r\n%s\r\n", start_line, lines);
    struct slice input = guard_put(slice_make(bytes, length));
    ssize_t used = http_head_parse_request(&head, input.base, input.length, 0);
    ck_assert_msg(used == (ssize_t)length, "\"%s\" is not a head", bytes);
    return framing_of_request(framing, &head);
}

static bool frame_response(struct framing *framing, const char *start_line, const char *lines,
                           enum http_method method) {
    char bytes[1024];
    struct http_head head;
    size_t length = (size_t)snprintf(bytes, sizeof bytes, "%s\r\n%s\r\n", start_line, lines);
    struct slice input = guard_put(slice_make(bytes, length));
    ssize_t used = http_head_parse_response(&head, input.base, input.length, 0);
    ck_assert_msg(used == (ssize_t)length, "\"%s\" is not a head", bytes);
    return framing_of_response(framing, &head, method);
}

static const char post[] = "POST / HTTP/1.1", ok[] = "HTTP/1.1 200 OK";

static void check_refused(const char *start_line, const char *lines, unsigned status) {
    struct framing framing;
    ck_assert_msg(!frame_request(&framing, start_line, lines), "a request with \"%s\"", lines);
    ck_assert_msg(framing.status == status, "%u for \"%s\"", framing.status, lines);
    ck_assert_ptr_nonnull(framing.error);
}

/* Neither in a request nor in a response. */
static void check_refused_both(const char *lines, unsigned status) {
    struct framing framing;
    check_refused(post, lines, status);
    ck_assert_msg(!frame_response(&framing, ok, lines, HTTP_METHOD_GET), "a response with \"%s\"",
                  lines);
    ck_assert_uint_eq(framing.status, status);
    ck_assert_ptr_nonnull(framing.error);
}

static void check_framed(const char *lines, enum framing_kind kind, uint64_t length) {
    struct framing framing;
    ck_assert_msg(frame_request(&framing, post, lines), "\"%s\": %s", lines, framing.error);
    ck_assert_int_eq(framing.kind, kind);
    ck_assert(framing.length == length);
    ck_assert_msg(frame_response(&framing, ok, lines, HTTP_METHOD_GET), "\"%s\"", lines);
    ck_assert_int_eq(framing.kind, kind == FRAMING_NONE ? FRAMING_CLOSE : kind);
    ck_assert(framing.length == length);
}

START_TEST(plain_cases) {
    check_framed("", FRAMING_NONE, 0);
    check_framed("Content-Length: 0\r\n", FRAMING_LENGTH, 0);
    check_framed("content-length:5\r\n", FRAMING_LENGTH, 5);
    check_framed("Content-Length: \t 5 \t\r\n", FRAMING_LENGTH, 5);
    check_framed("Content-Length: 9223372036854775807\r\n", FRAMING_LENGTH, INT64_MAX);
    check_framed("Transfer-Encoding: chunked\r\n", FRAMING_CHUNKED, 0);
    check_framed("TRANSFER-ENCODING:\tChunKED \r\n", FRAMING_CHUNKED, 0);
    check_framed("X-Transfer-Encoding: chunked\r\nContent-Length-X: 5\r\n", FRAMING_NONE, 0);
}
END_TEST

START_TEST(lengths_that_are_not_numbers) {
    static const char *const values[] = {
        "",
        "+5",
        "-5",
        "-0",
        "5 5",
        "0x5",
        "5a",
        "5.0",
        "5e1",
        "a",
        "\"5\"",
        "5;",
        "5;a",
        "5\t6",
        "5\xa0",
        "\xb5",
        "9223372036854775808",
        "18446744073709551616",
        "18446744073709551621",
        "99999999999999999999999999",
        ",",
        "5,",
        ",5",
        "5,,5",
        "5, +5",
        "5,a",
        "5, ",
    };
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char lines[128];
        snprintf(lines, sizeof lines, "Content-Length: %s\r\n", values[i]);
        check_refused_both(lines, 400);
    }
}
END_TEST

START_TEST(several_lengths) {
    check_framed("Content-Length: 5\r\nContent-Length: 5\r\n", FRAMING_LENGTH, 5);
    check_framed("Content-Length: 5, 5\r\n", FRAMING_LENGTH, 5);
    check_framed("Content-Length: 5,5\r\nA: b\r\ncontent-length: 5\r\n", FRAMING_LENGTH, 5);
    check_refused_both("Content-Length: 5\r\nContent-Length: 6\r\n", 400);
    check_refused_both("Content-Length: 6\r\nA: b\r\nContent-Length: 5\r\n", 400);
    check_refused_both("Content-Length: 5, 6\r\n", 400);
    check_refused_both("Content-Length: 5, 5, 6\r\n", 400);
    check_refused_both("Content-Length: 5, 5\r\nContent-Length: 6\r\n", 400);
    check_refused_both("Content-Length: 5\r\nContent-Length: 05\r\n", 400);
    check_refused_both("Content-Length: 0\r\nContent-Length: 00\r\n", 400);
    check_refused_both("Content-Length: 5\r\nContent-Length:\r\n", 400);
    check_refused_both("Content-Length:\r\nContent-Length: 5\r\n", 400);
}
END_TEST

/* Every way of writing a length against every way of writing a coding. */
START_TEST(length_and_coding_together) {
    static const char *const lengths[] = {
        "Content-Length: 5\r\n",
        "Content-Length: 0\r\n",
        "content-length:5\r\nContent-Length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5 \r\n",
        "Content-Length:\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
    };
    static const char *const codings[] = {
        "Transfer-Encoding: chunked\r\n",
        "transfer-encoding: CHUNKED\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        for (size_t j = 0; j < COUNT_OF(codings); j++) {
            char lines[256];
            snprintf(lines, sizeof lines, "%s%s", lengths[i], codings[j]);
            check_refused_both(lines, 400);
            snprintf(lines, sizeof lines, "%sA: b\r\n%s", codings[j], lengths[i]);
            check_refused_both(lines, 400);
        }
    }
}
END_TEST

START_TEST(codings) {
    static const char *const bad[] = {
        "",
        "identity",
        "gzip",
        "chunked, gzip",
        "chunked, identity",
        "xchunked",
        "chunkedx",
        "chunked;a=b",
        "\"chunked\"",
        "chunked chunked",
        "chunked,",
        ",chunked",
        "gzip,,chunked",
        "chunked, chunked",
        "chunked, gzip, chunked",
        "chunked\xa0",
        "\240chunked",
        "chunked\tx",
        "chun ked",
        "'chunked'",
        "x=\",chunked",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char lines[128];
        snprintf(lines, sizeof lines, "Transfer-Encoding: %s\r\n", bad[i]);
        /* The one that ends in chunked has a coding that is not known before it. */
        check_refused_both(lines, strcmp(bad[i], "x=\",chunked") == 0 ? 501 : 400);
    }
    check_refused_both("Transfer-Encoding: gzip, chunked\r\n", 501);
    check_refused_both("Transfer-Encoding: identity, chunked\r\n", 501);
    check_refused_both("Transfer-Encoding: gzip\r\nA: b\r\nTransfer-Encoding: chunked\r\n", 501);
}
END_TEST

START_TEST(several_coding_fields) {
    check_refused_both("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400);
    check_refused_both("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400);
    check_refused_both("Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n", 400);
    check_refused_both("Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n", 400);
    check_refused_both("Transfer-Encoding: chunked\r\ntransfer-encoding: x\r\n", 400);
}
END_TEST

START_TEST(http_1_0) {
    struct framing framing;
    check_refused("POST / HTTP/1.0", "Transfer-Encoding: chunked\r\n", 400);
    check_refused("POST / HTTP/1.0", "Transfer-Encoding: gzip, chunked\r\n", 400);
    ck_assert(!frame_response(&framing, "HTTP/1.0 200 OK", "Transfer-Encoding: chunked\r\n",
                              HTTP_METHOD_GET));
    ck_assert(frame_request(&framing, "POST / HTTP/1.0", "Content-Length: 5\r\n"));
    ck_assert_int_eq(framing.kind, FRAMING_LENGTH);
}
END_TEST

/* What would make a head ambiguous before framing is asked: the head is refused as a whole. */
START_TEST(disguised_fields_are_no_heads) {
    static const struct slice lines[] = {
        {"Transfer-Encoding : chunked\r\n", 29},      {"Content-Length : 5\r\n", 20},
        {"Transfer-Encoding:\r\n chunked\r\n", 30},   {"Transfer-Encoding: x\r\n\tchunked\r\n", 32},
        {"Content-Length: 5\r\n 6\r\n", 23},          {"A: b\nTransfer-Encoding: chunked\r\n", 33},
        {"A: b\rTransfer-Encoding: chunked\r\n", 33}, {"Transfer-Encoding: chunked\n", 27},
        {"Transfer-Encoding: chun\0ked\r\n", 29},     {"Transfer-Encoding\0: chunked\r\n", 29},
        {"Transfer-Encoding: chunked\x0b\r\n", 29},   {"Content-Length: 5\r\r\n", 20},
        {" Transfer-Encoding: chunked\r\n", 29},      {"Transfer_Encoding\x08: chunked\r\n", 29},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char bytes[256];
        struct http_head head;
        int start = sprintf(bytes, "%s\r\nHost: a\r\n", post);
        memcpy(bytes + start, lines[i].base, lines[i].length);
        memcpy(bytes + start + lines[i].length, "\r\n", 2);
        struct slice input = guard_put(slice_make(bytes, (size_t)start + lines[i].length + 2));
        ck_assert_msg(http_head_parse_request(&head, input.base, input.length, 0) ==
                          -HTTP_ERROR_SYNTAX,
                      "\"%.*s\" is taken for a head", SLICE_PRINT(lines[i]));
    }
}
END_TEST

START_TEST(connect_requests_have_no_body) {
    struct framing framing;
    static const char connect[] = "CONNECT a:443 HTTP/1.1";
    ck_assert(frame_request(&framing, connect, ""));
    ck_assert_int_eq(framing.kind, FRAMING_NONE);
    ck_assert(frame_request(&framing, connect, "Content-Length: 0\r\n"));
    ck_assert_int_eq(framing.kind, FRAMING_NONE);
    check_refused(connect, "Content-Length: 5\r\n", 400);
    check_refused(connect, "Transfer-Encoding: chunked\r\n", 400);
}
END_TEST

START_TEST(responses_without_a_body) {
    static const char *const lines[] = {"", "Content-Length: 5\r\n",
                                        "Transfer-Encoding: chunked\r\n", "Content-Length: x\r\n"};
    struct framing framing;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        ck_assert(frame_response(&framing, ok, lines[i], HTTP_METHOD_HEAD));
        ck_assert_int_eq(framing.kind, FRAMING_NONE);
        ck_assert(frame_response(&framing, ok, lines[i], HTTP_METHOD_CONNECT));
        ck_assert_int_eq(framing.kind, FRAMING_NONE);
        ck_assert(frame_response(&framing, "HTTP/1.1 304 X", lines[i], HTTP_METHOD_GET));
        ck_assert_int_eq(framing.kind, FRAMING_NONE);
        ck_assert(frame_response(&framing, "HTTP/1.1 204 X", lines[i], HTTP_METHOD_GET));
        ck_assert_int_eq(framing.kind, FRAMING_NONE);
        ck_assert(frame_response(&framing, "HTTP/1.1 100 X", lines[i], HTTP_METHOD_POST));
        ck_assert_int_eq(framing.kind, FRAMING_NONE);
        ck_assert(frame_response(&framing, "HTTP/1.1 101 X", lines[i], HTTP_METHOD_GET));
        ck_assert_int_eq(framing.kind, FRAMING_NONE);
    }
    ck_assert(
        frame_response(&framing, "HTTP/1.1 407 X", "Content-Length: 5\r\n", HTTP_METHOD_CONNECT));
    ck_assert_int_eq(framing.kind, FRAMING_LENGTH);
    ck_assert(frame_response(&framing, "HTTP/1.1 200 X", "", HTTP_METHOD_GET));
    ck_assert_int_eq(framing.kind, FRAMING_CLOSE);
}
END_TEST

static bool keeps_alive(const char *version, const char *lines) {
    char bytes[256];
    struct http_head head;
    int length = snprintf(bytes, sizeof bytes, "GET / %s\r\n%s\r\n", version, lines);
    ck_assert_int_eq(http_head_parse_request(&head, bytes, (size_t)length, 0), length);
    return framing_keeps_alive(&head);
}

START_TEST(keeping_alive) {
    ck_assert(keeps_alive("HTTP/1.1", ""));
    ck_assert(keeps_alive("HTTP/1.1", "Connection: upgrade\r\n"));
    ck_assert(!keeps_alive("HTTP/1.1", "Connection: close\r\n"));
    ck_assert(!keeps_alive("HTTP/1.1", "Connection: a, CLOSE\r\n"));
    ck_assert(!keeps_alive("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
    ck_assert(keeps_alive("HTTP/1.1", "Connection: closed\r\n"));
    ck_assert(!keeps_alive("HTTP/1.0", ""));
    ck_assert(keeps_alive("HTTP/1.0", "Connection: Keep-Alive\r\n"));
    ck_assert(!keeps_alive("HTTP/1.0", "Connection: keep-alive, close\r\n"));
    ck_assert(!keeps_alive("HTTP/1.0", "Keep-Alive: timeout=5\r\n"));
}
END_TEST

Suite *framing_suite(void) {
    const TTest *const tests[] = {
        plain_cases,
        lengths_that_are_not_numbers,
        several_lengths,
        length_and_coding_together,
        codings,
        several_coding_fields,
        http_1_0,
        disguised_fields_are_no_heads,
        connect_requests_have_no_body,
        responses_without_a_body,
        keeping_alive,
    };
    return suite_of("framing", tests, COUNT_OF(tests));
}
