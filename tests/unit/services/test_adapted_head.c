#include "suites.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "service/adapted_head.h"

struct lab {
    struct arena arena;
    struct http_head request, response;
    struct service_exchange exchange;
    char request_text[500], response_text[1000];
};

static void set_up(struct lab *lab, const char *request_fields, const char *response_fields) {
    arena_init(&lab->arena);
    snprintf(lab->request_text, sizeof lab->request_text, "GET / HTTP/1.1\r\n%s\r\n",
             request_fields);
    snprintf(lab->response_text, sizeof lab->response_text, "HTTP/1.1 200 OK\r\n%s\r\n",
             response_fields);
    ck_assert_int_gt(
        http_head_parse_request(&lab->request, lab->request_text, strlen(lab->request_text), 0), 0);
    ck_assert_int_gt(
        http_head_parse_response(&lab->response, lab->response_text, strlen(lab->response_text), 0),
        0);
    INIT_OBJ(&lab->exchange, SERVICE_EXCHANGE_MAGIC);
    lab->exchange.point = SERVICE_RESPONSE;
    lab->exchange.request = &lab->request;
    lab->exchange.head = &lab->response;
    lab->exchange.arena = &lab->arena;
    lab->exchange.has_body = true;
}

static void expect_field(const struct lab *lab, enum http_name name, const char *value) {
    struct slice got = http_head_value(&lab->response, name);
    ck_assert_msg(slice_equal(got, slice_from(value)), "\"%.*s\" instead of \"%s\"",
                  SLICE_PRINT(got), value);
}

START_TEST(who_may_be_adapted) {
    struct lab lab;
    set_up(&lab, "", "Cache-Control: max-age=3\r\n");
    ck_assert(adapted_head_allowed(&lab.exchange));
    lab.exchange.has_body = false;
    ck_assert(!adapted_head_allowed(&lab.exchange));
    set_up(&lab, "", "Cache-Control: public, No-Transform\r\n");
    ck_assert(!adapted_head_allowed(&lab.exchange));
    set_up(&lab, "Cache-Control: no-transform\r\n", "");
    ck_assert(!adapted_head_allowed(&lab.exchange));
    set_up(&lab, "", "Content-Range: bytes 0-1/2\r\n");
    ck_assert(!adapted_head_allowed(&lab.exchange));
    lab.response.status = 206;
    ck_assert(!adapted_head_allowed(&lab.exchange));
    set_up(&lab, "", "Content-Encoding: identity\r\n");
    ck_assert(adapted_head_is_identity(&lab.response));
    set_up(&lab, "", "Content-Encoding: identity, br\r\n");
    ck_assert(!adapted_head_is_identity(&lab.response));
}
END_TEST

START_TEST(what_stops_being_true) {
    struct lab lab;
    set_up(&lab, "",
           "ETag: \"a\"\r\nContent-MD5: x\r\nDigest: y\r\nAccept-Ranges: bytes\r\n"
           "Repr-Digest: z\r\n");
    adapted_head_body_changed(&lab.exchange);
    expect_field(&lab, HTTP_ETAG, "W/\"a\"");
    adapted_head_body_changed(&lab.exchange);
    expect_field(&lab, HTTP_ETAG, "W/\"a\"");
    ck_assert_uint_eq(lab.response.field_count, 1);
    arena_release(&lab.arena);
}
END_TEST

START_TEST(vary_is_merged) {
    struct lab lab;
    set_up(&lab, "", "Vary: Cookie\r\nVary: Origin\r\n");
    adapted_head_add_vary(&lab.exchange, SLICE("Accept-Encoding"));
    struct slice vary = http_head_value(&lab.response, HTTP_VARY);
    ck_assert(http_head_has_token(&lab.response, HTTP_VARY, SLICE("cookie")));
    ck_assert(http_head_has_token(&lab.response, HTTP_VARY, SLICE("origin")));
    ck_assert(http_head_has_token(&lab.response, HTTP_VARY, SLICE("accept-encoding")));
    size_t length = vary.length;
    adapted_head_add_vary(&lab.exchange, SLICE("accept-encoding"));
    ck_assert_uint_eq(http_head_value(&lab.response, HTTP_VARY).length, length);
    arena_release(&lab.arena);
    set_up(&lab, "", "");
    adapted_head_add_vary(&lab.exchange, SLICE("Accept-Encoding"));
    expect_field(&lab, HTTP_VARY, "Accept-Encoding");
    arena_release(&lab.arena);
}
END_TEST

START_TEST(media_types) {
    char *items[] = {"text/*", "application/json", "+xml"};
    struct service_list list = {items, 3, false};
    struct lab lab;
    set_up(&lab, "", "Content-Type: Text/HTML ; charset=utf-8\r\n");
    ck_assert(slice_equal(media_type_of(&lab.response), SLICE("Text/HTML")));
    ck_assert(media_type_listed(SLICE("TEXT/plain"), &list));
    ck_assert(media_type_listed(SLICE("application/JSON"), &list));
    ck_assert(media_type_listed(SLICE("image/svg+xml"), &list));
    ck_assert(!media_type_listed(SLICE("application/jsonp"), &list));
    ck_assert(!media_type_listed(SLICE("text"), &list));
    ck_assert(!media_type_listed(SLICE(""), &list));
}
END_TEST

START_TEST(for_one_client_alone) {
    struct lab lab;
    set_up(&lab, "", "Content-Type: text/html\r\n");
    adapted_head_make_private(&lab.exchange);
    expect_field(&lab, HTTP_CACHE_CONTROL, "private");
    arena_release(&lab.arena);
    set_up(&lab, "",
           "Cache-Control: Public, max-age=60\r\nCache-Control: s-maxage=9, no-store\r\n");
    adapted_head_make_private(&lab.exchange);
    expect_field(&lab, HTTP_CACHE_CONTROL, "private, max-age=60, no-store");
    arena_release(&lab.arena);
    set_up(&lab, "", "Cache-Control: private=\"Set-Cookie, X\"\r\n");
    adapted_head_make_private(&lab.exchange);
    ck_assert(http_head_has_token(&lab.response, HTTP_CACHE_CONTROL, SLICE("private")));
    arena_release(&lab.arena);
}
END_TEST

Suite *adapted_head_suite(void) {
    const TTest *const tests[] = {who_may_be_adapted, what_stops_being_true, vary_is_merged,
                                  media_types, for_one_client_alone};
    return suite_of("adapted_head", tests, COUNT_OF(tests));
}
