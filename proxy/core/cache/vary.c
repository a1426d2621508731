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

enum verdict { UNSAID, REFUSED, TAKEN };

/* "q=0", with up to three decimals that are 0 (RFC 9110 §12.4.2). */
static bool accept_encoding_is_zero(struct slice weight) {
    if (weight.length == 0 || weight.base[0] != '0')
        return false;
    for (size_t i = 1; i < weight.length; i++)
        if (weight.base[i] != (i == 1 ? '.' : '0'))
            return false;
    return true;
}

/* Splits an element such as "gzip;q=0.5" into the coding and the verdict on it. */
static enum verdict accept_encoding_split(struct slice element, struct slice *coding) {
    const char *semicolon = memchr(element.base, ';', element.length);
    *coding = element;
    if (semicolon == NULL)
        return TAKEN;
    coding->length = (size_t)(semicolon - element.base);
    *coding = slice_trim(*coding);
    struct slice weight = slice_trim(
        slice_make(semicolon + 1, element.length - (size_t)(semicolon + 1 - element.base)));
    if (!slice_starts_with_nocase(weight, SLICE("q=")))
        return TAKEN;
    return accept_encoding_is_zero(slice_make(weight.base + 2, weight.length - 2)) ? REFUSED
                                                                                   : TAKEN;
}

/* What the request says about a coding: by its name if it is there, else by "*". */
static enum verdict accept_encoding_judge(const struct http_head *request, struct slice name) {
    enum verdict by_star = UNSAID;
    for (const struct http_field *field = http_head_find(request, HTTP_ACCEPT_ENCODING);
         field != NULL; field = http_head_find_next(request, HTTP_ACCEPT_ENCODING, field)) {
        struct slice rest = field->value, element, coding;
        while (slice_next_element(&rest, &element)) {
            enum verdict verdict = accept_encoding_split(element, &coding);
            if (slice_equal_nocase(coding, name))
                return verdict;
            if (slice_equal(coding, SLICE("*")))
                by_star = verdict;
        }
    }
    return by_star;
}

static size_t accept_encoding_put(char *text, size_t length, struct slice word) {
    if (length + word.length > ACCEPT_ENCODING_MAX)
        return length;
    memcpy(text + length, word.base, word.length);
    return length + word.length;
}

struct slice accept_encoding_reduce(const struct http_head *request, char *const *codings,
                                    char text[ACCEPT_ENCODING_MAX]) {
    size_t length = 0;
    if (accept_encoding_judge(request, SLICE("identity")) == REFUSED)
        return slice_make(NULL, 0);
    for (; *codings != NULL; codings++) {
        struct slice coding = slice_from(*codings);
        if (accept_encoding_judge(request, coding) != TAKEN)
            continue;
        if (length > 0)
            length = accept_encoding_put(text, length, SLICE(", "));
        length = accept_encoding_put(text, length, coding);
    }
    if (length == 0)
        length = accept_encoding_put(text, 0, SLICE("identity"));
    return slice_make(text, length);
}
