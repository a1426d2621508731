#include "base/base64.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_write(char *out, struct slice bytes) {
    char *at = out;
    for (size_t i = 0; i < bytes.length; i += 3) {
        size_t count = bytes.length - i < 3 ? bytes.length - i : 3;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < count ? (unsigned char)bytes.base[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *at++ = j <= count ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return (size_t)(at - out);
}

/* No table is read at a place that the digit says: it may be of a password. */
static int digit_value(char digit, char last_but_one, char last) {
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    return digit == last_but_one ? 62 : digit == last ? 63 : -1;
}

int base64_digit(char digit) {
    return digit_value(digit, '+', '/');
}

/* Decodes digits without padding. */
static size_t decode(struct slice text, char last_but_one, char last, char *out, size_t capacity) {
    size_t written = 0;
    uint32_t bits = 0;
    if (text.length % 4 == 1)
        return SIZE_MAX;
    for (size_t i = 0; i < text.length; i++) {
        int value = digit_value(text.base[i], last_but_one, last);
        if (value < 0 || (i % 4 > 0 && written == capacity))
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)value;
        if (i % 4 > 0)
            out[written++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    /* Bits behind the last byte would be a second spelling of the same. */
    unsigned spare = text.length % 4 == 2 ? 4 : text.length % 4 == 3 ? 2 : 0;
    return (bits & ((1u << spare) - 1)) == 0 ? written : SIZE_MAX;
}

size_t base64_decode(struct slice text, void *out, size_t capacity) {
    size_t length = text.length;
    if (length == 0 || length % 4 != 0)
        return SIZE_MAX;
    for (unsigned i = 0; i < 2 && text.base[length - 1] == '='; i++)
        length--;
    return decode(slice_make(text.base, length), '+', '/', out, capacity);
}

size_t base64url_decode(struct slice text, void *out, size_t capacity) {
    return decode(text, '-', '_', out, capacity);
}
