/* What ICAP servers say, each value in front of a forbidden page. */
#include "suites.h"

#include "icap/options.h"
#include "icap/wire.h"

#include <string.h>

static bool parse(struct icap_encapsulated *parts, const char *value) {
    return icap_encapsulated_parse(parts, guard_keep(slice_from(value)), 1000);
}

START_TEST(encapsulated_is_read) {
    struct icap_encapsulated parts;
    ck_assert(parse(&parts, "req-hdr=0, res-hdr=137, res-body=296"));
    ck_assert(parts.has_request && parts.has_response && parts.has_body && !parts.body_is_request);
    ck_assert_uint_eq(parts.response_at, 137);
    ck_assert_uint_eq(parts.body_at, 296);
    ck_assert(parse(&parts, " REQ-HDR = 0 ,, req-body=1000"));
    ck_assert(parts.has_request && !parts.has_response && parts.body_is_request);
    ck_assert(parse(&parts, "res-hdr=0, null-body=5") && !parts.has_body);
}
END_TEST

START_TEST(encapsulated_is_strict) {
    static const char *const bad[] = {
        "",
        ",",
        "=",
        "req-hdr",
        "req-hdr=",
        "req-hdr=0",
        "req-hdr=0, req-body",
        "req-hdr=0, req-body=",
        "req-hdr=1, req-body=5",
        "req-hdr=0, req-body=0",
        "req-hdr=0, req-body=1001",
        "req-hdr=0, req-body=18446744073709551621",
        "req-hdr=0, req-body=-5",
        "req-hdr=0, req-hdr=4, req-body=5",
        "res-hdr=0, req-hdr=4, req-body=5",
        "res-hdr=0, res-hdr=4, res-body=5",
        "req-hdr=0, res-hdr=9, res-body=5",
        "res-body=0, res-hdr=5",
        "req-hdr=0, req-body=5, null-body=6",
        "req-hdr=0, other=5",
        "opt-body=0",
        "res-hdr=0, opt-body=5",
    };
    struct icap_encapsulated parts;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        ck_assert_msg(!parse(&parts, bad[i]), "\"%s\"", bad[i]);
}
END_TEST

static struct icap_options options_of(const char *lines) {
    struct http_head head;
    struct icap_options options;
    const char *error;
    head_from(&head, lines);
    head.status = 200;
    ck_assert(icap_options_parse(&options, &head, &error));
    return options;
}

START_TEST(options_are_read) {
    struct icap_options o = options_of("Methods: RESPMOD\nISTag: \"a\"\nPreview: 1024\n"
                                       "Allow: 204, 206\nMax-Connections: 9\nOptions-TTL: 60\n");
    ck_assert(o.respmod && !o.reqmod && o.preview_given && o.allow_204 && o.allow_206);
    ck_assert_uint_eq(o.preview, 1024);
    ck_assert_uint_eq(o.max_connections, 9);
    ck_assert_int_eq(o.ttl, 60);
    ck_assert_str_eq(o.istag, "\"a\"");
    o = options_of("Preview: x\nMax-Connections: 99999999999\nOptions-TTL: -1\n");
    ck_assert(!o.preview_given && o.max_connections == 0 && o.ttl == -1);
}
END_TEST

static enum icap_transfer transfer(const struct icap_options *options, const char *path) {
    return icap_options_transfer(options, guard_keep(slice_from(path)));
}

START_TEST(long_lists_are_whole_or_not_believed) {
    static char line[ICAP_TRANSFER_SPACE + 400];
    strcpy(line, "Transfer-Preview: *\nTransfer-Ignore: ");
    while (strlen(line) < ICAP_TRANSFER_SPACE - 100)
        strcat(line, "xxx,");
    size_t end = strlen(line);
    strcpy(line + end, "last\n");
    struct icap_options o = options_of(line);
    ck_assert(!o.lists_too_long);
    ck_assert_int_eq(transfer(&o, "/a.last"), ICAP_TRANSFER_IGNORE);
    ck_assert_int_eq(transfer(&o, "/a.b"), ICAP_TRANSFER_PREVIEW);
    memset(line + end, 'x', 300);
    strcpy(line + end + 300, "\n");
    o = options_of(line);
    ck_assert(o.lists_too_long);
    ck_assert_int_eq(transfer(&o, "/a.xxx"), ICAP_TRANSFER_COMPLETE);
}
END_TEST

