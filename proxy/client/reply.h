/*
 * A reply: what a transaction wants sent to the client. It says what is to be sent, not in which
 * form: each protocol writes status, fields and body in its own way.
 *
 *     struct reply reply = {.status = 200, .stored = object_head(object)};
 *     reply.extra = SLICE("Age: 7\r\n");
 *     reply.body = object->body;
 *     reply.length = 512;
 *     exchange_reply(exchange, &reply);
 *
 * The head is either stored or made. A stored one is text in the form of HTTP/1.1, which that
 * protocol sends as it is; another parses it (http/head_parser.h), and the extra lines likewise.
 * Neither has fields that say how the protocol frames a message or what becomes of a connection
 * (Connection, Content-Length, Transfer-Encoding); protocols add those.
 *
 * All that a reply points to lives until the exchange is finished.
 */
#ifndef RETORT_CLIENT_REPLY_H
#define RETORT_CLIENT_REPLY_H

#include "cache/body.h"
#include "http/head.h"

/* A part of a multipart body: what stands before it, and its place in the stored body. */
struct reply_part {
    struct slice head;
    uint64_t first, count;
};

struct reply {
    unsigned status;              /* 200..999 */
    const struct http_head *head; /* made for this reply; NULL: it is stored */
    struct slice stored;          /* the status line and field lines of a stored response */
    struct slice extra;           /* more field lines */
    struct arena *arena;          /* with `head`: for what the protocol makes of it */
    struct body *body;            /* NULL: none */
    int64_t length;               /* of what is sent of the body, -1: not known; of a reply to HEAD
                                     and of a 304, what the body would have */
    bool part;                    /* only `length` bytes of the body, from `first` on */
    bool close;                   /* the request may not have been read as its sender meant it: a
                                     protocol whose requests follow one another ends after this */
    uint64_t first;
    const struct reply_part *parts; /* of a multipart body, or NULL; `length` is that of all */
    unsigned part_count;
    struct slice tail;            /* behind the last of them */
    const struct slice *trailers; /* lines behind the body, there when it ends; or NULL */
};

/* Neither a body nor a length of 0 (RFC 9110 §8.6). */
static inline bool reply_has_no_content(const struct reply *reply) {
    return reply->status == 204 || reply->status == 304;
}

#endif
