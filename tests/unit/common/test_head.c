#include "suites.h"

#include "http/head_parser.h"
#include "http/trailer.h"

/* Heads that are parsed. What changes and writes them is tested in test_head_edit.c. */

struct kind {
    ssize_t (*parse)(struct http_head *, const char *, size_t, size_t);
};

static ssize_t parse_fields(struct http_head *head, const char *bytes, size_t length,
                            size_t checked) {
    (void)checked;
    return http_head_parse_fields(head, bytes, length);
}

static const struct kind requests = {http_head_parse_request};
static const struct kind responses = {http_head_parse_response};
static const struct kind icap_responses = {http_head_parse_icap_response};
static const struct kind fields = {parse_fields};

static ssize_t parse_guarded(const struct kind *kind, struct http_head *head, struct slice bytes,
                             size_t checked) {
    struct slice input = guard_put(bytes);
    return kind->parse(head, input.base, input.length, checked);
}

/* The same answer must come whatever part of the bytes was seen before. */
static void check_checked(const struct kind *kind, struct slice bytes, ssize_t expected) {
    struct http_head head;
    for (size_t checked = 0; checked <= bytes.length; checked++) {
        if (parse_guarded(kind, &head, slice_make(bytes.base, checked), 0) != 0)
            return;
        ssize_t result = parse_guarded(kind, &head, bytes, checked);
        EXPECT(result == expected, "\"%.*s\" gives %zd with %zu of %zu bytes seen, not %zd",
               SLICE_PRINT(bytes), result, checked, bytes.length, expected);
    }
}

/* Every shorter input needs more, and what stands behind the head does not matter. */
static void check_good(const struct kind *kind, struct http_head *head, struct slice bytes) {
    char longer[GUARD_MAX];
    for (size_t length = 0; length < bytes.length; length++) {
        ssize_t result = parse_guarded(kind, head, slice_make(bytes.base, length), 0);
        EXPECT(result == 0, "the first %zu bytes of \"%.*s\" give %zd", length, SLICE_PRINT(bytes),
               result);
        if (length % 16 == 1 || bytes.length < 256)
            check_checked(kind, slice_make(bytes.base, length), 0);
    }
    check_checked(kind, bytes, (ssize_t)bytes.length);
    memcpy(longer, bytes.base, bytes.length);
    memcpy(longer + bytes.length, "\0\r\nX: y\n", 8);
    ck_assert_int_eq(kind->parse(head, longer, bytes.length + 8, 0), bytes.length);
    ck_assert_int_eq(parse_guarded(kind, head, bytes, 0), bytes.length);
}

/* Once bad, bad with every longer input, and never good. */
static void check_bad(const struct kind *kind, struct slice bytes, enum http_error error) {
    struct http_head head;
    bool bad = false;
    for (size_t length = 0; length <= bytes.length; length++) {
        ssize_t result = parse_guarded(kind, &head, slice_make(bytes.base, length), 0);
        bad |= result < 0;
        EXPECT(result == (bad ? -(ssize_t)error : 0), "the first %zu bytes of \"%.*s\" give %zd",
               length, SLICE_PRINT(bytes), result);
    }
    EXPECT(bad, "\"%.*s\" is not refused", SLICE_PRINT(bytes));
    check_checked(kind, bytes, -(ssize_t)error);
}

static void check_field(const struct http_head *head, unsigned at, enum http_name id,
                        struct slice name, struct slice value) {
    ck_assert_uint_lt(at, head->field_count);
    ck_assert_int_eq(head->fields[at].id, id);
    ck_assert_slice_eq(head->fields[at].name, name);
    ck_assert_slice_eq(head->fields[at].value, value);
}

