/* Lines of the access logs: the formats to the letter, and what no text from outside can do. */
#include "suites.h"

#include "log/target.h"
#include "match/url_class.h"
#include "transaction/access_log.h"

#include <string.h>
#include <unistd.h>

/* The last three say in codes what the others are, and the same in a JSON string. */
static const char *const formats[] = {
    "squid",
    "squid_extended",
    "combined",
    "combined_extended",
    "json",
    "'%ts.%03tu %6tr %>a %Ss/%03>Hs %<st %rm %ru %un %Sh/%<a %mt'",
    "'%h %l %u %t \"%r\" %>s %B \"%{Referer}i\" \"%{User-agent}i\"'",
    "'{\"url\":\"%ru\",\"agent\":\"%{User-Agent}>h\"}'  escape = json"};

/* The lines that an entry has in each of the formats. */
static char lines[COUNT_OF(formats)][100000];

static void write_entry(const struct journal *journal) {
    char path[300], text[4000] = "listen \"127.0.0.1:3128\" { mode = forward }\n";
    struct loop loop;
    struct net_context net;
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "access_log \"%s/%zu.log\" { format = %s }\n", scratch(), i, formats[i]);
    struct settings *settings = settings_from(text);
    ck_assert(loop_init(&loop));
    net_context_init(&net, &loop);
    struct access_logs *logs = access_logs_open(&net, settings);
    ck_assert(access_logs_wanted(logs));
    access_logs_write(logs, journal);
    access_logs_close(&logs);
    log_targets_finish();
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        snprintf(path, sizeof path, "%s/%zu.log", scratch(), i);
        char *line = read_text(path);
        snprintf(lines[i], sizeof lines[i], "%s", line);
        free(line);
        unlink(path);
    }
    net_context_release(&net);
    loop_release(&loop);
    settings_release(&settings);
}

static struct journal entry_of(const char *method, const char *url) {
    return (struct journal){
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
    struct journal journal = entry_of("GET", "http://h/a");
    journal.request = &head;
    setenv("TZ", "UTC", 1);
    write_entry(&journal);
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
    ck_assert_str_eq(lines[5], lines[0]);
    ck_assert_str_eq(lines[6], lines[2]);
    ck_assert_str_eq(lines[7], "{\"url\":\"http://h/a\",\"agent\":\"a b\"}\n");
}
END_TEST

START_TEST(what_was_no_request_has_a_line) {
    struct journal journal = entry_of("", "");
    journal.status = 0;
    journal.aborted = true;
    journal.origin = journal.content_type = SLICE("");
    journal.result = RESULT_ERROR;
    write_entry(&journal);
    ck_assert_ptr_nonnull(
        strstr(lines[0], "_ABORTED/499 1234 - error:invalid-request - HIER_NONE/- -\n"));
    ck_assert_ptr_nonnull(strstr(lines[2], "\"-\" 499 1000 \"-\" \"-\"\n"));
    ck_assert_ptr_nonnull(strstr(lines[4], "\"status\":0"));
    journal.status = 408;
    write_entry(&journal);
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
        struct journal journal = entry_of(text, text);
        journal.request = &head;
        journal.content_type = slice_from(text);
        write_entry(&journal);
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
        ck_assert_str_eq(lines[5], lines[0]);
        ck_assert_str_eq(lines[6], lines[2]);
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
    struct journal journal = entry_of(text, text);
    journal.request = &head;
    write_entry(&journal);
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        ck_assert_uint_lt(strlen(lines[i]), 50000);
        ck_assert_uint_eq(strcspn(lines[i], "\n"), strlen(lines[i]) - 1);
    }
    ck_assert_ptr_nonnull(strstr(lines[4], ",\"icap\":[]}\n"));
}
END_TEST

/* Writes a line of the request in a format of one's own. */
static const char *own_line(const char *options, const struct journal *journal) {
    static char line[4000];
    char path[300], text[1000];
    struct loop loop;
    struct net_context net;
    snprintf(path, sizeof path, "%s/own.log", scratch());
    snprintf(text, sizeof text,
             "listen \"127.0.0.1:3128\" { mode = forward }\n"
             "url_class c { method = GET }\nurl_class png { content_type = \"image/png\" }\n"
             "access_log \"%s\" { %s }\n",
             path, options);
    struct settings *settings = settings_from(text);
    ck_assert(loop_init(&loop));
    net_context_init(&net, &loop);
    struct access_logs *logs = access_logs_open(&net, settings);
    access_logs_write(logs, journal);
    access_logs_close(&logs);
    log_targets_finish();
    char *written = read_text(path);
    snprintf(line, sizeof line, "%s", written);
    free(written);
    unlink(path);
    net_context_release(&net);
    loop_release(&loop);
    settings_release(&settings);
    return line;
}

