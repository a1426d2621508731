#include "cache/vary.h"

#include "base/assert.h"

#include <stdlib.h>

enum { ELEMENTS_MAX = 64 };

/* Text is written to `out`, or compared with `expected`. `length` goes on counting when the
 * capacity is used up. */
struct sink {
    char *out;
    const char *expected; /* where `out` is NULL */
    size_t capacity, length;
    bool differs;
};

static void vary_put(struct sink *sink, struct slice text, bool lower) {
    for (size_t i = 0; i < text.length; i++, sink->length++) {
        char c = lower ? (char)ascii_lower((unsigned char)text.base[i]) : text.base[i];
        if (sink->length >= sink->capacity)
            continue;
        if (sink->out != NULL)
            sink->out[sink->length] = c;
        else
            sink->differs |= sink->expected[sink->length] != c;
    }
}

static bool is_unordered(struct slice name) {
    return slice_equal_nocase(name, SLICE("accept-language")) ||
           slice_equal_nocase(name, SLICE("accept-encoding"));
}

/* Gathers every element of every field of that name. False: there are too many elements to sort. */
static bool vary_gather(const struct http_head *request, struct slice name, struct slice *elements,
                        unsigned *count, bool *present) {
    *count = 0;
    *present = false;
    for (unsigned i = 0; i < request->field_count; i++) {
        if (!slice_equal_nocase(request->fields[i].name, name))
            continue;
        struct slice rest = request->fields[i].value, element;
        *present = true;
        while (slice_next_element(&rest, &element)) {
            if (*count == ELEMENTS_MAX)
                return false;
            elements[(*count)++] = element;
        }
    }
    return true;
}

static int compare_nocase(const void *a, const void *b) {
    const struct slice *left = a, *right = b;
    size_t least = left->length < right->length ? left->length : right->length;
    for (size_t i = 0; i < least; i++) {
        int difference =
            ascii_lower((unsigned char)left->base[i]) - ascii_lower((unsigned char)right->base[i]);
        if (difference != 0)
            return difference;
    }
    return (left->length > right->length) - (left->length < right->length);
}

/* A value with too many elements is taken without normalising it. */
static void put_raw(struct sink *sink, const struct http_head *request, struct slice name) {
    for (unsigned i = 0; i < request->field_count; i++)
        if (slice_equal_nocase(request->fields[i].name, name)) {
            vary_put(sink, request->fields[i].value, false);
            vary_put(sink, SLICE(","), false);
        }
}

static void put_value(struct sink *sink, const struct http_head *request, struct slice name) {
    struct slice elements[ELEMENTS_MAX];
    unsigned count;
    bool present, unordered = is_unordered(name);
    if (!vary_gather(request, name, elements, &count, &present)) {
        put_raw(sink, request, name);
        return;
    }
    if (!present)
        vary_put(sink, SLICE("\r"), false); /* absent is not the same as empty */
    if (unordered)
        qsort(elements, count, sizeof elements[0], compare_nocase);
    for (unsigned i = 0; i < count; i++) {
        vary_put(sink, i > 0 ? SLICE(",") : slice_make("", 0), false);
        vary_put(sink, elements[i], unordered);
    }
}

static bool vary_is_token(struct slice text) {
    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.base[i];
        if (c <= 0x20 || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)
            return false;
    }
    return text.length > 0;
}

bool vary_usable(const struct http_head *response) {
    unsigned count = 0;
    for (const struct http_field *vary = http_head_find(response, HTTP_VARY); vary != NULL;
         vary = http_head_find_next(response, HTTP_VARY, vary)) {
        struct slice rest = vary->value, name;
        while (slice_next_element(&rest, &name))
            if (++count > VARY_NAMES || !vary_is_token(name) || slice_equal(name, SLICE("*")))
                return false;
    }
    return true;
}

size_t vary_write(const struct http_head *request, const struct http_head *response, char *out,
                  size_t capacity) {
    struct sink sink = {.out = out, .capacity = capacity};
    for (const struct http_field *vary = http_head_find(response, HTTP_VARY); vary != NULL;
         vary = http_head_find_next(response, HTTP_VARY, vary)) {
        struct slice rest = vary->value, name;
        while (slice_next_element(&rest, &name)) {
            vary_put(&sink, name, true);
            vary_put(&sink, SLICE(":"), false);
            put_value(&sink, request, name);
            vary_put(&sink, SLICE("\n"), false);
        }
    }
    return sink.length;
}

/* Takes the next line of a text that vary_write has written, without the line end. */
static bool vary_next_line(struct slice *stored, struct slice *name, struct slice *value) {
    if (stored->length == 0)
        return false;
    const char *end = memchr(stored->base, '\n', stored->length);
    const char *colon = memchr(stored->base, ':', stored->length);
    ASSERT(end != NULL && colon != NULL && colon < end);
    *name = slice_make(stored->base, (size_t)(colon - stored->base));
    *value = slice_make(colon + 1, (size_t)(end - colon - 1));
    *stored = slice_make(end + 1, stored->length - (size_t)(end + 1 - stored->base));
    return true;
}

bool vary_overlaps(struct slice a, struct slice b) {
    struct slice name, value, other_name, other_value;
    while (vary_next_line(&a, &name, &value))
        for (struct slice rest = b; vary_next_line(&rest, &other_name, &other_value);)
            if (slice_equal(name, other_name) && !slice_equal(value, other_value))
                return false;
    return true;
}

bool vary_matches(struct slice stored, const struct http_head *request) {
    while (stored.length > 0) {
        const char *end = memchr(stored.base, '\n', stored.length);
        const char *colon = memchr(stored.base, ':', stored.length);
        ASSERT(end != NULL && colon != NULL);
        struct sink sink = {.expected = colon + 1, .capacity = (size_t)(end - colon - 1)};
        put_value(&sink, request, slice_make(stored.base, (size_t)(colon - stored.base)));
        if (sink.differs || sink.length != sink.capacity)
            return false;
        stored.length -= (size_t)(end + 1 - stored.base);
        stored.base = end + 1;
    }
    return true;
}
