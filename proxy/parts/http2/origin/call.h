/*
 * What HTTP/2 keeps of a call, in the call's room; shared by the files of this folder.
 *
 *     struct origin_http2 *http2 = origin_http2_of(call);
 *     struct origin_call *call = origin_http2_call(stream);
 *     origin_http2_on_turn(stream);          sends head and body
 *     origin_http2_on_head(stream, list, ended);
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_ORIGIN_CALL_H
#define RETORT_HTTP2_ORIGIN_CALL_H

#include "http2/origin/carrier.h"
#include "http2/stream.h"

struct origin_http2 {
    unsigned magic;
#define ORIGIN_HTTP2_MAGIC 0x04192002u
    bool head_sent;
    bool body_sent; /* or there is none */
    bool deaf;      /* the body will not be sent to its end */
    struct origin_call *call;
    struct origin_carrier *carrier; /* only while the stream is open: see origin_http2_carrier */
    uint64_t taken;                 /* bytes of the request's body */
    struct http2_stream stream;
};

_Static_assert(sizeof(struct origin_http2) <= ORIGIN_CALL_ROOM, "a call has room for it");

static inline struct origin_http2 *origin_http2_of(struct origin_call *call) {
    struct origin_http2 *http2 = (struct origin_http2 *)(void *)call->room;
    CHECK_OBJ(http2, ORIGIN_HTTP2_MAGIC);
    return http2;
}

/* NULL: the stream is over, and the connection may be. Bytes of the body may still wait. */
static inline struct origin_carrier *origin_http2_carrier(struct origin_call *call) {
    struct origin_http2 *http2 = origin_http2_of(call);
    return http2_stream_is_over(&http2->stream) ? NULL : http2->carrier;
}

static inline struct origin_call *origin_http2_call(struct http2_stream *stream) {
    struct origin_http2 *http2 = CONTAINER_OF(stream, struct origin_http2, stream);
    CHECK_OBJ(http2, ORIGIN_HTTP2_MAGIC);
    return http2->call;
}

/* For the session's class (origin/http2/carrier.c). */
bool origin_http2_on_turn(struct http2_stream *stream);
bool origin_http2_on_head(struct http2_stream *stream, struct hpack_list *list, bool ended);
bool origin_http2_on_trailers(struct http2_stream *stream, const struct hpack_list *list);
void origin_http2_on_body(struct http2_stream *stream);
void origin_http2_on_over(struct http2_stream *stream, enum http2_error error, bool processed);

#endif
