/*
 * The chunks of a reply whose length is not known when it begins (RFC 9112 §7.1).
 *
 *     http1_chunks_frame(exchange);                             before each write
 *     count = http1_chunks_gather(exchange, pieces, count);     what is left of the chunk
 *     http1_chunks_consume(exchange, sent);                     so much of that is out
 */
#ifndef RETORT_CLIENT_HTTP1_CHUNKS_H
#define RETORT_CLIENT_HTTP1_CHUNKS_H

#include "client/http1/exchange.h"

/* Begins the next chunk, or the end, when the one before is out. */
void http1_chunks_frame(struct http1_exchange *exchange);
/* Adds what is left of the chunk, and the end if it follows; returns the new count. */
int http1_chunks_gather(struct http1_exchange *exchange, struct iovec *pieces, int count);
void http1_chunks_consume(struct http1_exchange *exchange, size_t sent);
/* The end of the body has been sent. */
static inline bool http1_chunks_are_out(const struct http1_exchange *exchange) {
    return exchange->end_framed && exchange->chunk_left == 0 && exchange->last_chunk.length == 0;
}

#endif
