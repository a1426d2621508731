/* Ranges of requests and parts of responses, each value in front of a forbidden page. */
#include "suites.h"

#include "cache/range.h"

enum { MOST = 4 };

static const struct asked {
    const char *range;
    uint64_t length;
    enum range_kind kind;
    unsigned count;
    struct range ranges[MOST];
} asked[] = {
    {"bytes=0-4", 10, RANGE_PARTS, 1, {{0, 5}}},
    {"BYTES=5-", 10, RANGE_PARTS, 1, {{5, 5}}},
    {"bytes=-3", 10, RANGE_PARTS, 1, {{7, 3}}},
    {"bytes=-11", 10, RANGE_PARTS, 1, {{0, 10}}},
    {"bytes=9-99", 10, RANGE_PARTS, 1, {{9, 1}}},
    {"bytes= , 9-9 ,", 10, RANGE_PARTS, 1, {{9, 1}}},
    {"bytes=10-", 10, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=-0", 10, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=-5", 0, RANGE_UNSATISFIABLE, 0, {{0, 0}}},
    {"bytes=0-18446744073709551615", 10, RANGE_PARTS, 1, {{0, 10}}},
    {"bytes=0-18446744073709551616", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=5-4", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=5", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=-", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=--1", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=0 - 4", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"lines=0-4", 10, RANGE_WHOLE, 0, {{0, 0}}},
    {"bytes=900-,0-1", 1000, RANGE_PARTS, 2, {{900, 100}, {0, 2}}},
    {"bytes=0-1,1000-", 1000, RANGE_PARTS, 1, {{0, 2}}},
    {"bytes=600-700,0-100,300-400,150-299,450-599", 1000, RANGE_TOO_MANY, 0, {{0, 0}}},
    {"bytes=600-700,0-100,300-400,150-650", 1000, RANGE_PARTS, 1, {{0, 701}}},
    {"bytes=0-0,x", 1000, RANGE_WHOLE, 0, {{0, 0}}},
};

static enum range_kind ask(const char *lines, uint64_t length, struct range *ranges,
                           unsigned *count) {
    struct http_head request;
    struct range_subject subject = {.etag = guard_keep(SLICE("\"a\"")),
                                    .last_modified = SLICE("Sun, 06 Nov 1994 08:49:37 GMT"),
                                    .length = length};
    head_from(&request, lines);
    request.method_id = HTTP_METHOD_GET;
    return range_of_request(ranges, MOST, count, &request, &subject);
}

START_TEST(ranges_are_read) {
    for (size_t i = 0; i < COUNT_OF(asked); i++) {
        struct range ranges[MOST];
        unsigned count;
        char line[200];
        snprintf(line, sizeof line, "Range: %s\n", asked[i].range);
        enum range_kind kind = ask(line, asked[i].length, ranges, &count);
        ck_assert_msg(kind == asked[i].kind, "%s of %llu is %d", asked[i].range,
                      (unsigned long long)asked[i].length, kind);
        for (unsigned j = 0; kind == RANGE_PARTS && j < asked[i].count; j++) {
            ck_assert_uint_eq(count, asked[i].count);
            ck_assert_uint_eq(ranges[j].first, asked[i].ranges[j].first);
            ck_assert_uint_eq(ranges[j].count, asked[i].ranges[j].count);
        }
    }
}
END_TEST

START_TEST(if_range_is_strong) {
    struct range ranges[MOST];
    unsigned count;
    ck_assert_int_eq(ask("Range: bytes=0-1\nIf-Range: \"a\"\n", 9, ranges, &count), RANGE_PARTS);
    ck_assert_int_eq(ask("Range: bytes=0-1\nIf-Range: W/\"a\"\n", 9, ranges, &count), RANGE_WHOLE);
    ck_assert_int_eq(ask("Range: bytes=0-1\nIf-Range: \"\n", 9, ranges, &count), RANGE_WHOLE);
    ck_assert_int_eq(ask("Range: bytes=0-1\nIf-Range:\n", 9, ranges, &count), RANGE_WHOLE);
    ck_assert_int_eq(
        ask("Range: bytes=0-1\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\n", 9, ranges, &count),
        RANGE_PARTS);
}
END_TEST

static bool is_part(const char *lines) {
    struct http_head response;
    struct partial part;
    head_from(&response, lines);
    response.status = 206;
    return partial_of_head(&part, &response);
}

START_TEST(parts_are_read) {
    ck_assert(is_part("Content-Range: bytes 0-4/10\n"));
    ck_assert(is_part("Content-Range: BYTES 5-9/10\nContent-Length: 5\n"));
    ck_assert(!is_part("Content-Range: bytes 5-9/10\nContent-Length: 4\n"));
    ck_assert(!is_part("Content-Range: bytes 5-10/10\n"));
    ck_assert(!is_part("Content-Range: bytes 5-4/10\n"));
    ck_assert(!is_part("Content-Range: bytes 0-4/*\n"));
    ck_assert(!is_part("Content-Range: bytes */10\n"));
    ck_assert(!is_part("Content-Range: bytes 0-4\n"));
    ck_assert(!is_part("Content-Range: bytes 0\n"));
    ck_assert(!is_part("Content-Range: bytes \n"));
    ck_assert(!is_part("Content-Range:\n"));
    ck_assert(!is_part("Content-Range: bytes 0-4/18446744073709551615\n"));
    ck_assert(!is_part("Content-Range: bytes 0-4/10\nContent-Range: bytes 0-4/10\n"));
}
END_TEST

Suite *range_suite(void) {
    const TTest *const tests[] = {ranges_are_read, if_range_is_strong, parts_are_read};
    return suite_of("range", tests, COUNT_OF(tests));
}