START_TEST(lists_stand_in_several_lines) {
    struct icap_options o =
        options_of("Transfer-Preview: *\nTransfer-Ignore: jpg\nMethods: REQMOD\n"
                   "Allow: 204\nTransfer-Ignore: gif, png\nAllow: 206\n"
                   "Methods: RESPMOD\nTransfer-Complete: html\n"
                   "Transfer-Preview: css\nTransfer-Complete: exe\n");
    ck_assert(o.reqmod && o.respmod && o.allow_204 && o.allow_206);
    ck_assert_int_eq(transfer(&o, "/a.jpg"), ICAP_TRANSFER_IGNORE);
    ck_assert_int_eq(transfer(&o, "/a.png"), ICAP_TRANSFER_IGNORE);
    ck_assert_int_eq(transfer(&o, "/a.html"), ICAP_TRANSFER_COMPLETE);
    ck_assert_int_eq(transfer(&o, "/a.exe"), ICAP_TRANSFER_COMPLETE);
    ck_assert_int_eq(transfer(&o, "/a.css"), ICAP_TRANSFER_PREVIEW);
    ck_assert_int_eq(transfer(&o, "/a.other"), ICAP_TRANSFER_PREVIEW);
}
END_TEST

START_TEST(an_istag_is_whole) {
    struct http_head head;
    struct icap_options options;
    const char *error = NULL;
    char line[400] = "ISTag: ";
    memset(line + strlen(line), 't', SERVICE_TEXT - 1);
    strcat(line, "\n");
    ck_assert_uint_eq(strlen(options_of(line).istag), SERVICE_TEXT - 1);
    line[strlen(line) - 1] = 't';
    strcat(line, "\n");
    head_from(&head, line);
    head.status = 200;
    ck_assert(!icap_options_parse(&options, &head, &error) && strstr(error, "ISTag") != NULL);
}
END_TEST

START_TEST(a_notice_is_one_line) {
    struct icap_options o = options_of("X-Operator-Notice: a b\nx-operator-notice: c\n");
    ck_assert_str_eq(o.notice.text, "a b");
}
END_TEST

START_TEST(transfers_go_by_extension) {
    struct icap_options o = options_of("Transfer-Preview: *\nTransfer-Ignore: jpg, gif\n"
                                       "Transfer-Complete: html\n");
    static const struct {
        const char *path;
        enum icap_transfer transfer;
    } paths[] = {
        {"/a.JPG", ICAP_TRANSFER_IGNORE},   {"/a.b.html", ICAP_TRANSFER_COMPLETE},
        {"/a.jpg/", ICAP_TRANSFER_PREVIEW}, {"/a.gif/b", ICAP_TRANSFER_PREVIEW},
        {"/jpg", ICAP_TRANSFER_PREVIEW},    {"/a.", ICAP_TRANSFER_PREVIEW},
        {"gif", ICAP_TRANSFER_PREVIEW},     {"", ICAP_TRANSFER_PREVIEW},
        {".gif", ICAP_TRANSFER_IGNORE},
    };
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        ck_assert_int_eq(icap_options_transfer(&o, guard_keep(slice_from(paths[i].path))),
                         paths[i].transfer);
}
END_TEST

Suite *wire_suite(void) {
    const TTest *const tests[] = {encapsulated_is_read,
                                  encapsulated_is_strict,
                                  options_are_read,
                                  long_lists_are_whole_or_not_believed,
                                  lists_stand_in_several_lines,
                                  an_istag_is_whole,
                                  a_notice_is_one_line,
                                  transfers_go_by_extension};
    return suite_of("wire", tests, COUNT_OF(tests));
}
