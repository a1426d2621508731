#include "suites.h"

#include "http/trace_context.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"

static bool parse(struct trace_context *context, const char *text) {
    return trace_context_parse(context, guard_put(slice_from(text)));
}

/* W3C Trace Context, 3.2: "traceparent: 00-TRACE-SPAN-01". */
START_TEST(what_is_read_is_written) {
    struct trace_context context;
    char text[TRACE_CONTEXT_TEXT];
    ck_assert(parse(&context, "00-" TRACE "-" SPAN "-01"));
    ck_assert_uint_eq(context.span, 0xb7ad6b7169203331);
    ck_assert(context.sampled);
    struct slice written = trace_context_write(&context, text);
    ck_assert(slice_equal(written, SLICE("00-" TRACE "-" SPAN "-01")));
    ck_assert(parse(&context, "00-" TRACE "-" SPAN "-fe"));
    ck_assert(!context.sampled);
    ck_assert(parse(&context, "cc-" TRACE "-" SPAN "-01-more"));
}
END_TEST

START_TEST(what_is_malformed) {
    static const char *const bad[] = {
        "",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01-",
        "ff-" TRACE "-" SPAN "-01",
        "cc-" TRACE "-" SPAN "-01more",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
    };
    struct trace_context context;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!parse(&context, bad[i]), "%s", bad[i]);
}
END_TEST

static void check_state(const char *given, size_t expected) {
    struct slice value = guard_put(slice_from(given));
    ck_assert_uint_eq(trace_context_state(value).length, expected);
}

/* 3.3.1.1: at most 32 members; 3.3.1.5: whole members are removed from the end. */
START_TEST(states) {
    char text[2 * TRACE_STATE_MOST + 1];
    check_state("", 0);
    check_state("a=1,\tb=2", 8);
    check_state("a=\x7f", 0);
    check_state("a=\xfc", 0);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    check_state(text, 0);
    text[5] = text[TRACE_STATE_MOST] = ',';
    check_state(text, TRACE_STATE_MOST);
    text[TRACE_STATE_MOST] = 'x';
    check_state(text, 5);
    for (size_t i = 0; i < TRACE_STATE_MOST; i++)
        text[i] = i % 2 == 0 ? 'k' : ',';
    text[TRACE_STATE_MOST] = '\0';
    check_state(text, 2 * TRACE_STATE_MEMBERS - 1);
}
END_TEST

START_TEST(ids_differ) {
    struct trace_ids ids;
    struct trace_context a, b;
    trace_ids_init(&ids);
    trace_context_new(&a, &ids);
    trace_context_new(&b, &ids);
    ck_assert(memcmp(a.trace, b.trace, TRACE_ID) != 0 && a.span != b.span);
    ck_assert(a.span != 0 && !a.sampled);
    for (unsigned i = 0; i < 200; i++)
        for (unsigned j = 0; j < i; j++)
            ck_assert_uint_ne(trace_context_child(a.span, i), trace_context_child(a.span, j));
    ck_assert_uint_eq(trace_context_child(a.span, 7), trace_context_child(a.span, 7));
}
END_TEST

Suite *trace_context_suite(void) {
    TCase *tcase = tcase_create("trace_context");
    tcase_add_test(tcase, what_is_read_is_written);
    tcase_add_test(tcase, what_is_malformed);
    tcase_add_test(tcase, states);
    tcase_add_test(tcase, ids_differ);
    Suite *suite = suite_create("trace_context");
    suite_add_tcase(suite, tcase);
    return suite;
}