START_TEST(codes_have_widths_quotings_and_arguments) {
    struct http_head head;
    head_from(&head, "User-Agent: a \"b\\\nX-Odd: \x1b[31m\xff\n");
    struct journal journal = entry_of("GET", "http://h:81/a/b?c=d");
    journal.request = &head;
    static const struct {
        const char *format, *line;
    } cases[] = {
        {"[%8Ss] [%-8Ss] [%08tr] [%-4>Hs] [%3ru]",
         "[TCP_MISS] [TCP_MISS] [00000017] [200 ] [http://h:81/a/b?c=d]\n"},
        {"%m %U %q %v %p %rs %rp %H", "GET /a/b ?c=d h 81 http /a/b?c=d HTTP/1.1\n"},
        {"%D %T %{ms}T %{us}T", "17042 0 17 17042\n"},
        {"%{%Y}tg %{%H}tg", "2025 19\n"},
        {"%{user-agent}>h %{None}>h", "a%20%22b%5C -\n"},
        {"\\\"%{user-agent}>h\\\"", "\"a %22b%5C\"\n"},
        {"\\\"%\\\"{user-agent}>h\\\" %#{user-agent}>h", "\"a \\\"b\\\\\" a%20%22b%5C\n"},
        {"%'{X-Odd}>h %\\\"{X-Odd}>h", "%1B[31m%FF \\x1B[31m\\xFF\n"},
        {"100%% %retort::id %X %b", "100% 0000000000000abc + 1000\n"},
        {"%icap::tt %retort::services", "0 -\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char options[400];
        snprintf(options, sizeof options, "format = \"%s\"", cases[i].format);
        ck_assert_str_eq(own_line(options, &journal), cases[i].line);
    }
}
END_TEST

/* Fields of a stored reply, of one that was made, and of what the proxy adds to either. */
START_TEST(codes_name_fields_of_the_reply) {
    static const char format[] = "format = \"%{Server}<h|%{server}o|%{X-Odd}<h|%{Age}<h|%{HTTP/1.1 "
                                 "200 OK}<h|%{Serve}<h|%{Content-Length}o\"";
    struct http_head head;
    struct journal journal = entry_of("GET", "http://h/");
    ck_assert_str_eq(own_line(format, &journal), "-|-|-|-|-|-|-\n");
    struct reply reply = {
        .status = 200,
        .stored = SLICE("HTTP/1.1 200 OK\r\nServer:  a b \r\nX-Odd: \x1b[31m\r\n"),
        .extra = SLICE("Age: 7\r\nServer: late\r\n"),
        .length = 9,
    };
    journal.reply = &reply;
    ck_assert_str_eq(own_line(format, &journal), "a%20b|a%20b|%1B[31m|7|-|-|9\n");
    head_from(&head, "Server: made\n");
    reply.head = &head;
    ck_assert_str_eq(own_line(format, &journal), "made|made|-|7|-|-|9\n");
    reply.status = 304;
    ck_assert_str_eq(own_line("format = \"%{Content-Length}o\"", &journal), "-\n");
}
END_TEST

START_TEST(lines_are_for_what_a_log_asks_for) {
    struct journal journal = entry_of("GET", "http://h/a");
    static const struct {
        const char *options;
        bool written;
    } cases[] = {
        {"status = 200", true},
        {"status = 5xx", false},
        {"status = { 4xx, 2xx }", true},
        {"status = 201-599", false},
        {"status = 100-200", true},
        {"result = MISS", true},
        {"result = { HIT, DENIED }", false},
        {"class = c", true},
        {"class = png", false},
        {"class = all", true},
        {"class = c  status = 404", false},
    };
    struct class_subject subject = {.method = SLICE("GET"), .content_type = SLICE("text/html")};
    journal.subject = &subject;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        ck_assert_msg((own_line(cases[i].options, &journal)[0] != '\0') == cases[i].written, "%s",
                      cases[i].options);
    journal.subject = NULL;
    ck_assert_str_eq(own_line("class = c", &journal), "");
}
END_TEST

START_TEST(addresses_are_shortened) {
    static const struct {
        const char *address, *options, *line;
    } cases[] = {
        {"192.0.2.77:4711", "ipv4_prefix = 24", "192.0.2.0 0\n"},
        {"192.0.2.77:4711", "ipv6_prefix = 24", "192.0.2.77 0\n"},
        {"192.0.2.77:4711", "", "192.0.2.77 4711\n"},
        {"192.0.2.77:4711", "ipv4_prefix = 0", "0.0.0.0 0\n"},
        {"[2001:db8:1:2:3::4]:4711", "ipv6_prefix = 48", "2001:db8:1:: 0\n"},
        {"[::ffff:192.0.2.77]:4711", "ipv4_prefix = 16", "192.0.0.0 0\n"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char options[200], text[ADDRESS_IP_TEXT];
        struct address address;
        ck_assert(address_parse(&address, slice_from(cases[i].address), 0));
        struct journal journal = entry_of("GET", "http://h/a");
        journal.client_address = &address;
        journal.client = slice_make(text, address_format_ip(&address, text));
        snprintf(options, sizeof options, "format = \"%%>a %%>p\" %s", cases[i].options);
        ck_assert_str_eq(own_line(options, &journal), cases[i].line);
    }
}
END_TEST

/* What the option takes is what transactions say. */
START_TEST(every_result_can_be_asked_for) {
    for (unsigned i = RESULT_NONE; i <= RESULT_ERROR; i++) {
        char error[200];
        ck_assert(option_check_log_result(cache_result_name((enum cache_result)i).base, error,
                                          sizeof error));
    }
}
END_TEST

START_TEST(bad_formats_are_explained) {
    static const struct {
        const char *text, *says;
        bool icap;
    } cases[] = {
        {"%st", "there is no code %\"st\"", false},
        {"%", "there is no code %\"\"", false},
        {"%Q", "there is no code", false},
        {"%>h", "needs the name of a field", false},
        {"%{}>h", "is not known", false},
        {"%{x", "lacks its '}'", false},
        {"%{x}ru", "means nothing", false},
        {"%{h}T", "is not known", false},
        {"%99tr", "more than 60", false},
        {"%icap::tr", "icap_log sections only", false},
        {"%ts\n", "control character", false},
        {"", "1 to 4096", false},
        {"%{Proxy-Authorization}>h", "carries credentials", false},
        {"%{authorization}i", "carries credentials", false},
        {"%{COOKIE}>h", "carries credentials", true},
        {"%{Set-Cookie}<h", "carries credentials", false},
        {"%{X-Api-Key}o", "carries credentials", false},
        {"%'{X-Session-ID}i", "\"%un\" is the proven user", true},
    };
    char error[LOG_FORMAT_ERROR];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ck_assert_ptr_null(log_format_new(cases[i].text, LOG_ESCAPE_PLAIN, cases[i].icap, error));
        ck_assert_msg(strstr(error, cases[i].says) != NULL, "%s: %s", cases[i].text, error);
    }
    static const char *const open[] = {"%{Surrogate-Key}<h %{xkey}o", "%{X-Forwarded-User}>h"};
    for (size_t i = 0; i < COUNT_OF(open); i++) {
        struct log_format *format = log_format_new(open[i], LOG_ESCAPE_PLAIN, false, error);
        ck_assert_msg(format != NULL, "%s: %s", open[i], error);
        log_format_free(&format);
    }
    char many[3000] = "";
    for (unsigned i = 0; i < LOG_FORMAT_PIECES; i++)
        strcat(many, "%ts ");
    ck_assert_ptr_null(log_format_new(many, LOG_ESCAPE_PLAIN, false, error));
    ck_assert_ptr_nonnull(strstr(error, "more than"));
}
END_TEST

Suite *access_log_suite(void) {
    const TTest *const tests[] = {codes_have_widths_quotings_and_arguments,
                                  codes_name_fields_of_the_reply,
                                  lines_are_for_what_a_log_asks_for,
                                  addresses_are_shortened,
                                  every_result_can_be_asked_for,
                                  bad_formats_are_explained,
                                  formats_are_those_of_their_readers,
                                  what_was_no_request_has_a_line,
                                  no_text_breaks_a_line,
                                  long_texts_are_cut};
    return suite_of("access_log", tests, COUNT_OF(tests));
}
