#include "suites.h"

#include "http/head_difference.h"
#include "http/head_parser.h"

#include <stdio.h>
#include <time.h>

/* Heads that are changed, copied, moved and written. */

static void parse_request(struct http_head *head, struct slice bytes) {
    ck_assert_int_eq(http_head_parse_request(head, bytes.base, bytes.length, 0), bytes.length);
}

static void parse_fields(struct http_head *head, struct slice bytes) {
    ck_assert_int_eq(http_head_parse_fields(head, bytes.base, bytes.length), bytes.length);
}

/* The field lines that the head would be written as. */
static void check_lines(const struct http_head *head, struct slice expected) {
    static const size_t start = sizeof "HTTP/1.1 200 OK\r\n" - 1;
    char out[2048];
    struct http_head response;
    http_head_assign(&response, head);
    response.status = 200;
    response.reason = SLICE("OK");
    size_t length = http_head_write_response(&response, out, sizeof out);
    ck_assert_slice_eq(slice_make(out + start, length - start), expected);
    for (unsigned id = HTTP_OTHER; id < HTTP_NAME_COUNT; id++) {
        bool found = http_head_find_next(head, (enum http_name)id, NULL) != NULL;
        EXPECT(http_head_has(head, (enum http_name)id) == found, "presence of name %u", id);
    }
}

START_TEST(add_until_full) {
    struct http_head head;
    http_head_init(&head);
    ck_assert(http_head_add(&head, SLICE("host"), SLICE("a")));
    ck_assert(http_head_has(&head, HTTP_HOST));
    for (unsigned i = 1; i < HTTP_FIELDS_ROOM; i++)
        ck_assert(http_head_add(&head, SLICE("X-Y"), SLICE("z")));
    ck_assert(!http_head_add(&head, SLICE("Via"), SLICE("a")));
    ck_assert(!http_head_set(&head, HTTP_VIA, SLICE("a")));
    ck_assert(!http_head_has(&head, HTTP_VIA));
    ck_assert_uint_eq(head.field_count, HTTP_FIELDS_ROOM);
    ck_assert(http_head_set(&head, HTTP_HOST, SLICE("b")));
    ck_assert_slice_eq(http_head_value(&head, HTTP_HOST), SLICE("b"));
}
END_TEST

START_TEST(set_keeps_the_place_and_drops_duplicates) {
    struct http_head head;
    parse_fields(&head, SLICE("A: 1\r\nVia: 2\r\nB: 3\r\nvia: 4\r\nC: 5\r\nVia: 6\r\n\r\n"));
    ck_assert(http_head_set(&head, HTTP_VIA, SLICE("new")));
    check_lines(&head, SLICE("A: 1\r\nVia: new\r\nB: 3\r\nC: 5\r\n"));
    ck_assert(http_head_set(&head, HTTP_AGE, SLICE("7")));
    check_lines(&head, SLICE("A: 1\r\nVia: new\r\nB: 3\r\nC: 5\r\nAge: 7\r\n"));
}
END_TEST

START_TEST(remove_by_number) {
    struct http_head head;
    parse_fields(&head, SLICE("Via: 1\r\nA: 2\r\nVIA: 3\r\nHost: 4\r\nvia: 5\r\n\r\n"));
    ck_assert_uint_eq(http_head_remove(&head, HTTP_VIA), 3);
    check_lines(&head, SLICE("A: 2\r\nHost: 4\r\n"));
    ck_assert_uint_eq(http_head_remove(&head, HTTP_VIA), 0);
    ck_assert(!http_head_has(&head, HTTP_VIA) && http_head_has(&head, HTTP_HOST));
}
END_TEST

START_TEST(remove_by_text) {
    struct http_head head;
    parse_fields(&head, SLICE("X-A: 1\r\nX-B: 2\r\nx-a: 3\r\nETag: 4\r\n\r\n"));
    ck_assert_uint_eq(http_head_remove_text(&head, SLICE("x-A")), 2);
    check_lines(&head, SLICE("X-B: 2\r\nETag: 4\r\n"));
    ck_assert_uint_eq(http_head_remove_text(&head, SLICE("etag")), 1);
    ck_assert_uint_eq(http_head_remove_text(&head, SLICE("X-C")), 0);
    check_lines(&head, SLICE("X-B: 2\r\n"));
    ck_assert_ptr_nonnull(http_head_find_text(&head, SLICE("X-B")));
}
END_TEST

START_TEST(hop_by_hop_fields_go) {
    struct http_head head;
    parse_fields(&head, SLICE("Connection: keep-alive, X-Private , x-other\r\n"
                              "Keep-Alive: timeout=5\r\n"
                              "Proxy-Connection: keep-alive\r\n"
                              "TE: trailers\r\n"
                              "Trailer: X-Sum\r\n"
                              "Transfer-Encoding: chunked\r\n"
                              "Upgrade: websocket\r\n"
                              "X-Private: 1\r\n"
                              "X-Kept: 2\r\n"
                              "X-PRIVATE: 3\r\n"
                              "X-Other: 4\r\n"
                              "Host: a\r\n\r\n"));
    http_head_remove_hop_by_hop(&head);
    check_lines(&head, SLICE("Trailer: X-Sum\r\nX-Kept: 2\r\nHost: a\r\n"));
}
END_TEST