START_TEST(a_request) {
    struct http_head head;
    check_good(&requests, &head,
               SLICE("GET http://example.com/a?b=c HTTP/1.1\r\n"
                     "Host: example.com\r\n"
                     "X-Other:\t a b, c \t \r\n"
                     "content-LENGTH:5\r\n"
                     "Empty:\r\n"
                     "Blank: \t \r\n"
                     "\r\n"));
    ck_assert_slice_eq(head.method, SLICE("GET"));
    ck_assert_int_eq(head.method_id, HTTP_METHOD_GET);
    ck_assert_slice_eq(head.target, SLICE("http://example.com/a?b=c"));
    ck_assert_uint_eq(head.version, 11);
    ck_assert_uint_eq(head.status, 0);
    ck_assert_uint_eq(head.field_count, 5);
    check_field(&head, 0, HTTP_HOST, SLICE("Host"), SLICE("example.com"));
    check_field(&head, 1, HTTP_OTHER, SLICE("X-Other"), SLICE("a b, c"));
    check_field(&head, 2, HTTP_CONTENT_LENGTH, SLICE("content-LENGTH"), SLICE("5"));
    check_field(&head, 3, HTTP_OTHER, SLICE("Empty"), SLICE(""));
    check_field(&head, 4, HTTP_OTHER, SLICE("Blank"), SLICE(""));
    ck_assert(http_head_has(&head, HTTP_HOST) && http_head_has(&head, HTTP_CONTENT_LENGTH));
    ck_assert(!http_head_has(&head, HTTP_CONNECTION));
}
END_TEST

START_TEST(a_response) {
    struct http_head head;
    check_good(&responses, &head,
               SLICE("HTTP/1.0 404 Not  here\xe9\t.\r\nETag: \"a\"\r\nVary: *\r\n\r\n"));
    ck_assert_uint_eq(head.version, 10);
    ck_assert_uint_eq(head.status, 404);
    ck_assert_slice_eq(head.reason, SLICE("Not  here\xe9\t."));
    ck_assert_uint_eq(head.method.length, 0);
    ck_assert_int_eq(head.method_id, HTTP_METHOD_OTHER);
    ck_assert_uint_eq(head.field_count, 2);
    check_field(&head, 0, HTTP_ETAG, SLICE("ETag"), SLICE("\"a\""));
    check_field(&head, 1, HTTP_VARY, SLICE("Vary"), SLICE("*"));
}
END_TEST

START_TEST(an_absent_reason) {
    struct http_head head;
    check_good(&responses, &head, SLICE("HTTP/1.1 200 \r\n\r\n"));
    ck_assert_uint_eq(head.reason.length, 0);
    check_good(&responses, &head, SLICE("HTTP/1.1 200\r\n\r\n"));
    ck_assert_uint_eq(head.status, 200);
    ck_assert_uint_eq(head.reason.length, 0);
}
END_TEST

