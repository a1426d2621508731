/* Fields of HTTP/2 and the heads that they become: what RFC 9113 §8.2 and §8.3 allow, and what they
 * call malformed. */
#include "suites.h"

#include "http2/fields.h"
#include "http2/hpack_encode.h"
#include "http2/stream.h"

#include <stdio.h>

enum { LIST_TEXT = 1 << 17, LIST_FIELDS = 400, LIST_SIZE = 65536 };

static struct hpack_list list;
static struct http_head head;
static struct http2_meaning meaning;
static char list_text[LIST_TEXT];
static struct hpack_field list_fields[LIST_FIELDS];

/* A list from "name: value\n" lines, by way of a block. A name may begin with a colon. */
static void list_from(const char *lines) {
    static char block[LIST_SIZE];
    char *at = block;
    struct hpack_decoder decoder;
    while (*lines != '\0') {
        size_t name = 1 + strcspn(lines + 1, ":"), line = strcspn(lines, "\n");
        struct slice value = slice_make(lines + name + 2, line - name - 2);
        *at++ = 0;
        *at++ = (char)name;
        at = slice_put(at, slice_make(lines, name));
        ck_assert_uint_lt(value.length, 127 + 128);
        if (value.length < 127) {
            *at++ = (char)value.length;
        } else {
            *at++ = 127;
            *at++ = (char)(value.length - 127);
        }
        at = slice_put(at, value);
        lines += line + 1;
    }
    hpack_decoder_init(&decoder, 4096);
    hpack_list_init(&list, list_text, sizeof list_text, list_fields, LIST_FIELDS, LIST_SIZE);
    ck_assert_int_eq(hpack_decode(&decoder, slice_make(block, (size_t)(at - block)), &list),
                     HPACK_GOOD);
    hpack_decoder_release(&decoder);
}

static enum http2_fields_result request_of(const char *lines) {
    list_from(lines);
    return http2_fields_to_request(&list, true, &head, &meaning);
}

static enum http2_fields_result response_of(const char *lines) {
    list_from(lines);
    return http2_fields_to_response(&list, &head, &meaning);
}

/* The head as text of HTTP/1.1. */
static const char *shown_head(size_t (*write)(const struct http_head *, char *, size_t)) {
    static char text[LIST_TEXT];
    size_t length = write(&head, text, sizeof text);
    text[length] = '\0';
    return text;
}

#define GET ":method: GET\n:scheme: https\n:path: /a?b\n:authority: example.com\n"

START_TEST(requests_become_heads) {
    ck_assert_int_eq(request_of(GET "user-agent: x\ncontent-length: 12\nte: trailers\nx-y: \xe9\n"),
                     HTTP2_FIELDS_GOOD);
    ck_assert_str_eq(shown_head(http_head_write_request),
                     "GET /a?b HTTP/1.1\r\nHost: example.com\r\nuser-agent: x\r\n"
                     "content-length: 12\r\nte: trailers\r\nx-y: \xe9\r\n");
    ck_assert(slice_equal(meaning.scheme, SLICE("https")));
    ck_assert(slice_equal(meaning.path, SLICE("/a?b")));
    ck_assert(slice_equal(meaning.authority, SLICE("example.com")));
    ck_assert_uint_eq(meaning.protocol.length, 0);
    ck_assert(meaning.takes_trailers);
    ck_assert_int_eq(meaning.content_length, 12);
    ck_assert_uint_eq(head.version, 20);
    ck_assert_int_eq(head.method_id, HTTP_METHOD_GET);
    ck_assert(http_head_has(&head, HTTP_USER_AGENT) && http_head_has(&head, HTTP_HOST));
    ck_assert(http2_request_make_absolute(&list, &head, &meaning));
    ck_assert(slice_equal(head.target, SLICE("https://example.com/a?b")));
    ck_assert_int_eq(request_of(GET), HTTP2_FIELDS_GOOD);
    ck_assert_int_eq(meaning.content_length, -1);
    ck_assert(!meaning.takes_trailers);
}
END_TEST

