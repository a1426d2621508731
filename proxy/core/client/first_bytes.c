#include "client/first_bytes.h"

enum { TLS_HANDSHAKE = 0x16, TLS_MAJOR = 3, OLD_FORM = 0x80, LONGEST_METHOD = 32 };

static bool is_method_byte(char byte) {
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || byte == '-' ||
           byte == '_' || (byte >= '0' && byte <= '9');
}

/* The first byte of a target: of a path, of the URL of http, or "*". A CONNECT has a host there. */
static bool begins_target(char byte, struct slice method) {
    return byte == '/' || byte == '*' || byte == 'h' || byte == 'H' ||
           slice_equal(method, SLICE("CONNECT"));
}

/* A ClientHello in the form of SSLv2: two bytes of length with the highest bit set, the type 1, and
 * the version that the client really speaks (RFC 5246 §E.2). Some servers still accept it. */
static enum first_bytes judge_old_form(struct slice bytes) {
    enum { CLIENT_HELLO = 1, HEAD = 4 };
    if (bytes.length < HEAD)
        return FIRST_BYTES_MORE;
    return bytes.base[2] == CLIENT_HELLO && bytes.base[3] == TLS_MAJOR ? FIRST_BYTES_TLS
                                                                       : FIRST_BYTES_OTHER;
}

enum first_bytes first_bytes_judge(struct slice bytes) {
    const char *at = bytes.base, *end = at + bytes.length;
    if (at < end && (*at & OLD_FORM) != 0)
        return judge_old_form(bytes);
    if (at < end && *at == TLS_HANDSHAKE)
        return end - at < 2         ? FIRST_BYTES_MORE
               : at[1] == TLS_MAJOR ? FIRST_BYTES_TLS
                                    : FIRST_BYTES_OTHER;
    while (at < end && (*at == '\r' || *at == '\n'))
        at++;
    const char *method = at;
    while (at < end && is_method_byte(*at))
        at++;
    size_t length = (size_t)(at - method);
    if (length > LONGEST_METHOD || (at < end && (length == 0 || *at != ' ')))
        return FIRST_BYTES_OTHER;
    if (end - at < 2)
        return FIRST_BYTES_MORE;
    return begins_target(at[1], slice_make(method, length)) ? FIRST_BYTES_HTTP : FIRST_BYTES_OTHER;
}
