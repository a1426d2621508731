/*
 * What HTTP/1.1 keeps of a call, in the call's room; shared by the files of this folder.
 *
 *     struct origin_http1 *http1 = origin_http1_of(call);
 *     origin_http1_send(call);         request head and body, as far as the socket takes them
 *     origin_http1_receive(call);      response head
 *     origin_http1_body_init(call);    the body is read by its reader
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_HTTP1_CALL_H
#define RETORT_ORIGIN_HTTP1_CALL_H

#include "http/chunked.h"
#include "http/framing.h"
#include "net/sender.h"
#include "origin/call.h"

struct origin_http1 {
    unsigned magic;
#define ORIGIN_HTTP1_MAGIC 0x04191001u
    bool kept_alive;  /* connection_keep_alive */
    bool deaf;        /* a write failed: the connection may still be read, not used again */
    bool keeps_alive; /* the origin does, by its head as it came */
    struct connection *connection;
    struct sender sender;
    struct net_buffer *in;
    size_t head_checked;
    struct framing framing;
    uint64_t body_left;
    size_t body_at; /* where in `in` it began */
    struct chunked_decoder chunked;
};

_Static_assert(sizeof(struct origin_http1) <= ORIGIN_CALL_ROOM, "a call has room for it");

static inline struct origin_http1 *origin_http1_of(struct origin_call *call) {
    struct origin_http1 *http1 = (struct origin_http1 *)(void *)call->room;
    CHECK_OBJ(http1, ORIGIN_HTTP1_MAGIC);
    return http1;
}

/* Bytes that have come and are not read yet. */
static inline size_t origin_http1_waiting(const struct origin_http1 *http1) {
    return http1->in == NULL ? 0 : net_buffer_bytes(http1->in).length;
}

/* Why the last read or write failed. */
const char *origin_http1_error(struct origin_call *call);
void origin_http1_send(struct origin_call *call);
void origin_http1_receive(struct origin_call *call);
/* The response is complete: the connection goes to the pool, or is closed. */
void origin_http1_leave(struct origin_call *call);
void origin_http1_body_init(struct origin_call *call);
struct net_buffer *origin_http1_take_waiting(struct origin_call *call);

#endif
