#include "http/secret_field.h"

static const char *const secret_parts[] = {
    "assertion", "auth",      "bearer",   "cookie", "credential", "csrf",       "dpop",
    "jwt",       "key",       "passcode", "passwd", "password",   "passphrase", "secret",
    "session",   "signature", "ticket",   "token",  "xsrf",
};

/* They have such a part, and are written for everybody who passes messages on. */
static const char *const open_names[] = {
    "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Sec-WebSocket-Key", "Signature-Input",
    "Surrogate-Key",
};

static bool has_part(struct slice name, const char *part) {
    size_t length = strlen(part);
    for (size_t at = 0; at + length <= name.length; at++)
        if (slice_equal_nocase(slice_make(name.base + at, length), slice_make(part, length)))
            return true;
    return false;
}

bool secret_field(struct slice name) {
    for (size_t i = 0; i < sizeof open_names / sizeof *open_names; i++)
        if (slice_equal_nocase(name, slice_from(open_names[i])))
            return false;
    for (size_t i = 0; i < sizeof secret_parts / sizeof *secret_parts; i++)
        if (has_part(name, secret_parts[i]))
            return true;
    return false;
}
