#include "identity/base64url.h"

static int base64url_digit(char digit) {
    if (digit >= 'A' && digit <= 'Z')
        return digit - 'A';
    if (digit >= 'a' && digit <= 'z')
        return digit - 'a' + 26;
    if (digit >= '0' && digit <= '9')
        return digit - '0' + 52;
    return digit == '-' ? 62 : digit == '_' ? 63 : -1;
}

size_t base64url_decode(struct slice text, unsigned char *out, size_t capacity) {
    size_t written = 0;
    uint32_t bits = 0;
    if (text.length % 4 == 1 || text.length / 4 * 3 + text.length % 4 > capacity + 1)
        return SIZE_MAX;
    for (size_t i = 0; i < text.length; i++) {
        int digit = base64url_digit(text.base[i]);
        if (digit < 0 || (i % 4 > 0 && written == capacity))
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 > 0)
            out[written++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    unsigned spare = text.length % 4 == 2 ? 4 : text.length % 4 == 3 ? 2 : 0;
    return (bits & ((1u << spare) - 1)) == 0 ? written : SIZE_MAX;
}
