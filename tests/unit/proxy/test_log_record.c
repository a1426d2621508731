/* What retortctl reads out of lines that others may have written: of access logs, and of the event
 * stream. */
#include "suites.h"

#include "tools/event_lines.h"
#include "tools/log_entry.h"

#include <string.h>

static struct log_entry record;

static bool reads_bytes(struct slice line) {
    struct slice kept = guard_keep(line);
    log_entry_release(&record);
    return log_entry_of_line(&record, kept.base, kept.length);
}

static bool reads(const char *line) {
    return reads_bytes(slice_from(line));
}

static void is(struct slice text, const char *expected) {
    ck_assert_msg(slice_equal(text, slice_from(expected)), "%.*s is not %s", SLICE_PRINT(text),
                  expected);
}

static const char json_line[] =
    "{\"time\":1764012345.678,\"client\":\"192.0.2.7\",\"url\":\"http://u@a.org:81/x?y\","
    "\"result\":\"HIT\",\"status\":200,\"bytes\":512,\"ms\":1.5,"
    "\"icap\":[{\"service\":\"gray\",\"ms\":12,\"error\":\"x\"},{\"service\":\"gzip\",\"ms\":3}]}";
static const char squid_line[] =
    "1764012345.678     17 192.0.2.7 TCP_MEM_HIT/200 512 GET http://a.org/ - HIER_NONE/- text/html";
static const char combined_line[] =
    "192.0.2.7 - anna [21/Nov/2026:09:15:00 +0000] \"GET http://a.org/ HTTP/1.1\" 200 512 "
    "\"-\" \"a \\\" b\"";

START_TEST(json_is_read) {
    ck_assert(reads(json_line));
    is(record.client, "192.0.2.7");
    is(record.host, "a.org");
    ck_assert_uint_eq(record.status, 200);
    ck_assert_uint_eq(record.bytes, 512);
    ck_assert(record.hit && record.milliseconds == 1.5);
    ck_assert_uint_eq(record.service_count, 2);
    is(record.services[0].name, "gray");
    ck_assert(record.services[0].failed && !record.services[1].failed);
    ck_assert(record.services[0].milliseconds == 12);
}
END_TEST

START_TEST(squid_is_read) {
    ck_assert(reads(squid_line));
    is(record.client, "192.0.2.7");
    is(record.host, "a.org");
    is(record.result, "TCP_MEM_HIT");
    ck_assert(record.hit && record.milliseconds == 17);
    ck_assert_uint_eq(record.service_count, 0);
    char line[400];
    snprintf(line, sizeof line, "%s 00000000000000aa gray:MODIFIED:12,gzip:FAILED:3", squid_line);
    ck_assert(reads(line));
    ck_assert_uint_eq(record.service_count, 2);
    ck_assert(!record.services[0].failed && record.services[1].failed);
}
END_TEST

START_TEST(combined_is_read) {
    ck_assert(reads(combined_line));
    is(record.client, "192.0.2.7");
    is(record.host, "a.org");
    is(record.result, "");
    ck_assert_uint_eq(record.status, 200);
    ck_assert(record.milliseconds < 0);
    char line[400];
    snprintf(line, sizeof line, "%s STALE 00000000000000aa gray:MODIFIED:12", combined_line);
    ck_assert(reads(line));
    is(record.result, "STALE");
    ck_assert(record.hit);
    ck_assert_uint_eq(record.service_count, 1);
}
END_TEST

START_TEST(other_lines_are_none) {
    static const char *const lines[] = {
        "",
        " ",
        "{",
        "{}",
        "[1]",
        "{\"status\":-1}",
        "{\"status\":1000}",
        "{\"status\":\"200\"}",
        "hello",
        "1764012345.678",
        "1764012345.678 17 c TCP_HIT/ 5 GET u - - -",
        "1764012345.678 17 c TCP_HIT 5 GET u - - -",
        "1764012345.678 17 c TCP_HIT/1000 5 GET u - - -",
        "1764012345.678 17 c TCP_HIT/200 -5 GET u - - -",
        "1764012345.678 -17 c TCP_HIT/200 5 GET u - - -",
        "c - - [x] \"GET / HTTP/1.1 200 5",
        "c - - [x] \"GET / HTTP/1.1\\",
        "c - - [x \"GET / HTTP/1.1\" 200 5",
        "c - - [x] \"GET / HTTP/1.1\" 99999999999999999999 5",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        ck_assert_msg(!reads(lines[i]), "%s", lines[i]);
}
END_TEST

/* Each beginning of a line, and each line with one byte that is another: no read beyond the end,
 * which the guard page sees, and no text that is not in the line. */
START_TEST(broken_lines_are_read_no_further_than_they_are_long) {
    static const char *const lines[] = {json_line, squid_line, combined_line};
    static const char others[] = {'\0', ' ', '"', '\\', '/', ':', '[', ']', '@', ',', '\xff'};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        char line[sizeof json_line];
        size_t length = strlen(lines[i]);
        for (size_t cut = 0; cut < length; cut++)
            reads_bytes(slice_make(lines[i], cut));
        for (size_t at = 0; at < length; at++)
            for (size_t n = 0; n < sizeof others; n++) {
                memcpy(line, lines[i], length);
                line[at] = others[n];
                reads_bytes(slice_make(line, length));
            }
    }
}
END_TEST

