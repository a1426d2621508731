#include "suites.h"

#include "adremover/request.h"
#include "http/head_parser.h"

static unsigned types_with(const char *method, const char *fields, const char *path) {
    struct http_head head;
    char text[1000];
    snprintf(text, sizeof text, "%s / HTTP/1.1\r\n%s\r\n", method, fields);
    ck_assert_int_gt(http_head_parse_request(&head, text, strlen(text), 0), 0);
    return request_kind_types(&head, slice_from(path));
}

static unsigned types_of(const char *fields, const char *path) {
    return types_with("GET", fields, path);
}

START_TEST(types) {
    ck_assert_uint_eq(types_of("", "/a"), FILTER_TYPE_PARTS);
    ck_assert_uint_eq(types_of("Accept: */*\r\n", "/a.JS?x=.gif"), FILTER_TYPE_SCRIPT);
    ck_assert_uint_eq(types_of("", "/a.b/c"), FILTER_TYPE_PARTS);
    ck_assert_uint_eq(types_of("", "/a.gif;jsessionid=1"), FILTER_TYPE_IMAGE);
    ck_assert_uint_eq(types_of("Sec-Fetch-Dest: script\r\n", "/a.gif"), FILTER_TYPE_SCRIPT);
    ck_assert_uint_eq(types_of("Sec-Fetch-Dest: unheard\r\n", "/a.gif"), FILTER_TYPE_IMAGE);
    ck_assert_uint_eq(types_of("Accept: image/avif,image/webp,*/*\r\n", "/x"), FILTER_TYPE_IMAGE);
    ck_assert_uint_eq(types_of("Accept: text/css,*/*;q=0.1\r\n", "/x"), FILTER_TYPE_STYLESHEET);
    ck_assert_uint_eq(types_of("Accept: text/html,*/*\r\n", "/x"), FILTER_TYPE_DOCUMENT);
    ck_assert_uint_eq(types_of("Accept: text/html\r\nReferer: http://a/\r\n", "/x"),
                      FILTER_TYPE_DOCUMENT | FILTER_TYPE_SUBDOCUMENT);
    ck_assert_uint_eq(types_of("Sec-Fetch-Dest: empty\r\n", "/x"), FILTER_TYPE_XMLHTTPREQUEST);
    ck_assert_uint_eq(types_with("POST", "Sec-Fetch-Dest: empty\r\n", "/x"),
                      FILTER_TYPE_XMLHTTPREQUEST | FILTER_TYPE_PING);
}
END_TEST

START_TEST(pages) {
    struct http_head head;
    const char *text = "GET / HTTP/1.1\r\nReferer: https://Page.example:8443/x\r\n\r\n";
    ck_assert_int_gt(http_head_parse_request(&head, text, strlen(text), 0), 0);
    ck_assert(slice_equal(request_kind_page(&head), SLICE("Page.example")));
    text = "GET / HTTP/1.1\r\nReferer: nonsense\r\nOrigin: http://o.example\r\n\r\n";
    ck_assert_int_gt(http_head_parse_request(&head, text, strlen(text), 0), 0);
    ck_assert(slice_equal(request_kind_page(&head), SLICE("o.example")));
}
END_TEST

START_TEST(parties) {
    static const struct {
        const char *site;
        enum filter_party party;
    } cases[] = {{"cross-site", FILTER_PARTY_THIRD},
                 {"same-origin", FILTER_PARTY_FIRST},
                 {"same-site", FILTER_PARTY_FIRST},
                 {"none", FILTER_PARTY_UNKNOWN}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_head head;
        char text[100];
        snprintf(text, sizeof text, "HEAD / HTTP/1.1\r\nSec-Fetch-Site: %s\r\n\r\n", cases[i].site);
        ck_assert_int_gt(http_head_parse_request(&head, text, strlen(text), 0), 0);
        ck_assert_int_eq(request_kind_party(&head), cases[i].party);
        ck_assert_uint_eq(request_kind_method(&head), FILTER_METHOD_HEAD);
    }
}
END_TEST

Suite *request_kind_suite(void) {
    const TTest *const tests[] = {types, pages, parties};
    return suite_of("request_kind", tests, COUNT_OF(tests));
}
