#include "http/credentials.h"

#include "base/assert.h"
#include "base/base64.h"

#include <stdio.h>

bool http_credentials_check(const char *credentials, char *error, size_t error_size) {
    const char *colon = strchr(credentials, ':');
    if (colon == NULL)
        snprintf(error, error_size, "is not \"USER:PASSWORD\"");
    else if (strlen(credentials) > HTTP_CREDENTIALS_MAX)
        snprintf(error, error_size, "is longer than %d characters", HTTP_CREDENTIALS_MAX);
    return colon != NULL && strlen(credentials) <= HTTP_CREDENTIALS_MAX;
}

struct slice http_credentials_write(const char *credentials, char value[HTTP_CREDENTIALS_VALUE]) {
    static const char scheme[] = "Basic ";
    size_t length = strlen(credentials), before = sizeof scheme - 1;
    ASSERT(length <= HTTP_CREDENTIALS_MAX);
    memcpy(value, scheme, before);
    return slice_make(value,
                      before + base64_write(value + before, slice_make(credentials, length)));
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
