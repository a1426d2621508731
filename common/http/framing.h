/*
 * Framing: finds out how long the body of a request or a response is (RFC 9112 §6.3). It is strict:
 * a head that two programs could read in two ways is refused.
 *
 *     struct framing framing;
 *     if (!framing_of_request(&framing, &head))
 *         refuse(framing.status, framing.error);        400 or 501
 *
 * Refused: Content-Length together with Transfer-Encoding; several Content-Length values that are
 * not the same digits; a value that is not digits only; Transfer-Encoding in HTTP/1.0; a final
 * coding other than chunked (400), any other coding before it (501); chunked twice; empty codings
 * and lengths; a length above INT64_MAX; a CONNECT request with a body. Several Content-Length
 * values of the same digits are accepted; code that forwards the head must write only one of them.
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
/* `method` is the method of the request. A response to HEAD and a 2xx response to CONNECT have no
 * body, whatever the head says. */
bool framing_of_response(struct framing *framing, const struct http_head *head,
                         enum http_method method);
/* Does the sender of this head keep the connection open after the message (RFC 9112 §9.3)? Do not
 * use it for ICAP: ICAP/1.0 keeps connections open as HTTP/1.1 does. */
bool framing_keeps_alive(const struct http_head *head);

#endif