START_TEST(host_stands_in_for_the_authority) {
    ck_assert_int_eq(request_of(":method: GET\n:scheme: http\n:path: /\nx: y\nhost: a.org:8080\n"),
                     HTTP2_FIELDS_GOOD);
    ck_assert_str_eq(shown_head(http_head_write_request),
                     "GET / HTTP/1.1\r\nHost: a.org:8080\r\nx: y\r\n");
    ck_assert(http2_request_make_absolute(&list, &head, &meaning));
    ck_assert(slice_equal(head.target, SLICE("http://a.org:8080/")));
    ck_assert_int_eq(request_of(GET "host: Example.com:443\n"), HTTP2_FIELDS_GOOD);
    ck_assert_str_eq(shown_head(http_head_write_request),
                     "GET /a?b HTTP/1.1\r\nHost: example.com\r\n");
}
END_TEST

START_TEST(options_may_be_about_the_server) {
    ck_assert_int_eq(request_of(":method: OPTIONS\n:scheme: http\n:path: *\n:authority: a.org\n"),
                     HTTP2_FIELDS_GOOD);
    ck_assert(slice_equal(head.target, SLICE("*")));
    ck_assert(http2_request_make_absolute(&list, &head, &meaning));
    ck_assert(slice_equal(head.target, SLICE("http://a.org")));
}
END_TEST

START_TEST(connect_has_an_authority_alone) {
    ck_assert_int_eq(request_of(":method: CONNECT\n:authority: a.org:443\n"), HTTP2_FIELDS_GOOD);
    ck_assert_str_eq(shown_head(http_head_write_request),
                     "CONNECT a.org:443 HTTP/1.1\r\nHost: a.org:443\r\n");
    ck_assert(http2_request_make_absolute(&list, &head, &meaning));
    ck_assert(slice_equal(head.target, SLICE("a.org:443")));
}
END_TEST

#define WEBSOCKET                                                                                  \
    ":method: CONNECT\n:protocol: websocket\n:scheme: https\n:path: /chat\n:authority: a.org\n"

/* RFC 8441 §4 */
START_TEST(extended_connect_is_an_upgrade) {
    ck_assert_int_eq(request_of(WEBSOCKET "sec-websocket-version: 13\n"), HTTP2_FIELDS_GOOD);
    ck_assert_str_eq(shown_head(http_head_write_request),
                     "GET /chat HTTP/1.1\r\nHost: a.org\r\nsec-websocket-version: 13\r\n");
    ck_assert_int_eq(head.method_id, HTTP_METHOD_GET);
    ck_assert(slice_equal(meaning.protocol, SLICE("websocket")));
    ck_assert_int_eq(http2_fields_to_request(&list, false, &head, &meaning),
                     HTTP2_FIELDS_MALFORMED);
    ck_assert_int_eq(request_of(GET ":protocol: websocket\n"), HTTP2_FIELDS_MALFORMED);
}
END_TEST

