#include "identity/challenge.h"

struct slice challenge_quote(struct slice text, struct arena *arena) {
    char *quoted = arena_alloc(arena, 2 * text.length + 2), *at = quoted;
    *at++ = '"';
    for (size_t i = 0; i < text.length; i++) {
        char byte = text.base[i];
        if (byte == '"' || byte == '\\')
            *at++ = '\\';
        *at++ = (unsigned char)byte < ' ' || byte == 0x7f ? ' ' : byte;
    }
    *at++ = '"';
    return slice_make(quoted, (size_t)(at - quoted));
}

struct slice challenge_base64(struct slice bytes, struct arena *arena) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = arena_alloc(arena, (bytes.length + 2) / 3 * 4 + 1), *at = text;
    for (size_t i = 0; i < bytes.length; i += 3) {
        size_t count = bytes.length - i < 3 ? bytes.length - i : 3;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++)
            bits = bits << 8 | (j < count ? (unsigned char)bytes.base[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *at++ = j <= count ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    return slice_make(text, (size_t)(at - text));
}

struct slice challenge_basic(struct slice realm, struct arena *arena) {
    return arena_concat(arena, SLICE("Basic realm="), challenge_quote(realm, arena),
                        SLICE(", charset=\"UTF-8\""));
}

struct slice challenge_bearer(struct slice realm, bool refused, struct arena *arena) {
    return arena_concat(arena, SLICE("Bearer realm="), challenge_quote(realm, arena),
                        refused ? SLICE(", error=\"invalid_token\"") : SLICE(""));
}
