/*
 * A reply: what a transaction wants sent to the client, in the order head, extra, body.
 *
 *     struct reply reply = {.head = object_head(object), .body = object->body, .length = 512};
 *     reply.extra = SLICE("Age: 7\r\n");
 *     exchange_reply(exchange, &reply);
 *
 * All that it points to must live until the exchange is finished.
 */
#ifndef RETORT_CLIENT_REPLY_H
#define RETORT_CLIENT_REPLY_H

#include "base/slice.h"
#include "cache/body.h"

/* A part of a multipart body: what stands before it, and its place in the stored body. */
struct reply_part {
    struct slice head;
    uint64_t first, count;
};

struct reply {
    struct slice head;  /* "HTTP/1.1 200 OK\r\n" and field lines, without those of framing */
    struct slice extra; /* more field lines */
    struct body *body;  /* NULL: none */
    int64_t length;     /* for Content-Length; -1: not known */
    bool part;          /* only `length` bytes of the body, from `first` on */
    uint64_t first;
    const struct reply_part *parts; /* of a multipart body, or NULL; `length` is that of all */
    unsigned part_count;
    struct slice tail;            /* behind the last of them */
    const struct slice *trailers; /* lines behind the body, there when it ends; or NULL */
    bool no_content;              /* 1xx, 204, 304: not even a Content-Length of 0 */
    bool close;                   /* do not keep the connection */
};

#endif
