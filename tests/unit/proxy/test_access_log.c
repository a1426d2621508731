/* Lines of the access logs: the formats to the letter, and what no text from outside can do. */
#include "suites.h"

#include "transaction/access_log.h"

#include <string.h>
#include <unistd.h>

static const char *const formats[] = {"squid", "squid_extended", "combined", "combined_extended",
                                      "json"};

/* The lines that an entry has in each of the formats. */
static char lines[COUNT_OF(formats)][100000];

static void write_entry(const struct access_entry *entry) {
    char path[300], text[4000] = "listen \"127.0.0.1:3128\" { mode = forward }\n";
    struct loop loop;
    struct net_context net;
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "access_log \"%s/%s.log\" { format = %s }\n", scratch(), formats[i], formats[i]);
    struct settings *settings = settings_from(text);
    ck_assert(loop_init(&loop));
    net_context_init(&net, &loop);
    struct access_logs *logs = access_logs_open(&net, settings);
    ck_assert(access_logs_wanted(logs));
    access_logs_write(logs, entry);
    access_logs_close(&logs);
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        snprintf(path, sizeof path, "%s/%s.log", scratch(), formats[i]);
        char *line = read_text(path);
        snprintf(lines[i], sizeof lines[i], "%s", line);
        free(line);
        unlink(path);
    }
    net_context_release(&net);
    loop_release(&loop);
    settings_release(&settings);
}

static struct access_entry entry_of(const char *method, const char *url) {
    return (struct access_entry){
        .time = {.tv_sec = 1764012345, .tv_nsec = 67000000},
        .duration = 17042,
        .number = 0xabc,
        .client = SLICE("192.0.2.7"),
        .method = slice_from(method),
        .url = slice_from(url),
        .content_type = SLICE("text/html; charset=utf-8"),
        .origin = SLICE("192.0.2.9"),
        .version = SLICE("1.1"),
        .status = 200,
        .bytes = 1234,
        .body_bytes = 1000,
        .result = RESULT_MISS,
        .step = "DELIVER",
    };
}

START_TEST(formats_are_those_of_their_readers) {
    struct http_head head;
    head_from(&head, "User-Agent: a b\nReferer: http://r/\n");
    struct access_entry entry = entry_of("GET", "http://h/a");
    entry.request = &head;
    setenv("TZ", "UTC", 1);
    write_entry(&entry);
    ck_assert_str_eq(lines[0], "1764012345.067     17 192.0.2.7 TCP_MISS/200 1234 GET http://h/a - "
                               "HIER_DIRECT/192.0.2.9 text/html\n");
    ck_assert_str_eq(lines[1], "1764012345.067     17 192.0.2.7 TCP_MISS/200 1234 GET http://h/a - "
                               "HIER_DIRECT/192.0.2.9 text/html 0000000000000abc -\n");
    ck_assert_str_eq(lines[2], "192.0.2.7 - - [24/Nov/2025:19:25:45 +0000] "
                               "\"GET http://h/a HTTP/1.1\" 200 1000 \"http://r/\" \"a b\"\n");
    ck_assert_str_eq(lines[3], "192.0.2.7 - - [24/Nov/2025:19:25:45 +0000] "
                               "\"GET http://h/a HTTP/1.1\" 200 1000 \"http://r/\" \"a b\" MISS "
                               "0000000000000abc -\n");
    ck_assert_str_eq(
        lines[4], "{\"time\":1764012345.067,\"id\":\"0000000000000abc\",\"client\":\"192.0.2.7\","
                  "\"method\":\"GET\",\"url\":\"http://h/a\",\"status\":200,\"bytes\":1234,"
                  "\"result\":\"MISS\",\"ms\":17.042,\"origin\":\"192.0.2.9\",\"step\":\"DELIVER\","
                  "\"aborted\":false,\"content_type\":\"text/html; charset=utf-8\","
                  "\"user_agent\":\"a b\",\"referer\":\"http://r/\",\"icap\":[]}\n");
}
END_TEST

START_TEST(what_was_no_request_has_a_line) {
    struct access_entry entry = entry_of("", "");
    entry.status = 0;
    entry.aborted = true;
    entry.origin = entry.content_type = SLICE("");
    entry.result = RESULT_ERROR;
    write_entry(&entry);
    ck_assert_ptr_nonnull(
        strstr(lines[0], "_ABORTED/499 1234 - error:invalid-request - HIER_NONE/- -\n"));
    ck_assert_ptr_nonnull(strstr(lines[2], "\"-\" 499 1000 \"-\" \"-\"\n"));
    ck_assert_ptr_nonnull(strstr(lines[4], "\"status\":0"));
    entry.status = 408;
    write_entry(&entry);
    ck_assert_ptr_nonnull(strstr(lines[0], " error:transaction-end-before-headers "));
}
END_TEST

/* Every byte in every place that a client fills: one line, and no sign of the format's own. */
START_TEST(no_text_breaks_a_line) {
    for (unsigned byte = 1; byte < 256; byte++) {
        char text[8] = {'x', (char)byte, 'y'};
        struct http_head head;
        http_head_init(&head);
        ck_assert(http_head_add(&head, SLICE("User-Agent"), slice_from(text)));
        ck_assert(http_head_add(&head, SLICE("Referer"), slice_from(text)));
        struct access_entry entry = entry_of(text, text);
        entry.request = &head;
        entry.content_type = slice_from(text);
        write_entry(&entry);
        for (size_t i = 0; i < COUNT_OF(formats); i++) {
            size_t length = strlen(lines[i]);
            ck_assert_uint_eq(strcspn(lines[i], "\n"), length - 1);
            for (size_t at = 0; at < length - 1; at++)
                ck_assert_msg((unsigned char)lines[i][at] >= ' ' && lines[i][at] != '\x7f',
                              "byte %u in %s: %s", byte, formats[i], lines[i]);
        }
        unsigned quotes = 0, blanks = 0;
        for (const char *at = lines[2]; *at != '\0'; at++)
            quotes += *at == '"';
        for (const char *at = lines[0]; *at != '\0'; at++)
            blanks += *at == ' ' && at[1] != ' ';
        ck_assert_msg(quotes == 6, "byte %u: %s", byte, lines[2]);
        ck_assert_msg(blanks == 9, "byte %u: %s", byte, lines[0]);
    }
}
END_TEST

/* However long they are. */
START_TEST(long_texts_are_cut) {
    static char text[60000];
    memset(text, '"', sizeof text - 1);
    struct http_head head;
    http_head_init(&head);
    ck_assert(http_head_add(&head, SLICE("User-Agent"), slice_from(text)));
    ck_assert(http_head_add(&head, SLICE("Referer"), slice_from(text)));
    struct access_entry entry = entry_of(text, text);
    entry.request = &head;
    write_entry(&entry);
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        ck_assert_uint_lt(strlen(lines[i]), 50000);
        ck_assert_uint_eq(strcspn(lines[i], "\n"), strlen(lines[i]) - 1);
    }
    ck_assert_ptr_nonnull(strstr(lines[4], ",\"icap\":[]}\n"));
}
END_TEST

Suite *access_log_suite(void) {
    const TTest *const tests[] = {formats_are_those_of_their_readers,
                                  what_was_no_request_has_a_line, no_text_breaks_a_line,
                                  long_texts_are_cut};
    return suite_of("access_log", tests, COUNT_OF(tests));
}
