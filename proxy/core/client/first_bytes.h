/*
 * The first bytes of a client, which tell TLS from HTTP and both from anything else.
 *
 *     switch (first_bytes_judge(bytes)) {
 *     case FIRST_BYTES_TLS: ...
 *     case FIRST_BYTES_MORE: ...                 read more and judge again, all bytes together
 *
 * TLS begins with the type of a handshake record and the major version 3 (RFC 8446 §5.1), or,
 * with old clients, with a ClientHello in the form of SSLv2 (RFC 5246 §E.2). HTTP/1 begins with a
 * method, a blank, and a target (RFC 9112 §3); empty lines may stand before (§2.2). The preface of
 * HTTP/2 looks like a request of HTTP/1 (RFC 9113 §3.4).
 *
 * Threads: any.
 */
#ifndef RETORT_CLIENT_FIRST_BYTES_H
#define RETORT_CLIENT_FIRST_BYTES_H

#include "base/slice.h"

enum first_bytes { FIRST_BYTES_MORE, FIRST_BYTES_TLS, FIRST_BYTES_HTTP, FIRST_BYTES_OTHER };

enum first_bytes first_bytes_judge(struct slice bytes);

enum http2_preface { HTTP2_PREFACE_NONE, HTTP2_PREFACE_PART, HTTP2_PREFACE_WHOLE };

/* Do the bytes begin with the preface, or are they a part of it so far? */
static inline enum http2_preface first_bytes_preface(struct slice bytes) {
    static const char text[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct slice preface = slice_make(text, sizeof text - 1);
    if (slice_starts_with(bytes, preface))
        return HTTP2_PREFACE_WHOLE;
    return slice_starts_with(preface, bytes) ? HTTP2_PREFACE_PART : HTTP2_PREFACE_NONE;
}

#endif
