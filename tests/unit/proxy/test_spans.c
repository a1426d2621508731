#include "suites.h"

#include "spans/otlp.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Texts from outside are cut, and a set that is full takes no more. */
START_TEST(spans_are_bounded) {
    struct trace_context context = {.span = 1, .sampled = true, .state = SLICE("")};
    struct span_set *set = span_set_new(&context);
    char text[2 * SPAN_TEXT_MOST], *written = NULL;
    size_t length = 0;
    bool first = true;
    memset(text, '"', sizeof text);
    for (unsigned i = 0; i < SPANS_MOST; i++) {
        struct span *span = span_set_add(set, slice_make(text, sizeof text), SPAN_INTERNAL);
        ck_assert_ptr_nonnull(span);
        span_put_text(set, span, "text", slice_make(text, sizeof text));
        span_put_text(set, span, "nothing", SLICE(""));
        ck_assert_uint_eq(span->attributes[0].text.length, SPAN_TEXT_MOST);
        ck_assert_uint_eq(span->attribute_count, 1);
    }
    ck_assert_ptr_null(span_set_add(set, SLICE("x"), SPAN_INTERNAL));
    FILE *out = open_memstream(&written, &length);
    char service[SPAN_TEXT_MOST + 100];
    memset(service, '"', sizeof service - 1);
    service[sizeof service - 1] = '\0';
    otlp_begin(out, service, "1");
    otlp_write(out, set, &first);
    otlp_end(out);
    fclose(out);
    json_t *root = json_loadb(written, length, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(root);
    json_decref(root);
    free(written);
    span_set_free(&set);
}
END_TEST

Suite *spans_suite(void) {
    const TTest *const tests[] = {spans_are_bounded};
    return suite_of("spans", tests, sizeof tests / sizeof tests[0]);
}
