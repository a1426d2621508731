#include "http/credentials.h"

#include "base/assert.h"

#include <stdio.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool http_credentials_check(const char *credentials, char *error, size_t error_size) {
    const char *colon = strchr(credentials, ':');
    if (colon == NULL)
        snprintf(error, error_size, "is not \"USER:PASSWORD\"");
    else if (strlen(credentials) > HTTP_CREDENTIALS_MAX)
        snprintf(error, error_size, "is longer than %d characters", HTTP_CREDENTIALS_MAX);
    return colon != NULL && strlen(credentials) <= HTTP_CREDENTIALS_MAX;
}

/* Writes base64 (RFC 4648 §4); returns the length. */
static size_t write_base64(char *out, const char *text, size_t length) {
    char *at = out;
    for (size_t i = 0; i < length; i += 3) {
        size_t count = length - i < 3 ? length - i : 3;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < count ? (unsigned char)text[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *at++ = j <= count ? base64_digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return (size_t)(at - out);
}

struct slice http_credentials_write(const char *credentials, char value[HTTP_CREDENTIALS_VALUE]) {
    static const char scheme[] = "Basic ";
    size_t length = strlen(credentials), before = sizeof scheme - 1;
    ASSERT(length <= HTTP_CREDENTIALS_MAX);
    memcpy(value, scheme, before);
    return slice_make(value, before + write_base64(value + before, credentials, length));
}

/* The value of a base64 digit; -1: it is none. */
static int base64_digit(char digit) {
    const char *at = digit != '\0' ? strchr(base64_digits, digit) : NULL;
    return at != NULL ? (int)(at - base64_digits) : -1;
}

/* Decodes until a colon has come, so that the password is not touched. */
struct slice http_credentials_user(struct slice value, char user[HTTP_CREDENTIALS_USER]) {
    static const struct slice scheme = {"Basic ", 6}, nobody = {"", 0};
    uint32_t bits = 0;
    unsigned bit_count = 0;
    size_t length = 0;
    if (!slice_starts_with_nocase(value, scheme))
        return nobody;
    value = slice_trim(slice_make(value.base + scheme.length, value.length - scheme.length));
    for (size_t i = 0; i < value.length; i++) {
        int digit = base64_digit(value.base[i]);
        if (digit < 0)
            return nobody;
        bits = bits << 6 | (uint32_t)digit;
        bit_count += 6;
        if (bit_count < 8)
            continue;
        bit_count -= 8;
        unsigned char byte = (unsigned char)(bits >> bit_count);
        if (byte == ':')
            return slice_make(user, length);
        if (byte < ' ' || byte == 127 || length == HTTP_CREDENTIALS_USER)
            return nobody;
        user[length++] = (char)byte;
    }
    return nobody;
}