START_TEST(cookies_are_joined) {
    ck_assert_int_eq(request_of(GET "cookie: a=b\nx: y\ncookie: c=d\ncookie: e=f\n"),
                     HTTP2_FIELDS_GOOD);
    ck_assert_str_eq(shown_head(http_head_write_request),
                     "GET /a?b HTTP/1.1\r\nHost: example.com\r\ncookie: a=b; c=d; e=f\r\nx: y\r\n");
    ck_assert_int_eq(request_of(GET "cookie: \ncookie: c=d\n"), HTTP2_FIELDS_GOOD);
    ck_assert(slice_equal(http_head_value(&head, HTTP_COOKIE), SLICE("c=d")));
    ck_assert_int_eq(request_of(GET "cookie: a=b\ncookie: \ncookie: \n"), HTTP2_FIELDS_GOOD);
    ck_assert(slice_equal(http_head_value(&head, HTTP_COOKIE), SLICE("a=b")));
    ck_assert_int_eq(request_of(GET "cookie: \ncookie: \n"), HTTP2_FIELDS_GOOD);
    ck_assert(slice_equal(http_head_value(&head, HTTP_COOKIE), SLICE("")));
    ck_assert_int_eq(request_of(GET "cookie: a=b\n"), HTTP2_FIELDS_GOOD);
    ck_assert(slice_equal(http_head_value(&head, HTTP_COOKIE), SLICE("a=b")));
    /* a list that is full has room for them and for the absolute form */
    ck_assert_int_eq(request_of(GET "cookie: a=b\ncookie: c=d\n"), HTTP2_FIELDS_GOOD);
    list.text_room = HPACK_LIST_TEXT(list.size);
    ck_assert_int_eq(http2_fields_to_request(&list, true, &head, &meaning), HTTP2_FIELDS_GOOD);
    ck_assert(http2_request_make_absolute(&list, &head, &meaning));
    list.text_room = list.text_used;
    ck_assert_int_eq(http2_fields_to_request(&list, true, &head, &meaning), HTTP2_FIELDS_TOO_LARGE);
    ck_assert_uint_eq(head.field_count, 0);
}
END_TEST

#define PSEUDO(method, scheme, path, authority)                                                    \
    ":method: " method "\n:scheme: " scheme "\n:path: " path "\n:authority: " authority "\n"

static const char *const malformed_requests[] = {
    "",
    "x: y\n",
    ":method: GET\n",
    ":scheme: http\n:path: /\n:authority: a\n",
    ":method: GET\n:path: /\n:authority: a\n",
    ":method: GET\n:scheme: http\n:authority: a\n",
    ":method: GET\n:scheme: http\n:path: /\n",
    /* §8.3.1: "MUST NOT be empty" */
    PSEUDO("GET", "http", "", "a"),
    PSEUDO("GET", "", "/", "a"),
    PSEUDO("", "http", "/", "a"),
    PSEUDO("GET", "http", "/", ""),
    ":method: GET\n:scheme: http\n:path: /\nhost: \n",
    /* values that are none */
    PSEUDO("G T", "http", "/", "a"),
    PSEUDO("GET /x HTTP/1.1", "http", "/", "a"),
    PSEUDO("G\rT", "http", "/", "a"),
    PSEUDO("GET", "ht tp", "/", "a"),
    PSEUDO("GET", "1http", "/", "a"),
    PSEUDO("GET", "http://x/", "/", "a"),
    PSEUDO("GET", "http", "*", "a"),
    PSEUDO("GET", "http", "a", "a"),
    PSEUDO("GET", "http", "http://b/", "a"),
    PSEUDO("GET", "http", "/a b", "a"),
    PSEUDO("GET", "http", "/a\tb", "a"),
    PSEUDO("GET", "http", "/a\rb", "a"),
    PSEUDO("GET", "http", "/a#b", "a"),
    PSEUDO("GET", "http", "/\x7f", "a"),
    PSEUDO("GET", "http", "/ ", "a"),
    PSEUDO("OPTIONS", "http", "**", "a"),
    PSEUDO("GET", "http", "/", "u@a"),
    PSEUDO("GET", "http", "/", "u:p@a"),
    PSEUDO("GET", "http", "/", "a/b"),
    PSEUDO("GET", "http", "/", "a:b"),
    PSEUDO("GET", "http", "/", "a:99999"),
    PSEUDO("GET", "http", "/", "a b"),
    PSEUDO("GET", "http", "/", "a,b"),
    PSEUDO("GET", "http", "/", "[::1"),
    /* twice, late, unknown, of a response, in upper case */
    GET ":method: GET\n",
    GET ":path: /\n",
    GET ":authority: example.com\n",
    ":method: GET\n:scheme: http\n:path: /\nx: y\n:authority: a\n",
    GET ":unknown: x\n",
    GET ":status: 200\n",
    ":Method: GET\n:scheme: http\n:path: /\n:authority: a\n",
    GET "X: y\n",
    GET "hOst: example.com\n",
    /* names and values */
    GET "a b: c\n",
    GET "a\r: c\n",
    GET "a\x80: c\n",
    GET "a: \x01\n",
    GET "a: b\rc\n",
    GET "a:  b\n",
    GET "a: b \n",
    GET "a: \tb\n",
    /* §8.2.2 */
    GET "connection: close\n",
    GET "keep-alive: 5\n",
    GET "proxy-connection: keep-alive\n",
    GET "transfer-encoding: chunked\n",
    GET "upgrade: h2c\n",
    GET "te: gzip\n",
    GET "te: trailers, gzip\n",
    GET "te: \n",
    /* Host */
    GET "host: example.org\n",
    GET "host: example.com:80\n",
    GET "host: example.com\nhost: example.com\n",
    GET "host: u@example.com\n",
    GET "host: \n",
    ":method: GET\n:scheme: http\n:path: /\nhost: a\nhost: b\n",
    ":method: GET\n:scheme: http\n:path: /\nhost: a@b\n",
    /* content-length */
    GET "content-length: \n",
    GET "content-length: -1\n",
    GET "content-length: +1\n",
    GET "content-length: 1x\n",
    GET "content-length: 0x1\n",
    GET "content-length: 1, 1\n",
    GET "content-length: 18446744073709551621\n",
    GET "content-length: 9223372036854775808\n",
    GET "content-length: 1\ncontent-length: 2\n",
    GET "content-length: 1\ncontent-length: 01\n",
    /* §8.5 */
    ":method: CONNECT\n",
    ":method: CONNECT\nhost: a:443\n",
    ":method: CONNECT\n:authority: a:443\n:scheme: https\n",
    ":method: CONNECT\n:authority: a:443\n:path: /\n",
    ":method: CONNECT\n:authority: a:443\ncontent-length: 5\n",
    ":method: CONNECT\n:authority: u@a:443\n",
    /* RFC 8441 §4 */
    ":method: CONNECT\n:authority: a\n:protocol: websocket\n",
    ":method: CONNECT\n:authority: a\n:protocol: websocket\n:scheme: https\n",
    ":method: CONNECT\n:authority: a\n:protocol: \n:scheme: https\n:path: /\n",
    ":method: CONNECT\n:authority: a\n:protocol: a b\n:scheme: https\n:path: /\n",
};

