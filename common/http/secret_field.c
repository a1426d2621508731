#include "http/secret_field.h"

#include <ctype.h>

static const char *const secret_parts[] = {
    "assertion", "bearer",    "cookie", "credential", "csrf",       "dpop",   "jwt",
    "key",       "passcode",  "passwd", "password",   "passphrase", "secret", "session",
    "sessid",    "signature", "ticket", "token",      "xsrf",
};

static const char *const user_parts[] = {"username", "user-name", "remote-user", "forwarded-user"};

/* Too short for a part: "Pin" is a word of X-Pin, and no word of X-Spinning. */
static const char *const secret_words[] = {"otp", "pin", "pwd", "sid", "totp"};

/* They have such a part, and are written for everybody who passes messages on. */
static const char *const open_names[] = {
    "Accept-Signature",  "Access-Control-Allow-Credentials",
    "Cache-Key",         "Idempotency-Key",
    "Public-Key-Pins",   "Public-Key-Pins-Report-Only",
    "Sec-WebSocket-Key", "Signature-Input",
    "Surrogate-Key",     "X-Cache-Key",
    "X-Idempotency-Key", "Xkey",
};

static bool part_is_at(struct slice name, size_t at, const char *part) {
    size_t length = strlen(part);
    return at + length <= name.length &&
           slice_equal_nocase(slice_make(name.base + at, length), slice_make(part, length));
}

static bool has_part(struct slice name, const char *part) {
    for (size_t at = 0; at < name.length; at++)
        if (part_is_at(name, at, part))
            return true;
    return false;
}

static bool word_ends_at(struct slice name, size_t at) {
    return at == name.length || !isalnum((unsigned char)name.base[at]);
}

static bool secret_field_has_word(struct slice name, const char *word) {
    for (size_t at = 0; at < name.length; at++)
        if (part_is_at(name, at, word) && (at == 0 || word_ends_at(name, at - 1)) &&
            word_ends_at(name, at + strlen(word)))
            return true;
    return false;
}

/* X-Auth-User, Authorization and Authenticated are about credentials; authors and authorities are
 * not. */
static bool has_auth(struct slice name) {
    for (size_t at = 0; at < name.length; at++)
        if (part_is_at(name, at, "auth") &&
            (!part_is_at(name, at, "author") || part_is_at(name, at, "authoriz") ||
             part_is_at(name, at, "authoris")))
            return true;
    return false;
}

static bool secret_field_is_open(struct slice name) {
    for (size_t i = 0; i < sizeof open_names / sizeof *open_names; i++)
        if (slice_equal_nocase(name, slice_from(open_names[i])))
            return true;
    /* They count tokens. */
    return has_part(name, "tokens") &&
           (has_part(name, "ratelimit") || has_part(name, "rate-limit"));
}

static bool has_part_of(struct slice name, const char *const *parts, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (has_part(name, parts[i]))
            return true;
    return false;
}

bool credential_field(struct slice name) {
    if (secret_field_is_open(name))
        return false;
    for (size_t i = 0; i < sizeof secret_words / sizeof *secret_words; i++)
        if (secret_field_has_word(name, secret_words[i]))
            return true;
    return has_part_of(name, secret_parts, sizeof secret_parts / sizeof *secret_parts) ||
           has_auth(name);
}

bool secret_field(struct slice name) {
    return credential_field(name) ||
           has_part_of(name, user_parts, sizeof user_parts / sizeof *user_parts);
}