START_TEST(hosts_are_those_of_the_url) {
    static const struct {
        const char *url, *host;
    } cases[] = {
        {"http://a.org", "a.org"},
        {"http://a.org:8/x", "a.org"},
        {"a.org:443", "a.org"},
        {"/path", ""},
        {"-", ""},
        {"http://", ""},
        {"http://[::1]:8/", "[::1]"},
        {"http://[::1", "["},
        {"http://u:p@b/", "b"},
        {"http://b/?q=@a.org", "b"},
        {"http://b#@a.org", "b"},
        {"http://@", ""},
        {"x?http://c/", "c"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char line[200];
        snprintf(line, sizeof line, "{\"status\":200,\"url\":\"%s\"}", cases[i].url);
        ck_assert(reads(line));
        is(record.host, cases[i].host);
    }
}
END_TEST

/* A line of the log must not make the reader keep more than it has room for. */
START_TEST(services_beyond_the_room_are_left_out) {
    char line[2000] = "1764012345.678 17 c TCP_MISS/200 5 GET u - - - id ";
    for (unsigned i = 0; i < 2 * LOG_ENTRY_SERVICES; i++)
        strcat(line, "s:MODIFIED:1,");
    ck_assert(reads(line));
    ck_assert_uint_eq(record.service_count, LOG_ENTRY_SERVICES);
    strcpy(line, "{\"status\":200,\"icap\":[1");
    for (unsigned i = 0; i < 2 * LOG_ENTRY_SERVICES; i++)
        strcat(line, ",{\"service\":3,\"ms\":\"x\"}");
    strcat(line, "]}");
    ck_assert(reads(line));
    ck_assert_uint_eq(record.service_count, LOG_ENTRY_SERVICES);
    is(record.services[1].name, "");
}
END_TEST

/* The event stream. */

static enum event_line takes(struct event_lines *lines, const char *text) {
    return event_lines_take(lines, guard_keep(slice_from(text)));
}

START_TEST(an_event_is_a_line_with_data) {
    struct event_lines lines = {0};
    ck_assert_int_eq(takes(&lines, "retry: 1000"), EVENT_LINE_OTHER);
    ck_assert_int_eq(takes(&lines, ""), EVENT_LINE_OTHER);
    ck_assert_int_eq(takes(&lines, ":"), EVENT_LINE_OTHER);
    ck_assert_int_eq(takes(&lines, "id: 7"), EVENT_LINE_OTHER);
    ck_assert_int_eq(takes(&lines, "data: {\"lost\":17}"), EVENT_LINE_TRANSACTION);
    is(lines.data, "{\"lost\":17}");
    ck_assert_int_eq(takes(&lines, "event: lost"), EVENT_LINE_OTHER);
    ck_assert_int_eq(takes(&lines, "data: {\"lost\":17}"), EVENT_LINE_LOSS);
    ck_assert_uint_eq(event_lines_lost(&lines), 17);
    ck_assert_int_eq(takes(&lines, ""), EVENT_LINE_OTHER);
    ck_assert_int_eq(takes(&lines, "data: {}"), EVENT_LINE_TRANSACTION);
    ck_assert_int_eq(takes(&lines, "event: other"), EVENT_LINE_OTHER);
    ck_assert_int_eq(takes(&lines, "data: {}"), EVENT_LINE_TRANSACTION);
    event_lines_release(&lines);
}
END_TEST

START_TEST(a_bad_event_is_left_out) {
    static const char *const bad[] = {"data: ",  "data: {",     "data: []",
                                      "data: 1", "data: {} {}", "data: {\"a\":\xff}"};
    static const char *const losses[] = {"data: {}", "data: {\"lost\":-1}", "data: {\"lost\":0}",
                                         "data: {\"lost\":\"5\"}", "data: {\"lost\":1.5}"};
    struct event_lines lines = {0};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_int_eq(takes(&lines, bad[i]), EVENT_LINE_BAD);
    for (size_t i = 0; i < COUNT_OF(losses); i++) {
        takes(&lines, "event: lost");
        ck_assert_int_eq(takes(&lines, losses[i]), EVENT_LINE_BAD);
        ck_assert_uint_eq(event_lines_lost(&lines), 0);
    }
    ck_assert_int_eq(takes(&lines, "data:{}"), EVENT_LINE_OTHER);
    ck_assert_int_eq(takes(&lines, "dat"), EVENT_LINE_OTHER);
    event_lines_release(&lines);
}
END_TEST

Suite *log_entry_suite(void) {
    const TTest *const tests[] = {
        json_is_read,
        squid_is_read,
        combined_is_read,
        other_lines_are_none,
        broken_lines_are_read_no_further_than_they_are_long,
        hosts_are_those_of_the_url,
        services_beyond_the_room_are_left_out,
        an_event_is_a_line_with_data,
        a_bad_event_is_left_out,
    };
    return suite_of("log_entry", tests, COUNT_OF(tests));
}