START_TEST(malformed_requests_are_refused) {
    for (size_t i = 0; i < COUNT_OF(malformed_requests); i++) {
        ck_assert_msg(request_of(malformed_requests[i]) == HTTP2_FIELDS_MALFORMED, "%s",
                      malformed_requests[i]);
        ck_assert_ptr_nonnull(meaning.error);
        ck_assert_uint_eq(head.field_count, 0);
    }
}
END_TEST

START_TEST(nul_is_refused) {
    static const char *const blocks[] = {"\x82\x87\x84\x41\1a\0\1b\1\0", "\x82\x87\x84\x41\1\0",
                                         "\x82\x87\x04\2/\0\x41\1a",
                                         "\x82\x87\x84\x41\1a\0\1\0\1b"};
    static const size_t lengths[] = {11, 6, 9, 11};
    struct hpack_decoder decoder;
    hpack_list_init(&list, list_text, sizeof list_text, list_fields, LIST_FIELDS, LIST_SIZE);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        hpack_decoder_init(&decoder, 4096);
        ck_assert_int_eq(hpack_decode(&decoder, slice_make(blocks[i], lengths[i]), &list),
                         HPACK_GOOD);
        ck_assert_int_eq(http2_fields_to_request(&list, false, &head, &meaning),
                         HTTP2_FIELDS_MALFORMED);
        hpack_decoder_release(&decoder);
    }
}
END_TEST

