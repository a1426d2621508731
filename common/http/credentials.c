#include "http/credentials.h"

#include "base/assert.h"

#include <stdio.h>

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
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = out;
    for (size_t i = 0; i < length; i += 3) {
        size_t count = length - i < 3 ? length - i : 3;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < count ? (unsigned char)text[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *at++ = j <= count ? digits[bits >> (18 - 6 * j) & 63] : '=';
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
