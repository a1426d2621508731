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

struct slice challenge_basic(struct slice realm, struct arena *arena) {
    return arena_concat(arena, SLICE("Basic realm="), challenge_quote(realm, arena),
                        SLICE(", charset=\"UTF-8\""));
}

struct slice challenge_bearer(struct slice realm, bool refused, struct arena *arena) {
    return arena_concat(arena, SLICE("Bearer realm="), challenge_quote(realm, arena),
                        refused ? SLICE(", error=\"invalid_token\"") : SLICE(""));
}
