/*
 * How long is the body? RFC 9112 §6.3 for requests and responses, strictly: what two parties could
 * read in two ways is refused.
 *
 *     struct framing framing;
 *     if (!framing_of_request(&framing, &head))
 *         refuse(framing.status, framing.error);        400 or 501
 *
 * Refused: Content-Length together with Transfer-Encoding; several Content-Length values that are
 * not the same digits; a value that is not digits only; Transfer-Encoding in HTTP/1.0; a final
 * coding other than chunked (400), any other coding before it (501); chunked twice; empty codings
 * and lengths; a length above INT64_MAX; a CONNECT request with a body. Several Content-Length
 * values of the same digits are accepted: who forwards the head writes one of them.
 *
 * Threads: values.
 */
#ifndef RETORT_HTTP_FRAMING_H
#define RETORT_HTTP_FRAMING_H

#include "http/head.h"

enum framing_kind {
    FRAMING_NONE,   /* no body */
    FRAMING_LENGTH, /* `length` bytes, maybe 0 */
    FRAMING_CHUNKED,
    FRAMING_CLOSE, /* responses: until the connection closes */
};

struct framing {
    enum framing_kind kind;
    uint64_t length;
    unsigned status;   /* on false: the status to answer a client with (400 or 501) */
    const char *error; /* on false: a sentence that says what is wrong */
};

bool framing_of_request(struct framing *framing, const struct http_head *head);
/* `method` is that of the request: HEAD has no body whatever the head says, CONNECT 2xx neither. */
bool framing_of_response(struct framing *framing, const struct http_head *head,
                         enum http_method method);
/* Does the sender of this head keep the connection open after it (RFC 9112 §9.3)? Not for ICAP,
 * whose version 1.0 keeps connections open as HTTP/1.1 does. */
bool framing_keeps_alive(const struct http_head *head);

#endif