START_TEST(hop_by_hop_fields_go_unnamed) {
    static const char *const lines[] = {
        "Connection: close\r\n",       "Keep-Alive: timeout=5\r\n",      "TE: trailers\r\n",
        "Upgrade: websocket\r\n",      "Transfer-Encoding: chunked\r\n", "te:\r\n",
        "Proxy-Connection: close\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct http_head head;
        char bytes[128];
        int length = sprintf(bytes, "A: b\r\n%sC: d\r\n\r\n", lines[i]);
        parse_fields(&head, slice_make(bytes, (size_t)length));
        http_head_remove_hop_by_hop(&head);
        check_lines(&head, SLICE("A: b\r\nC: d\r\n"));
    }
}
END_TEST

START_TEST(every_connection_field_counts) {
    struct http_head head;
    parse_fields(&head, SLICE("A: 1\r\nConnection: a\r\nB: 2\r\nC: 3\r\nCONNECTION: close,\tB\r\n"
                              "Server: x\r\n\r\n"));
    http_head_remove_hop_by_hop(&head);
    check_lines(&head, SLICE("C: 3\r\nServer: x\r\n"));
    parse_fields(&head, SLICE("Connection: server\r\nServer: x\r\n\r\n"));
    http_head_remove_hop_by_hop(&head);
    check_lines(&head, SLICE(""));
}
END_TEST

START_TEST(connection_can_not_break_the_message) {
    struct http_head head;
    struct slice lines = SLICE("Host: a\r\nContent-Length: 5\r\nCache-Control: no-store\r\n"
                               "Authorization: b\r\nCookie: c\r\nX-Forwarded-For: d\r\nVary: e\r\n"
                               "Content-Encoding: gzip\r\nContent-Type: f\r\nVia: g\r\n");
    char bytes[1024];
    size_t length = (size_t)sprintf(bytes,
                                    "%sConnection: Host, content-length, Cache-Control, "
                                    "authorization, cookie, x-forwarded-for, vary, "
                                    "Content-Encoding, Content-Type, via, trailer\r\n\r\n",
                                    lines.base);
    parse_fields(&head, slice_make(bytes, length));
    http_head_remove_hop_by_hop(&head);
    check_lines(&head, lines);
}
END_TEST

static const char sample[] = "PUT /a HTTP/1.0\r\nHost: b\r\nX-Y: \r\nVia: c\r\n\r\n";

static void check_sample(const struct http_head *head) {
    char out[256];
    size_t length = http_head_write_request(head, out, sizeof out);
    ck_assert_slice_eq(slice_make(out, length),
                       SLICE("PUT /a HTTP/1.1\r\nHost: b\r\nX-Y: \r\nVia: c\r\n"));
    ck_assert_int_eq(head->method_id, HTTP_METHOD_PUT);
    ck_assert_uint_eq(head->version, 10);
    ck_assert_ptr_eq(http_head_find(head, HTTP_VIA), &head->fields[2]);
}

START_TEST(copy_has_bytes_of_its_own) {
    struct http_head head, copy;
    char bytes[sizeof sample], own[sizeof sample];
    memcpy(bytes, sample, sizeof sample);
    parse_request(&head, slice_make(bytes, sizeof sample - 1));
    size_t size = http_head_size(&head);
    ck_assert_uint_eq(size, strlen("PUT/aHostbX-YViac"));
    struct slice guarded = guard_put(slice_make(own, size)); /* one byte too many would die */
    http_head_copy(&copy, &head, (char *)guarded.base);
    memset(bytes, '?', sizeof bytes);
    check_sample(&copy);
    ck_assert_uint_eq(http_head_size(&copy), size);
    http_head_copy(&copy, &copy, own);
    memset((char *)guarded.base, '?', size);
    check_sample(&copy);
}
END_TEST

START_TEST(writers_say_what_they_need) {
    struct http_head head;
    char out[256];
    parse_request(&head, slice_make(sample, sizeof sample - 1));
    static const char written[] = "PUT /a HTTP/1.1\r\nHost: b\r\nX-Y: \r\nVia: c\r\n";
    size_t request = http_head_write_request(&head, NULL, 0);
    ck_assert_uint_eq(request, strlen(written));
    memset(out, '?', sizeof out);
    ck_assert_uint_eq(http_head_write_request(&head, out, request - 1), request);
    ck_assert_int_eq(out[request - 1], '?');
    struct slice guarded = guard_put(slice_make(out, request));
    ck_assert_uint_eq(http_head_write_request(&head, (char *)guarded.base, request), request);
    ck_assert_slice_eq(guarded, slice_from(written));
}
END_TEST

