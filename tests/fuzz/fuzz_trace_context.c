/* traceparent in the first line, tracestate behind it, as whoever called may send them, and a span
 * with these texts. */
#include "base/assert.h"
#include "spans/otlp.h"

#include <jansson.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parent(struct slice value) {
    struct trace_context context;
    char text[TRACE_CONTEXT_TEXT];
    if (!trace_context_parse(&context, value))
        return;
    ASSERT(context.span != 0 && value.length >= TRACE_CONTEXT_TEXT);
    trace_context_write(&context, text);
    ASSERT(memcmp(text + 2, value.base + 2, TRACE_CONTEXT_TEXT - 4) == 0);
}

static void check_state(struct slice value, struct slice state) {
    ASSERT(state.length <= value.length && state.length <= TRACE_STATE_MOST);
    if (state.length == 0)
        return;
    ASSERT(state.base == value.base);
    ASSERT(state.length == value.length || value.base[state.length] == ',');
}

static void check_json(struct slice text, struct slice state) {
    struct trace_context context = {.span = 1, .sampled = true, .state = state};
    struct span_set *set = span_set_new(&context);
    struct span *span = span_set_add(set, text, SPAN_SERVER);
    char *written = NULL;
    size_t length = 0;
    bool first = true;
    span_put_text(set, span, "url.full", text);
    span_put_number(span, "http.response.status_code", 200);
    FILE *out = open_memstream(&written, &length);
    ASSERT(out != NULL);
    otlp_begin(out, "retort", "1");
    otlp_write(out, set, &first);
    otlp_end(out);
    ASSERT(fclose(out) == 0);
    json_t *root = json_loadb(written, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    ASSERT(root != NULL);
    json_decref(root);
    free(written);
    span_set_free(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = xmalloc(size + 1);
    if (size > 0)
        memcpy(copy, data, size);
    const char *end = size > 0 ? memchr(copy, '\n', size) : NULL;
    size_t length = end == NULL ? size : (size_t)(end - copy);
    struct slice parent = slice_make(copy, length);
    struct slice value = slice_make(copy + length, size - length);
    if (end != NULL)
        value = slice_make(end + 1, size - length - 1);
    struct slice state = trace_context_state(value);
    check_parent(parent);
    check_state(value, state);
    check_json(parent, state);
    free(copy);
    return 0;
}