START_TEST(good_requests_are_taken) {
    static const char *const good[] = {
        GET "content-length: 0\n",
        GET "content-length: 9223372036854775807\n",
        GET "content-length: 5\ncontent-length: 5\n",
        GET "te: Trailers\n",
        GET "expect: 100-continue\n",
        GET "host: EXAMPLE.com.\n",
        PSEUDO("GET", "HTTP", "/", "[::1]:80"),
        PSEUDO("X-ANY", "http", "//", "a_b.c-d:"),
        PSEUDO("GET", "http", "/\xc3\xa9|\"<>^{}", "a"),
        PSEUDO("GET", "ftp", "/", "a"),
        ":authority: a\n:path: /\n:scheme: http\n:method: GET\n",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++)
        ck_assert_msg(request_of(good[i]) == HTTP2_FIELDS_GOOD, "%s: %s", good[i], meaning.error);
    ck_assert_int_eq(request_of(GET "content-length: 5\ncontent-length: 5\n"), HTTP2_FIELDS_GOOD);
    ck_assert_uint_eq(head.field_count, 2);
}
END_TEST

START_TEST(responses_become_heads) {
    ck_assert_int_eq(response_of(":status: 200\nserver: x\ncontent-length: 3\nset-cookie: a\n"
                                 "set-cookie: b\n"),
                     HTTP2_FIELDS_GOOD);
    ck_assert_str_eq(shown_head(http_head_write_response),
                     "HTTP/1.1 200 OK\r\nserver: x\r\ncontent-length: 3\r\nset-cookie: a\r\n"
                     "set-cookie: b\r\n");
    ck_assert_int_eq(meaning.content_length, 3);
    ck_assert_uint_eq(head.version, 20);
    ck_assert_int_eq(response_of(":status: 103\nlink: x\n"), HTTP2_FIELDS_GOOD);
    ck_assert_uint_eq(head.status, 103);
    ck_assert_int_eq(response_of(":status: 999\n"), HTTP2_FIELDS_GOOD);
}
END_TEST

START_TEST(malformed_responses_are_refused) {
    static const char *const bad[] = {
        "",
        "server: x\n",
        ":status: \n",
        ":status: 20\n",
        ":status: 2000\n",
        ":status: 099\n",
        ":status: 2x0\n",
        ":status: +20\n",
        ":status: 101\n",
        ":status: 200\n:status: 200\n",
        ":status: 200\n:path: /\n",
        "server: x\n:status: 200\n",
        ":status: 200\nconnection: close\n",
        ":status: 200\ntransfer-encoding: chunked\n",
        ":status: 200\nte: trailers\n",
        ":status: 200\nServer: x\n",
        ":status: 200\nserver: a\rb\n",
        ":status: 200\ncontent-length: x\n",
        ":status: 200\ncontent-length: 1\ncontent-length: 2\n",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_msg(response_of(bad[i]) == HTTP2_FIELDS_MALFORMED, "%s", bad[i]);
        ck_assert_ptr_nonnull(meaning.error);
    }
}
END_TEST

START_TEST(trailers_are_fields_alone) {
    list_from("grpc-status: 0\nx: y\n");
    ck_assert_int_eq(http2_fields_to_trailers(&list, true, &head, &meaning), HTTP2_FIELDS_GOOD);
    ck_assert_uint_eq(head.field_count, 2);
    static const char *const bad[] = {":status: 200\n", "x: y\n:path: /\n",    "X: y\n",
                                      "x: \x01\n",      "connection: close\n", "te: trailers\n"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        list_from(bad[i]);
        ck_assert_msg(http2_fields_to_trailers(&list, true, &head, &meaning) ==
                          HTTP2_FIELDS_MALFORMED,
                      "%s", bad[i]);
    }
}
END_TEST

/* "A field value MUST NOT start or end with an ASCII whitespace character" (RFC 9113 §8.2.1):
 * requests are refused, and in responses the white space is removed. */