START_TEST(responses_are_written) {
    struct http_head head;
    char out[256];
    http_head_init(&head);
    head.status = 404;
    ck_assert(http_head_set(&head, HTTP_AGE, SLICE("1")));
    size_t length = http_head_write_response(&head, out, sizeof out);
    ck_assert_slice_eq(slice_make(out, length), SLICE("HTTP/1.1 404 Not Found\r\nAge: 1\r\n"));
    head.status = 299;
    head.reason = SLICE("My own");
    length = http_head_write_response(&head, out, sizeof out);
    ck_assert_slice_eq(slice_make(out, length), SLICE("HTTP/1.1 299 My own\r\nAge: 1\r\n"));
    head.reason = SLICE("");
    length = http_head_write_response(&head, out, sizeof out);
    ck_assert_slice_eq(slice_make(out, length), SLICE("HTTP/1.1 299 \r\nAge: 1\r\n"));
    struct slice guarded = guard_put(slice_make(out, length));
    ck_assert_uint_eq(http_head_write_response(&head, (char *)guarded.base, length), length);
    ck_assert_uint_eq(http_head_write_response(&head, (char *)guarded.base, length - 1), length);
}
END_TEST

/* The names that differ, each behind a comma. */
static void check_difference(struct slice one, struct slice other, struct slice expected) {
    struct http_head here, there;
    struct slice names[HTTP_DIFFERENCE_MAX];
    char text[200];
    size_t length = 0;
    parse_fields(&here, one);
    parse_fields(&there, other);
    unsigned count = http_head_difference(&here, &there, names);
    for (unsigned i = 0; i < count; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, ",%.*s", SLICE_PRINT(names[i]));
    ck_assert_slice_eq(slice_make(text, length), expected);
}

START_TEST(differences_are_named_once) {
    static const struct {
        struct slice one, other, names;
    } cases[] = {
        {SLICE("\r\n"), SLICE("\r\n"), SLICE("")},
        {SLICE("A: 1\r\nB: 2\r\n\r\n"), SLICE("b: 2\r\na: 1\r\n\r\n"), SLICE("")},
        {SLICE("A: 1\r\n\r\n"), SLICE("A: 2\r\n\r\n"), SLICE(",A")},
        {SLICE("A: 1\r\n\r\n"), SLICE("\r\n"), SLICE(",A")},
        {SLICE("\r\n"), SLICE("A: 1\r\nAA: 1\r\n\r\n"), SLICE(",A,AA")},
        {SLICE("C: 1\r\nA: 1\r\nB: 1\r\n\r\n"), SLICE("B: 1\r\nD: 1\r\n\r\n"), SLICE(",A,C,D")},
        {SLICE("A: 1\r\nB: 1\r\nA: 2\r\n\r\n"), SLICE("A: 1\r\nA: 2\r\nB: 1\r\n\r\n"), SLICE("")},
        {SLICE("A: 1\r\nA: 2\r\n\r\n"), SLICE("A: 2\r\nA: 1\r\n\r\n"), SLICE(",A")},
        {SLICE("A: 1\r\n\r\n"), SLICE("A: 1\r\nA: 1\r\n\r\n"), SLICE(",A")},
        {SLICE("A:\r\n\r\n"), SLICE("A:\r\n\r\n"), SLICE("")},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_difference(cases[i].one, cases[i].other, cases[i].names);
}
END_TEST

/* Microseconds of the processor that a thousand comparisons of heads of so many fields take, whose
 * names are alike up to their ends. */
static uint64_t difference_cost(unsigned fields) {
    static struct http_head one, other;
    static char texts[HTTP_FIELDS_ROOM][40];
    struct slice names[HTTP_DIFFERENCE_MAX];
    struct timespec begun, ended;
    http_head_init(&one);
    http_head_init(&other);
    for (unsigned i = 0; i < fields; i++) {
        snprintf(texts[i], sizeof texts[i], "X-A-Name-As-Long-As-Others-%03u", i * 37 % 128);
        ck_assert(http_head_add(&one, slice_from(texts[i]), SLICE("1")));
        ck_assert(http_head_add(&other, slice_from(texts[i]), SLICE("2")));
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_uint_eq(http_head_difference(&one, &other, names), fields);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    return (uint64_t)(ended.tv_sec - begun.tv_sec) * 1000000 + (uint64_t)ended.tv_nsec / 1000 -
           (uint64_t)begun.tv_nsec / 1000;
}

/* Sixteen times the fields: n log n makes that 28 times the work, n * n 256 times. */
START_TEST(differences_of_many_fields_cost_little) {
    uint64_t few = difference_cost(8), many = difference_cost(128);
    ck_assert_msg(many < 90 * (few + 1), "8 fields take %llu ns, 128 take %llu",
                  (unsigned long long)few, (unsigned long long)many);
}
END_TEST

Suite *head_edit_suite(void) {
    const TTest *const tests[] = {
        add_until_full,
        set_keeps_the_place_and_drops_duplicates,
        remove_by_number,
        remove_by_text,
        hop_by_hop_fields_go,
        hop_by_hop_fields_go_unnamed,
        every_connection_field_counts,
        connection_can_not_break_the_message,
        copy_has_bytes_of_its_own,
        writers_say_what_they_need,
        responses_are_written,
        differences_are_named_once,
        differences_of_many_fields_cost_little,
    };
    return suite_of("head_edit", tests, COUNT_OF(tests));
}
