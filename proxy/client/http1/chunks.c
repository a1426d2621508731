#include "client/http1/chunks.h"

#include "base/assert.h"
#include "client/http1/reply_sender.h"

static void chunks_append(struct http1_exchange *exchange, struct slice text) {
    ASSERT(exchange->frame_end + text.length <= sizeof exchange->frame);
    memcpy(exchange->frame + exchange->frame_end, text.base, text.length);
    exchange->frame_end += (unsigned)text.length;
}

static bool has_trailers(const struct http1_exchange *exchange) {
    return exchange->trailers != NULL && exchange->trailers->length > 0;
}

/* True: the end of the body is ready to be sent. If trailers go with it, what stands before it must
 * be sent first. */
static bool frame_end(struct http1_exchange *exchange) {
    struct slice last = exchange->first_chunk ? SLICE("0\r\n") : SLICE("\r\n0\r\n");
    if (!has_trailers(exchange)) {
        chunks_append(exchange, last);
    } else if (exchange->frame_end > 0 || exchange->parts[0].length > 0 ||
               exchange->parts[1].length > 0) {
        return false;
    } else {
        exchange->parts[0] = last;
        exchange->parts[1] = *exchange->trailers;
    }
    chunks_append(exchange, SLICE("\r\n"));
    return true;
}

/* If the body ends with these bytes, its end leaves with them. */
static void join_end(struct http1_exchange *exchange, size_t bytes) {
    const struct body_reader *reader = &exchange->reader;
    if (has_trailers(exchange) || body_length(reader->body) - reader->position > bytes)
        return;
    exchange->last_chunk = SLICE("\r\n0\r\n\r\n");
    exchange->end_framed = true;
}

/* Frames one chunk. It holds all bytes that wait to be read when it begins. */
void http1_chunks_frame(struct http1_exchange *exchange) {
    char head[CHUNKED_HEAD_MAX];
    struct iovec pieces[HTTP1_PIECES];
    size_t bytes;
    if (exchange->chunk_left > 0 || exchange->end_framed)
        return;
    /* The state is read before the bytes. If the body ends in between, the next round sees it. */
    enum body_state state = body_state(exchange->reader.body);
    if (exchange->frame_begin == exchange->frame_end)
        exchange->frame_begin = exchange->frame_end = 0;
    if (sizeof exchange->frame - exchange->frame_end < CHUNKED_HEAD_MAX + 8)
        return;
    body_reader_pieces(&exchange->reader, pieces, HTTP1_PIECES - 3, &bytes);
    if (bytes > 0) {
        if (!exchange->first_chunk)
            chunks_append(exchange, SLICE("\r\n"));
        chunks_append(exchange, slice_make(head, chunked_write_head(head, bytes)));
        exchange->first_chunk = false;
        exchange->chunk_left = bytes;
        if (state == BODY_COMPLETE)
            join_end(exchange, bytes);
    } else if (state == BODY_COMPLETE && body_reader_at_end(&exchange->reader)) {
        exchange->end_framed = frame_end(exchange);
    }
}

int http1_chunks_gather(struct http1_exchange *exchange, struct iovec *pieces, int count) {
    size_t bytes;
    uint64_t left = exchange->chunk_left;
    int body = count;
    if (left > 0)
        body += body_reader_pieces(&exchange->reader, pieces + count, HTTP1_PIECES - count, &bytes);
    for (; count < body && left > 0; count++) {
        if (pieces[count].iov_len > left)
            pieces[count].iov_len = (size_t)left;
        left -= pieces[count].iov_len;
    }
    if (left == 0 && exchange->last_chunk.length > 0)
        pieces[count++] =
            (struct iovec){(void *)exchange->last_chunk.base, exchange->last_chunk.length};
    return count;
}

void http1_chunks_consume(struct http1_exchange *exchange, size_t sent) {
    size_t piece = sent > exchange->chunk_left ? (size_t)exchange->chunk_left : sent;
    if (piece > 0)
        body_reader_advance(&exchange->reader, piece);
    exchange->chunk_left -= piece;
    exchange->last_chunk.base += sent - piece;
    exchange->last_chunk.length -= sent - piece;
}
