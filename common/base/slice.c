#include "base/slice.h"

#include "base/assert.h"

static bool bytes_equal_nocase(const char *a, const char *b, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (ascii_lower((unsigned char)a[i]) != ascii_lower((unsigned char)b[i]))
            return false;
    return true;
}

bool slice_equal_nocase(struct slice a, struct slice b) {
    return a.length == b.length && bytes_equal_nocase(a.base, b.base, a.length);
}

bool slice_starts_with(struct slice text, struct slice prefix) {
    return prefix.length == 0 ||
           (text.length >= prefix.length && memcmp(text.base, prefix.base, prefix.length) == 0);
}

bool slice_starts_with_nocase(struct slice text, struct slice prefix) {
    return text.length >= prefix.length &&
           bytes_equal_nocase(text.base, prefix.base, prefix.length);
}

bool slice_ends_with_nocase(struct slice text, struct slice suffix) {
    return text.length >= suffix.length &&
           bytes_equal_nocase(text.base + text.length - suffix.length, suffix.base, suffix.length);
}

static bool is_ows(char c) {
    return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice text) {
    while (text.length > 0 && is_ows(text.base[0])) {
        text.base++;
        text.length--;
    }
    while (text.length > 0 && is_ows(text.base[text.length - 1]))
        text.length--;
    return text;
}

bool slice_to_uint64(struct slice text, uint64_t *value) {
    uint64_t sum = 0;
    if (text.length == 0)
        return false;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned)(unsigned char)text.base[i] - '0';
        if (digit > 9 || sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

/* The length of the element at the front: up to a comma that stands outside a quoted string. */
static size_t element_length(struct slice text) {
    bool quoted = false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.base[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            return i;
    }
    return text.length;
}

bool slice_next_element(struct slice *rest, struct slice *element) {
    while (rest->length > 0) {
        size_t length = element_length(*rest);
        *element = slice_trim(slice_make(rest->base, length));
        size_t taken = length < rest->length ? length + 1 : length;
        rest->base += taken;
        rest->length -= taken;
        if (element->length > 0)
            return true;
    }
    return false;
}

char *slice_dup(struct slice text) {
    char *copy = xmalloc(text.length + 1);
    if (text.length > 0)
        memcpy(copy, text.base, text.length);
    copy[text.length] = '\0';
    return copy;
}

struct slice slice_of_number(char digits[SLICE_DIGITS], int64_t number) {
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    size_t at = SLICE_DIGITS;
    do
        digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    if (number < 0)
        digits[--at] = '-';
    return slice_make(digits + at, SLICE_DIGITS - at);
}
