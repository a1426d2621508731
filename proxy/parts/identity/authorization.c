#include "identity/authorization.h"

#include "base/base64.h"
#include "base/text.h"
#include "http/bytes.h"

enum authorization_found authorization_find(const struct http_head *head, enum http_name name,
                                            struct slice *value) {
    const struct http_field *field = http_head_find(head, name);
    if (field == NULL)
        return AUTHORIZATION_NONE;
    *value = field->value;
    if (value->length == 0 || value->length > AUTHORIZATION_MAX ||
        http_head_find_next(head, name, field) != NULL)
        return AUTHORIZATION_BAD;
    return AUTHORIZATION_ONE;
}

static const char *authorization_skip_blanks(const char *at, const char *end) {
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    return at;
}

/* Returns the end of a quoted string; NULL: it is malformed. */
static const char *skip_quoted(const char *at, const char *end) {
    for (at++; at < end && *at != '"'; at++) {
        if (*at == '\\' && ++at == end)
            return NULL;
        if (!bytes_is(*at, BYTES_TEXT))
            return NULL;
    }
    return at < end ? at + 1 : NULL;
}

/* One auth-param: token BWS "=" BWS ( token / quoted-string ). NULL: it is malformed. */
static const char *skip_parameter(const char *at, const char *end) {
    const char *value = bytes_skip_token(at, end);
    if (value == at)
        return NULL;
    at = authorization_skip_blanks(value, end);
    if (at == end || *at != '=')
        return NULL;
    at = authorization_skip_blanks(at + 1, end);
    if (at < end && *at == '"')
        return skip_quoted(at, end);
    value = bytes_skip_token(at, end);
    return value > at ? value : NULL;
}

/* A list, in which empty elements are allowed (RFC 9110 §5.6.1.2). */
static bool are_parameters(const char *at, const char *end) {
    bool any = false;
    while (at < end) {
        if (*at != ',') {
            at = skip_parameter(at, end);
            if (at == NULL)
                return false;
            any = true;
        }
        at = authorization_skip_blanks(at, end);
        if (at < end && *at != ',')
            return false;
        if (at < end)
            at = authorization_skip_blanks(at + 1, end);
    }
    return any;
}

static bool is_token68(struct slice text) {
    size_t length = 0;
    while (length < text.length && ((text.base[length] >= '0' && text.base[length] <= '9') ||
                                    (ascii_lower((unsigned char)text.base[length]) >= 'a' &&
                                     ascii_lower((unsigned char)text.base[length]) <= 'z') ||
                                    memchr("-._~+/", text.base[length], 6) != NULL))
        length++;
    size_t digits = length;
    while (length < text.length && text.base[length] == '=')
        length++;
    return digits > 0 && length == text.length;
}

bool authorization_parse(struct slice value, struct authorization *authorization) {
    const char *end = value.base + value.length;
    *authorization = (struct authorization){.scheme = {"", 0}};
    if (value.length == 0 || value.length > AUTHORIZATION_MAX)
        return false;
    const char *scheme_end = bytes_skip_token(value.base, end), *at = scheme_end;
    if (scheme_end == value.base || (scheme_end < end && *scheme_end != ' '))
        return false;
    authorization->scheme = slice_make(value.base, (size_t)(scheme_end - value.base));
    while (at < end && *at == ' ')
        at++;
    struct slice rest = slice_trim(slice_make(at, (size_t)(end - at)));
    if (rest.length == 0)
        return true;
    if (is_token68(rest))
        authorization->token68 = rest;
    else if (are_parameters(rest.base, rest.base + rest.length))
        authorization->parameters = rest;
    else
        return false;
    return true;
}

bool authorization_is(const struct authorization *authorization, const char *scheme) {
    return slice_equal_nocase(authorization->scheme, slice_from(scheme));
}

/* UTF-8 without the controls C0, C1 and DEL (RFC 7617 §2, RFC 8265 §3 and §4). */
static bool authorization_is_clean(struct slice text) {
    while (text.length > 0) {
        uint32_t character;
        size_t length = text_decode(text, &character);
        if (length == 0 || character < ' ' || (character >= 0x7f && character < 0xa0))
            return false;
        text = slice_make(text.base + length, text.length - length);
    }
    return true;
}

bool authorization_basic(struct slice token68, char text[AUTHORIZATION_BASIC], struct slice *user,
                         struct slice *password) {
    size_t length = base64_decode(token68, text, AUTHORIZATION_BASIC);
    const char *colon = length != SIZE_MAX ? memchr(text, ':', length) : NULL;
    if (colon == NULL || !authorization_is_clean(slice_make(text, length)))
        return false;
    *user = slice_make(text, (size_t)(colon - text));
    *password = slice_make(colon + 1, length - user->length - 1);
    return true;
}

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
