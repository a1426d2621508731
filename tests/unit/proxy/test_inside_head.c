/* What is refused of a head that a service inside the proxy has made. */
#include "suites.h"

#include "inside/call.h"

static void make_response(struct http_head *head) {
    http_head_init(head);
    head->version = 11;
    head->status = 200;
    head->reason = SLICE("OK");
    http_head_add(head, SLICE("Content-Type"), SLICE("text/plain; charset=\"utf-8\""));
    http_head_add(head, SLICE("X-Empty"), SLICE(""));
}

static void make_request(struct http_head *head, struct slice method) {
    http_head_init(head);
    head->version = 11;
    head->method = method;
    head->method_id = http_method_lookup(method);
    head->target = SLICE("http://www.example.com/");
    http_head_add(head, SLICE("Host"), SLICE("www.example.com"));
}

static bool good_response(const struct http_head *head) {
    return inside_head_error(head, NULL, true, HTTP_METHOD_GET) == NULL;
}

START_TEST(sound_heads_pass) {
    struct http_head head;
    make_response(&head);
    ck_assert(good_response(&head));
    make_request(&head, SLICE("GET"));
    ck_assert_ptr_null(inside_head_error(&head, NULL, false, HTTP_METHOD_GET));
}
END_TEST

/* RFC 9110 §5.5: "Field values containing CR, LF, or NUL characters are invalid and dangerous". */
START_TEST(no_field_begins_in_a_value) {
    static const struct slice values[] = {{"a\r\nX: 1", 7}, {"a\nb", 3}, {"a\rb", 3}, {"a\0b", 3}};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct http_head head;
        make_response(&head);
        http_head_add(&head, SLICE("X-Text"), values[i]);
        ck_assert(!good_response(&head));
        make_response(&head);
        head.reason = values[i];
        ck_assert(!good_response(&head));
    }
}
END_TEST

/* RFC 9110 §5.1: "field-name = token". */
START_TEST(names_are_tokens) {
    static const struct slice names[] = {{"", 0}, {"A B", 3}, {"A:", 2}, {"A\r\n", 3}};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct http_head head;
        make_response(&head);
        http_head_add(&head, names[i], SLICE("1"));
        ck_assert(!good_response(&head));
    }
}
END_TEST

START_TEST(start_lines_are_clean) {
    static const struct slice targets[] = {{"", 0}, {"/a b", 4}, {"/\r\n", 3}};
    struct http_head head;
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        make_request(&head, SLICE("GET"));
        head.target = targets[i];
        ck_assert_ptr_nonnull(inside_head_error(&head, NULL, false, HTTP_METHOD_GET));
    }
    make_request(&head, SLICE("GET"));
    head.method = SLICE("GET /x HTTP/1.1\r\nA: ");
    ck_assert_ptr_nonnull(inside_head_error(&head, NULL, false, HTTP_METHOD_GET));
    make_response(&head);
    head.status = 100;
    ck_assert(!good_response(&head));
    head.status = 1000;
    ck_assert(!good_response(&head));
}
END_TEST

/* RFC 9112 §6.3: the method decides whether the response has a body. */
START_TEST(methods_that_frame_stay) {
    struct http_head head;
    make_request(&head, SLICE("HEAD"));
    ck_assert_ptr_null(inside_head_error(&head, NULL, false, HTTP_METHOD_HEAD));
    ck_assert_ptr_nonnull(inside_head_error(&head, NULL, false, HTTP_METHOD_GET));
    make_request(&head, SLICE("GET"));
    ck_assert_ptr_nonnull(inside_head_error(&head, NULL, false, HTTP_METHOD_HEAD));
    make_request(&head, SLICE("POST"));
    ck_assert_ptr_null(inside_head_error(&head, NULL, false, HTTP_METHOD_GET));
}
END_TEST

START_TEST(framing_agrees_with_itself) {
    struct http_head head;
    make_response(&head);
    http_head_add(&head, SLICE("Content-Length"), SLICE("1"));
    ck_assert(good_response(&head));
    http_head_add(&head, SLICE("Content-Length"), SLICE("2"));
    ck_assert(!good_response(&head));
}
END_TEST

/* A service changes a head that came through a parser: whatever it removes, what it adds or replaces
 * is looked at. */
START_TEST(changes_are_looked_at) {
    enum { FIELDS = 12 };
    static const char *const names[FIELDS] = {"A", "B", "C", "D", "E", "F",
                                              "G", "H", "I", "J", "K", "L"};
    for (unsigned first = 0; first < FIELDS; first++)
        for (unsigned removed = 0; first + removed < FIELDS; removed++)
            for (unsigned bad = 0; bad < FIELDS - removed; bad++) {
                struct http_head before, head;
                make_response(&before);
                for (unsigned i = 0; i < FIELDS; i++)
                    http_head_add(&before, slice_from(names[i]), SLICE("1"));
                http_head_assign(&head, &before);
                for (unsigned i = first; i < first + removed; i++)
                    http_head_remove_text(&head, slice_from(names[i]));
                ck_assert(inside_head_error(&head, &before, true, HTTP_METHOD_GET) == NULL);
                head.fields[2 + bad].value = SLICE("1\r\nX: 2");
                ck_assert(inside_head_error(&head, &before, true, HTTP_METHOD_GET) != NULL);
                head.fields[2 + bad].value = SLICE("2");
                ck_assert(inside_head_error(&head, &before, true, HTTP_METHOD_GET) == NULL);
                http_head_add(&head, SLICE("X"), SLICE("a\nb"));
                ck_assert(inside_head_error(&head, &before, true, HTTP_METHOD_GET) != NULL);
            }
}
END_TEST

START_TEST(a_changed_start_is_looked_at) {
    struct http_head before, head;
    make_response(&before);
    http_head_assign(&head, &before);
    head.reason = SLICE("O\r\nK");
    ck_assert_ptr_nonnull(inside_head_error(&head, &before, true, HTTP_METHOD_GET));
    make_request(&before, SLICE("GET"));
    http_head_assign(&head, &before);
    ck_assert_ptr_null(inside_head_error(&head, &before, false, HTTP_METHOD_GET));
    head.target = SLICE("/a b");
    ck_assert_ptr_nonnull(inside_head_error(&head, &before, false, HTTP_METHOD_GET));
}
END_TEST

/* A head that is written and parsed again, as the memory of verdicts does, has room for no more. */
START_TEST(heads_have_bounds) {
    static char text[INSIDE_HEAD_MAX];
    struct http_head head;
    make_response(&head);
    while (head.field_count < HTTP_FIELDS_MAX)
        http_head_add(&head, SLICE("A"), SLICE("1"));
    ck_assert(good_response(&head));
    http_head_add(&head, SLICE("A"), SLICE("1"));
    ck_assert(!good_response(&head));
    memset(text, 'x', sizeof text);
    make_response(&head);
    http_head_add(&head, SLICE("A"), slice_make(text, sizeof text / 2));
    ck_assert(good_response(&head));
    http_head_add(&head, SLICE("A"), slice_make(text, sizeof text / 2));
    ck_assert(!good_response(&head));
}
END_TEST

Suite *inside_head_suite(void) {
    const TTest *tests[] = {
        sound_heads_pass,      no_field_begins_in_a_value,   names_are_tokens,
        start_lines_are_clean, methods_that_frame_stay,      framing_agrees_with_itself,
        changes_are_looked_at, a_changed_start_is_looked_at, heads_have_bounds,
    };
    return suite_of("inside_head", tests, COUNT_OF(tests));
}