START_TEST(blanks_around_a_value) {
    ck_assert_int_eq(request_of(GET "x: y \n"), HTTP2_FIELDS_MALFORMED);
    ck_assert_int_eq(request_of(GET "content-length: \t5\n"), HTTP2_FIELDS_MALFORMED);
    ck_assert_int_eq(response_of(":status: 200\nserver:  x y\t\ncontent-length: 3 \netag: \t \n"),
                     HTTP2_FIELDS_GOOD);
    ck_assert_str_eq(shown_head(http_head_write_response),
                     "HTTP/1.1 200 OK\r\nserver: x y\r\ncontent-length: 3\r\netag: \r\n");
    ck_assert_int_eq(meaning.content_length, 3);
    ck_assert(http_head_has(&head, HTTP_ETAG));
    static const char *const bad[] = {
        ":status: 200 \n",        ":status:  200\n",
        ":status: 200\nX:  y\n",  ":status: 200\nx: a\x01 \n",
        ":status: 200\nx : y\n",  ":status: 200\nconnection: close \n",
        ":status: 200\nx: \r \n", ":status: 200\ncontent-length: 1 \ncontent-length: 2\n",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_msg(response_of(bad[i]) == HTTP2_FIELDS_MALFORMED, "%s", bad[i]);
    list_from("x: y \n");
    ck_assert_int_eq(http2_fields_to_trailers(&list, true, &head, &meaning), HTTP2_FIELDS_GOOD);
    ck_assert(slice_equal(head.fields[0].value, SLICE("y")));
    ck_assert_int_eq(http2_fields_to_trailers(&list, false, &head, &meaning),
                     HTTP2_FIELDS_MALFORMED);
}
END_TEST

/* As many fields as a head of HTTP/1.1 may have, and one more. */
START_TEST(the_number_of_fields_is_bounded) {
    char lines[4096], *at = lines;
    at += sprintf(at, "%s", GET);
    for (unsigned i = 1; i < HTTP_FIELDS_MAX; i++)
        at += sprintf(at, "x%u: y\n", i);
    ck_assert_int_eq(request_of(lines), HTTP2_FIELDS_GOOD);
    ck_assert_uint_eq(head.field_count, HTTP_FIELDS_MAX);
    sprintf(at, "z: y\n");
    ck_assert_int_eq(request_of(lines), HTTP2_FIELDS_TOO_LARGE);
    ck_assert_uint_eq(head.field_count, 0);
    list.is_too_large = true;
    list.count = 0;
    ck_assert_int_eq(http2_fields_to_response(&list, &head, &meaning), HTTP2_FIELDS_TOO_LARGE);
}
END_TEST

START_TEST(priorities_are_read) {
    static const struct {
        const char *value;
        unsigned urgency;
        bool incremental;
    } values[] = {
        {"", 3, false},          {"u=1", 1, false},      {"u=0, i", 0, true},
        {"i, u=7", 7, true},     {"i=?1", 3, true},      {"i=?0", 3, false},
        {"u=8", 3, false},       {"u=-1", 3, false},     {"u=1.0", 3, false},
        {"u=\"1\"", 3, false},   {"i=1", 3, false},      {"u=1;x=2, i;y", 1, true},
        {"u=1, u=5", 5, false},  {"x=y, u=2", 2, false}, {"u=1,", 3, false},
        {"u=1 i", 3, false},     {"U=1", 3, false},      {" u=2 ", 2, false},
        {"u=(1 2), i", 3, true}, {"\x01", 3, false},
    };
    struct http2_priority priority;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        http2_priority_parse(guard_put(slice_from(values[i].value)), &priority);
        ck_assert_msg(priority.urgency == values[i].urgency &&
                          priority.is_incremental == values[i].incremental,
                      "%s", values[i].value);
    }
}
END_TEST

Suite *http2_fields_suite(void) {
    const TTest *const tests[] = {
        requests_become_heads,
        host_stands_in_for_the_authority,
        options_may_be_about_the_server,
        connect_has_an_authority_alone,
        extended_connect_is_an_upgrade,
        cookies_are_joined,
        malformed_requests_are_refused,
        nul_is_refused,
        good_requests_are_taken,
        responses_become_heads,
        malformed_responses_are_refused,
        trailers_are_fields_alone,
        blanks_around_a_value,
        the_number_of_fields_is_bounded,
        priorities_are_read,
    };
    return suite_of("http2_fields", tests, COUNT_OF(tests));
}
