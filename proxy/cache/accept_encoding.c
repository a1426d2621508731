#include "cache/accept_encoding.h"

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
