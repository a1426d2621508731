#include "tls/server_name.h"

enum { LABEL_MAX = 63 };

static bool is_name_byte(unsigned char c) {
    c = ascii_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool is_hex_digit(unsigned char c) {
    c = ascii_lower(c);
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* Decimal digits, or hexadecimal ones behind "0x": the last label of the spellings of IPv4. */
static bool is_number(struct slice label) {
    bool hex = slice_starts_with_nocase(label, SLICE("0x"));
    for (size_t i = hex ? 2 : 0; i < label.length; i++) {
        unsigned char c = (unsigned char)label.base[i];
        if (hex ? !is_hex_digit(c) : c < '0' || c > '9')
            return false;
    }
    return true;
}

static struct slice without_last_dot(struct slice name) {
    name.length -= name.length > 0 && name.base[name.length - 1] == '.';
    return name;
}

bool server_name_is_valid(struct slice name) {
    size_t label = 0;
    name = without_last_dot(name);
    if (name.length == 0 || name.length > SERVER_NAME_MAX)
        return false;
    for (size_t i = 0; i <= name.length; i++) {
        if (i < name.length && name.base[i] != '.') {
            if (!is_name_byte((unsigned char)name.base[i]))
                return false;
            continue;
        }
        if (i == label || i - label > LABEL_MAX)
            return false;
        if (i < name.length)
            label = i + 1;
    }
    return !is_number(slice_make(name.base + label, name.length - label));
}

size_t server_name_put(char out[SERVER_NAME_MAX], struct slice name) {
    if (!server_name_is_valid(name))
        return 0;
    return (size_t)(slice_put_lower(out, without_last_dot(name)) - out);
}