START_TEST(an_icap_response) {
    struct http_head head;
    check_good(&icap_responses, &head, SLICE("ICAP/1.0 204 No Content\r\nISTag: \"x\"\r\n\r\n"));
    ck_assert_uint_eq(head.version, 10);
    ck_assert_uint_eq(head.status, 204);
    check_field(&head, 0, HTTP_ISTAG, SLICE("ISTag"), SLICE("\"x\""));
    check_bad(&icap_responses, SLICE("HTTP/1.0 200 OK\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_bad(&icap_responses, SLICE("ICAP/2.0 200 OK\r\n\r\n"), HTTP_ERROR_VERSION);
    check_bad(&responses, SLICE("ICAP/1.0 200 OK\r\n\r\n"), HTTP_ERROR_SYNTAX);
}
END_TEST

START_TEST(fields_alone) {
    struct http_head head;
    check_good(&fields, &head, SLICE("Expires: 0\r\nA: b\r\n\r\n"));
    ck_assert_uint_eq(head.field_count, 2);
    check_field(&head, 0, HTTP_EXPIRES, SLICE("Expires"), SLICE("0"));
    check_good(&fields, &head, SLICE("\r\n"));
    ck_assert_uint_eq(head.field_count, 0);
    check_bad(&fields, SLICE("a b: c\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_bad(&fields, SLICE("\n"), HTTP_ERROR_SYNTAX);
}
END_TEST

START_TEST(no_fields) {
    struct http_head head;
    check_good(&requests, &head, SLICE("OPTIONS * HTTP/1.1\r\n\r\n"));
    ck_assert_uint_eq(head.field_count, 0);
    ck_assert_slice_eq(head.target, SLICE("*"));
}
END_TEST

START_TEST(methods_are_tokens) {
    struct http_head head;
    check_good(&requests, &head, SLICE("M-SEARCH!#$%&'*+.^_`|~9 / HTTP/1.0\r\n\r\n"));
    ck_assert_int_eq(head.method_id, HTTP_METHOD_OTHER);
    ck_assert_slice_eq(head.method, SLICE("M-SEARCH!#$%&'*+.^_`|~9"));
    ck_assert_uint_eq(head.version, 10);
    check_good(&requests, &head, SLICE("get / HTTP/1.1\r\n\r\n"));
    ck_assert_int_eq(head.method_id, HTTP_METHOD_OTHER);
}
END_TEST

START_TEST(later_minor_versions_are_1_1) {
    struct http_head head;
    check_good(&requests, &head, SLICE("GET / HTTP/1.7\r\n\r\n"));
    ck_assert_uint_eq(head.version, 11);
    check_good(&responses, &head, SLICE("HTTP/1.2 200 OK\r\n\r\n"));
    ck_assert_uint_eq(head.version, 11);
}
END_TEST

START_TEST(empty_lines_before_a_request) {
    struct http_head head;
    check_good(&requests, &head, SLICE("\r\nGET / HTTP/1.1\r\nA: b\r\n\r\n"));
    check_good(&requests, &head, SLICE("\r\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\n"));
    ck_assert_slice_eq(head.method, SLICE("GET"));
    check_bad(&requests, SLICE("\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_bad(&requests, SLICE("\nGET / HTTP/1.1\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_bad(&requests, SLICE("\rGET / HTTP/1.1\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_bad(&responses, SLICE("\r\nHTTP/1.1 200 OK\r\n\r\n"), HTTP_ERROR_SYNTAX);
}
END_TEST

START_TEST(bad_request_lines) {
    static const char *const lines[] = {
        "GET /\r\n",
        "GET / \r\n",
        "GET  / HTTP/1.1\r\n",
        "GET /  HTTP/1.1\r\n",
        "GET / HTTP/1.1 \r\n",
        " GET / HTTP/1.1\r\n",
        "GET\t/ HTTP/1.1\r\n",
        "GET /\tHTTP/1.1\r\n",
        "GET /a b HTTP/1.1\r\n",
        "GET HTTP/1.1\r\n",
        "GET  HTTP/1.1\r\n",
        "GET / http/1.1\r\n",
        "GET / HTTP/1.1\n",
        "GET / HTTP/1.1\r\r\n",
        "GET / HTTP/1.1\rX",
        "GET / HTTP/0.9\r\n",
        "GET / HTTP/1\r\n",
        "GET / HTTP/1.\r\n",
        "GET / HTTP/1,1\r\n",
        "GET / HTTP/11.\r\n",
        "GET / HTTP/1.10\r\n",
        "GET / HTTP/1.1x\r\n",
        "GET / HTTP/+1.1\r\n",
        "GET / HTTPS/1.1\r\n",
        "GET / ICAP/1.0\r\n",
        "G(T / HTTP/1.1\r\n",
        "G:T / HTTP/1.1\r\n",
        "G\xc3T / HTTP/1.1\r\n",
        "\r\n /",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char bytes[128];
        int length = snprintf(bytes, sizeof bytes, "%s\r\n", lines[i]);
        check_bad(&requests, slice_make(bytes, (size_t)length), HTTP_ERROR_SYNTAX);
    }
    check_bad(&requests, SLICE("G\0T / HTTP/1.1\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_bad(&requests, SLICE("GET /\0 HTTP/1.1\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_bad(&requests, SLICE("GET / HTTP/1.1\0\r\n\r\n"), HTTP_ERROR_SYNTAX);
}
END_TEST

START_TEST(later_major_versions) {
    check_bad(&requests, SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), HTTP_ERROR_VERSION);
    check_bad(&requests, SLICE("GET / HTTP/9.9\r\n\r\n"), HTTP_ERROR_VERSION);
    check_bad(&responses, SLICE("HTTP/3.0 200 OK\r\n\r\n"), HTTP_ERROR_VERSION);
    ck_assert_uint_eq(http_error_status(HTTP_ERROR_VERSION), 505);
    ck_assert_uint_eq(http_error_status(HTTP_ERROR_TOO_MANY_FIELDS), 431);
    ck_assert_uint_eq(http_error_status(HTTP_ERROR_SYNTAX), 400);
    for (int error = HTTP_ERROR_SYNTAX; error <= HTTP_ERROR_VERSION; error++)
        ck_assert_uint_gt(strlen(http_error_text((enum http_error)error)), 10);
}
END_TEST

START_TEST(bad_status_lines) {
    static const char *const lines[] = {
        "HTTP/1.1 20\r\n",
        "HTTP/1.1 2000\r\n",
        "HTTP/1.1 099 X\r\n",
        "HTTP/1.1  200 OK\r\n",
        "HTTP/1.1\t200 OK\r\n",
        "HTTP/1.1 -20 X\r\n",
        "HTTP/1.1 2x0 X\r\n",
        "HTTP/1.1 200\tOK\r\n",
        "HTTP/1.1200 OK\r\n",
        "HTTP/1.1 \r\n",
        "HTTP/1.1\r\n",
        "HTTP/1.1 200 OK\n",
        "HTTP/1.1 200 O\rK\r\n",
        "HTTP 200 OK\r\n",
        "200 OK\r\n",
        "HTTP/0.9 200 OK\r\n",
        "HTTP/1.1 200 O\x7fK\r\n",
        "HTTP/1.1 200 O\x01K\r\n",
        "HTTP/2 200\r\n",
        "HTTP/1.1 200OK\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char bytes[128];
        int length = snprintf(bytes, sizeof bytes, "%s\r\n", lines[i]);
        check_bad(&responses, slice_make(bytes, (size_t)length), HTTP_ERROR_SYNTAX);
    }
    check_bad(&responses, SLICE("HTTP/1.1 200 O\0K\r\n\r\n"), HTTP_ERROR_SYNTAX);
}
END_TEST

/* Each of these has made two parties see different fields. */
START_TEST(bad_field_lines) {
    static const struct slice lines[] = {
        {" : a\r\n", 6},                            /* white space before the colon, and no name */
        {"Host \r\n", 7},                           /* the same without a colon */
        {"Host \x0b: a\r\n", 11},                   /* the same with a vertical tab */
        {"A b : c\r\n", 9},                         /* two words */
        {"Content-Length\r\n : 5\r\n", 22},         /* obs-fold before the colon */
        {" Host: a\r\n", 10},                       /* obs-fold of the start line */
        {"A: b\r\n c\r\n", 10},                     /* obs-fold */
        {"A: b\r\n\tc\r\n", 10},                    /* the same with a tab */
        {"A: b\r\n \r\n", 9},                       /* a fold that is all blank */
        {"A: b\n", 5},                              /* bare LF */
        {"A: b\nC: d\r\n", 11},                     /* bare LF in the middle */
        {"A: b\rC: d\r\n", 11},                     /* bare CR */
        {"A: b\r\r\n", 8},                          /* two CR */
        {"A: b\0c\r\n", 8},                         /* NUL in the value */
        {"A\0: b\r\n", 7},                          /* NUL in the name */
        {"\0A: b\r\n", 7},                          /* NUL before the name */
        {": b\r\n", 5},                             /* no name */
        {":\r\n", 3},                               /* nothing */
        {"A\r\n", 3},                               /* no colon */
        {"A b: c\r\n", 8},                          /* two words */
        {"A\xe9: b\r\n", 7},                        /* not ASCII */
        {"Content-Length\x0b: 5\r\n", 20},          /* vertical tab */
        {"Transfer-Encoding\x0c: chunked\r\n", 29}, /* form feed */
        {"Content-Length: 5\x0b\r\n", 20},          /* and in the value */
        {"A: \x7f\r\n", 6},                         /* DEL */
        {"A: \x1b[0m\r\n", 9},                      /* ESC */
        {"A: b\r\n\n", 7},                          /* an empty line of LF alone */
        {"A: b\r\n\rX", 8},                         /* an empty line that is not one */
        {"A[]: b\r\n", 8},                          /* not of a token */
        {"A;b: c\r\n", 8},
        {"\"A\": b\r\n", 8},
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char bytes[256];
        int start = sprintf(bytes, "POST / HTTP/1.1\r\n");
        memcpy(bytes + start, lines[i].base, lines[i].length);
        memcpy(bytes + start + lines[i].length, "\r\n", 2);
        check_bad(&requests, slice_make(bytes, (size_t)start + lines[i].length + 2),
                  HTTP_ERROR_SYNTAX);
        start = sprintf(bytes, "HTTP/1.1 200 OK\r\nX: y\r\n");
        memcpy(bytes + start, lines[i].base, lines[i].length);
        memcpy(bytes + start + lines[i].length, "\r\n", 2);
        check_bad(&responses, slice_make(bytes, (size_t)start + lines[i].length + 2),
                  HTTP_ERROR_SYNTAX);
    }
}
END_TEST

/* "A server MUST reject, with a response status code of 400 (Bad Request), any received request
 * message that contains whitespace between a header field name and colon. A proxy MUST remove any
 * such whitespace from a response message" (RFC 9112 §5.1). */
START_TEST(blanks_before_the_colon) {
    struct http_head head;
    check_bad(&requests, SLICE("GET / HTTP/1.1\r\nHost : a\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_bad(&requests, SLICE("GET / HTTP/1.1\r\nHost\t: a\r\n\r\n"), HTTP_ERROR_SYNTAX);
    check_good(&responses, &head,
               SLICE("HTTP/1.1 200 OK\r\nContent-Length : 5\r\nX-Y \t :z\r\nEmpty\t:\r\n\r\n"));
    ck_assert_uint_eq(head.field_count, 3);
    check_field(&head, 0, HTTP_CONTENT_LENGTH, SLICE("Content-Length"), SLICE("5"));
    check_field(&head, 1, HTTP_OTHER, SLICE("X-Y"), SLICE("z"));
    check_field(&head, 2, HTTP_OTHER, SLICE("Empty"), SLICE(""));
    ck_assert(http_head_has(&head, HTTP_CONTENT_LENGTH));
    check_good(&icap_responses, &head, SLICE("ICAP/1.0 204 No\r\nISTag : \"a\"\r\n\r\n"));
    check_field(&head, 0, http_name_lookup(SLICE("ISTag")), SLICE("ISTag"), SLICE("\"a\""));
    check_good(&fields, &head, SLICE("Set-Cookie : a\r\n\r\n"));
    check_field(&head, 0, HTTP_SET_COOKIE, SLICE("Set-Cookie"), SLICE("a"));
}
END_TEST

/* A field that may not pass as a trailer may not pass with white space behind its name either. */
START_TEST(blanks_in_trailers) {
    char bytes[] = "X-Sum : 1\r\nContent-Length : 5\r\nSet-Cookie\t:\ta\r\nX-End:\t2 \r\n\r\n";
    size_t length = trailer_filter(bytes, strlen(bytes));
    ck_assert_slice_eq(slice_make(bytes, length), SLICE("X-Sum:1\r\nX-End:2\r\n"));
}
END_TEST

/* Parses a head with the byte in the middle of something. */
static bool byte_is_good(const struct kind *kind, const char *before, unsigned byte,
                         const char *after) {
    char bytes[256];
    struct http_head head;
    size_t length = strlen(before);
    memcpy(bytes, before, length);
    bytes[length++] = (char)byte;
    memcpy(bytes + length, after, strlen(after));
    length += strlen(after);
    return parse_guarded(kind, &head, slice_make(bytes, length), 0) == (ssize_t)length;
}

START_TEST(every_byte_in_every_place) {
    static const char token[] = "!#$%&'*+-.^_`|~0123456789"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (unsigned c = 0; c < 256; c++) {
        bool in_token = c != 0 && strchr(token, (int)c) != NULL;
        bool in_target = c > 0x20 && c != 0x7f;
        bool in_text = in_target || c == ' ' || c == '\t';
        /* A colon ends a name, so it must be tried where none follows. */
        bool in_name = byte_is_good(&fields, "Na", c, "me: value\r\n\r\n");
        ck_assert_msg(in_name == (in_token || c == ':'), "byte %u in a name", c);
        ck_assert_msg(byte_is_good(&fields, "Name: va", c, "lue that is long enough\r\n\r\n") ==
                          in_text,
                      "byte %u in a value", c);
        ck_assert_msg(byte_is_good(&fields, "Name: ", c, "\r\n\r\n") == in_text,
                      "byte %u as a value", c);
        ck_assert_msg(byte_is_good(&requests, "GET /a", c, "b HTTP/1.1\r\n\r\n") == in_target,
                      "byte %u in a target", c);
        ck_assert_msg(byte_is_good(&requests, "GE", c, "T / HTTP/1.1\r\n\r\n") == in_token,
                      "byte %u in a method", c);
        ck_assert_msg(byte_is_good(&responses, "HTTP/1.1 200 O", c, "K\r\n\r\n") == in_text,
                      "byte %u in a reason", c);
    }
}
END_TEST

/* A control byte at any distance from the beginning of a value and from its end. */
START_TEST(a_bad_byte_anywhere_in_a_value) {
    static const char bad[] = {'\0', '\n', '\x1f', '\x7f', '\x01'};
    char bytes[256];
    for (size_t length = 1; length < 70; length++) {
        for (size_t at = 0; at < length; at++) {
            struct http_head head;
            memcpy(bytes, "N:", 2);
            memset(bytes + 2, 'v', length);
            bytes[2 + at] = bad[at % sizeof bad];
            memcpy(bytes + 2 + length, "\r\n\r\n", 4);
            ssize_t result = parse_guarded(&fields, &head, slice_make(bytes, length + 6), 0);
            EXPECT(result == -HTTP_ERROR_SYNTAX, "byte %zu of %zu: %zd", at, length, result);
        }
    }
}
END_TEST

START_TEST(values_of_every_length) {
    char bytes[256];
    for (size_t length = 0; length < 100; length++) {
        struct http_head head;
        memcpy(bytes, "Name: ", 6);
        memset(bytes + 6, '\xff', length);
        memcpy(bytes + 6 + length, " \r\n\r\n", 5);
        check_good(&fields, &head, slice_make(bytes, length + 11));
        ck_assert_slice_eq(head.fields[0].value, slice_make(bytes + 6, length));
    }
}
END_TEST

static struct slice many_fields(char *bytes, unsigned count) {
    size_t length = (size_t)sprintf(bytes, "GET / HTTP/1.1\r\n");
    for (unsigned i = 0; i < count; i++)
        length += (size_t)sprintf(bytes + length, "F%u: %u\r\n", i, i);
    length += (size_t)sprintf(bytes + length, "\r\n");
    return slice_make(bytes, length);
}

START_TEST(as_many_fields_as_fit) {
    static char bytes[4096];
    struct http_head head;
    check_good(&requests, &head, many_fields(bytes, HTTP_FIELDS_MAX));
    ck_assert_uint_eq(head.field_count, HTTP_FIELDS_MAX);
    check_field(&head, HTTP_FIELDS_MAX - 1, HTTP_OTHER, SLICE("F127"), SLICE("127"));
    check_bad(&requests, many_fields(bytes, HTTP_FIELDS_MAX + 1), HTTP_ERROR_TOO_MANY_FIELDS);
}
END_TEST

START_TEST(a_long_target_and_value) {
    static char bytes[GUARD_MAX];
    struct http_head head;
    memset(bytes, 'a', 100000);
    memcpy(bytes, "GET /", 5);
    memcpy(bytes + 50000, " HTTP/1.1\r\nA: ", 14);
    memcpy(bytes + 100000, "\r\n\r\n", 4);
    struct slice input = slice_make(bytes, 100004);
    ck_assert_int_eq(parse_guarded(&requests, &head, input, 0), 100004);
    ck_assert_uint_eq(head.target.length, 50000 - 4);
    ck_assert_uint_eq(head.fields[0].value.length, 100000 - 50014);
    ck_assert_int_eq(parse_guarded(&requests, &head, slice_make(bytes, 100000), 99999), 0);
}
END_TEST

/* A head may be used again: nothing of the one before shows. */
START_TEST(parsing_into_a_used_head) {
    struct http_head head;
    memset(&head, 0xaa, sizeof head);
    ck_assert_int_gt(parse_guarded(&requests, &head, SLICE("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 0),
                     0);
    ck_assert(http_head_has(&head, HTTP_HOST) && !http_head_has(&head, HTTP_VARY));
    ck_assert_int_gt(
        parse_guarded(&responses, &head, SLICE("HTTP/1.1 200 OK\r\nVary: a\r\n\r\n"), 0), 0);
    ck_assert(!http_head_has(&head, HTTP_HOST) && http_head_has(&head, HTTP_VARY));
    ck_assert_uint_eq(head.target.length, 0);
    ck_assert_uint_eq(head.field_count, 1);
}
END_TEST

START_TEST(finding) {
    struct http_head head;
    ck_assert_int_gt(parse_guarded(&fields, &head,
                                   SLICE("Via: 1\r\nX-A: 2\r\nvia: 3\r\nX-B: 4\r\nx-a: 5\r\n\r\n"),
                                   0),
                     0);
    const struct http_field *field = http_head_find(&head, HTTP_VIA);
    ck_assert_ptr_eq(field, &head.fields[0]);
    field = http_head_find_next(&head, HTTP_VIA, field);
    ck_assert_ptr_eq(field, &head.fields[2]);
    ck_assert_ptr_null(http_head_find_next(&head, HTTP_VIA, field));
    ck_assert_ptr_null(http_head_find(&head, HTTP_HOST));
    ck_assert_ptr_eq(http_head_find_text(&head, SLICE("VIA")), &head.fields[0]);
    ck_assert_ptr_eq(http_head_find_text(&head, SLICE("x-b")), &head.fields[3]);
    ck_assert_ptr_eq(http_head_find_text(&head, SLICE("X-A")), &head.fields[1]);
    ck_assert_ptr_null(http_head_find_text(&head, SLICE("X-C")));
    ck_assert_ptr_null(http_head_find_text(&head, SLICE("Host")));
    ck_assert_slice_eq(http_head_value(&head, HTTP_VIA), SLICE("1"));
    ck_assert_ptr_null(http_head_value(&head, HTTP_HOST).base);
}
END_TEST

START_TEST(tokens_of_lists) {
    struct http_head head;
    ck_assert_int_gt(
        parse_guarded(&fields, &head,
                      SLICE("Connection: foo, Close\r\nCache-Control: a=\"no-store, b\"\r\n"
                            "connection: Upgrade\r\n\r\n"),
                      0),
        0);
    ck_assert(http_head_has_token(&head, HTTP_CONNECTION, SLICE("close")));
    ck_assert(http_head_has_token(&head, HTTP_CONNECTION, SLICE("upgrade")));
    ck_assert(!http_head_has_token(&head, HTTP_CONNECTION, SLICE("clos")));
    ck_assert(!http_head_has_token(&head, HTTP_CONNECTION, SLICE("foo, Close")));
    ck_assert(!http_head_has_token(&head, HTTP_CACHE_CONTROL, SLICE("b")));
    ck_assert(!http_head_has_token(&head, HTTP_TE, SLICE("trailers")));
}
END_TEST

/* Against a guard page, cut after each byte: what is replaced depends on nothing behind. */
START_TEST(unfolding) {
    static const struct {
        struct slice folded, plain;
    } heads[] = {
        {SLICE("S\r\nA: b\r\n c\r\n\r\n"), SLICE("S\r\nA: b   c\r\n\r\n")},
        {SLICE("S\r\nA: b\r\n\tc\r\n\td\r\nE: f\r\n\r\n"),
         SLICE("S\r\nA: b  \tc  \td\r\nE: f\r\n\r\n")},
        {SLICE("S\r\nA: b\r\n \r\n\r\n x"), SLICE("S\r\nA: b   \r\n\r\n x")},
        {SLICE("S\r\n A: b\r\n\r\n"), SLICE("S\r\n A: b\r\n\r\n")},
        {SLICE("S\r\n\r\n a\r\n b"), SLICE("S\r\n\r\n a\r\n b")},
        {SLICE("S\r\nA: b\n c\r\n\r\n"), SLICE("S\r\nA: b\n c\r\n\r\n")},
        {SLICE("S\r\nA: b\r\r\n c\r\n\r\n"), SLICE("S\r\nA: b\r   c\r\n\r\n")},
    };
    for (size_t i = 0; i < COUNT_OF(heads); i++)
        for (size_t cut = 0; cut <= heads[i].folded.length; cut++) {
            char *bytes = (char *)guard_put(slice_make(heads[i].folded.base, cut)).base;
            bool replaced = http_head_unfold(bytes, cut);
            ck_assert(replaced == (memcmp(bytes, heads[i].folded.base, cut) != 0));
            http_head_unfold(bytes, cut);
            if (cut == heads[i].folded.length)
                ck_assert_mem_eq(bytes, heads[i].plain.base, cut);
        }
}
END_TEST

Suite *head_suite(void) {
    const TTest *const tests[] = {
        a_request,
        a_response,
        an_absent_reason,
        an_icap_response,
        fields_alone,
        no_fields,
        methods_are_tokens,
        later_minor_versions_are_1_1,
        empty_lines_before_a_request,
        bad_request_lines,
        later_major_versions,
        bad_status_lines,
        bad_field_lines,
        blanks_before_the_colon,
        blanks_in_trailers,
        every_byte_in_every_place,
        a_bad_byte_anywhere_in_a_value,
        values_of_every_length,
        as_many_fields_as_fit,
        a_long_target_and_value,
        parsing_into_a_used_head,
        finding,
        tokens_of_lists,
        unfolding,
    };
    return suite_of("head", tests, COUNT_OF(tests));
}
