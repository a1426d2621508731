#include "http2/client/tunnel.h"

#include "http2/hpack_encode.h"

static struct http2_exchange *exchange_of_duplex(struct duplex *duplex) {
    return CONTAINER_OF(duplex, struct http2_exchange, tunnel);
}

void http2_tunnel_wake(struct http2_exchange *exchange) {
    if (exchange->tunnel.waker != NULL)
        loop_defer(exchange->connection->net->loop, exchange->tunnel.waker);
}

static enum io_status tunnel_read(struct duplex *duplex, char *buffer, size_t capacity,
                                  size_t *got) {
    struct http2_stream *stream = &exchange_of_duplex(duplex)->stream;
    switch (http2_stream_read(stream, buffer, capacity, got)) {
    case SOURCE_DATA: return IO_DONE;
    case SOURCE_WAIT: return http2_stream_is_over(stream) ? IO_FAILED : IO_WAIT;
    case SOURCE_END: return IO_END;
    default: return IO_FAILED;
    }
}

/* TUNNEL_TURN: bytes that may be put in a turn, which comes when the writer runs, so that the socket
 * may take nothing by then. */
enum { TUNNEL_TURN = HTTP2_FRAME_SIZE_DEFAULT };

/* How much may be written now. 0: the stream has its turn later, or its window is shut. While the
 * socket does not take what was put before, or others wait for their turn, the stream waits for its
 * own. */
static size_t tunnel_room(struct http2_exchange *exchange) {
    struct http2_stream *stream = &exchange->stream;
    bool in_turn = exchange->tunnel_turn;
    if (http2_stream_may_put(stream, 1))
        return http2_stream_room(stream);
    if (!in_turn) {
        http2_stream_want(stream);
        return 0;
    }
    size_t room = http2_stream_room(stream);
    return room < TUNNEL_TURN ? room : TUNNEL_TURN;
}

static enum io_status tunnel_write(struct duplex *duplex, struct slice bytes, size_t *put) {
    struct http2_exchange *exchange = exchange_of_duplex(duplex);
    struct http2_stream *stream = &exchange->stream;
    *put = 0;
    if (http2_stream_is_over(stream))
        return IO_FAILED;
    size_t room = tunnel_room(exchange);
    exchange->tunnel_turn = false;
    if (room == 0)
        return IO_WAIT;
    struct iovec piece = {(void *)(uintptr_t)bytes.base, bytes.length < room ? bytes.length : room};
    http2_stream_put_data(stream, &piece, 1, piece.iov_len, false);
    *put = piece.iov_len;
    return IO_DONE;
}

static void tunnel_finish(struct duplex *duplex) {
    struct http2_stream *stream = &exchange_of_duplex(duplex)->stream;
    if (!http2_stream_is_over(stream) && !stream->we_ended)
        http2_stream_put_data(stream, NULL, 0, 0, true);
}

/* "A proxy that receives a TCP segment with the RST bit set treats this as a stream error of type
 * CONNECT_ERROR" (RFC 9113 §8.5, in other words). */
static void tunnel_abort(struct duplex *duplex) {
    http2_stream_reset(&exchange_of_duplex(duplex)->stream, HTTP2_CONNECT_ERROR);
}

static void tunnel_close(struct duplex *duplex) {
    duplex->magic = 0;
    duplex->waker = NULL;
    http2_exchange_leave(exchange_of_duplex(duplex));
}

/* A stream that both sides have ended is over as well. */
static bool tunnel_is_lost(const struct duplex *duplex) {
    const struct http2_stream *stream =
        &CONTAINER_OF(duplex, const struct http2_exchange, tunnel)->stream;
    return http2_stream_is_over(stream) && !(stream->we_ended && stream->they_ended);
}

static const struct duplex_class tunnel_class = {
    .name = "HTTP/2 stream",
    .read = tunnel_read,
    .write = tunnel_write,
    .finish = tunnel_finish,
    .abort = tunnel_abort,
    .close = tunnel_close,
    .is_lost = tunnel_is_lost,
};

/* A tunnel begins with a 200, also where HTTP/1.1 says 101 (RFC 8441 §5); a key that proves the
 * switch of HTTP/1.1 is left out. */
struct duplex *http2_tunnel_open(struct exchange *base, struct http_head *head,
                                 struct slice protocol) {
    struct http2_exchange *exchange = http2_exchange_of(base);
    if (http2_stream_is_over(&exchange->stream)) {
        http2_exchange_lost(exchange);
        return NULL;
    }
    if (protocol.length > 0)
        http_head_remove_text(head, SLICE("Sec-WebSocket-Accept"));
    http_head_remove_framing(head);
    char *block =
        http2_block(exchange->connection->host, HPACK_STATUS_ROOM + hpack_fields_room(head));
    char *end = hpack_put_status(block, protocol.length > 0 ? 200 : head->status);
    http2_exchange_put_block(exchange, block, hpack_put_fields(end, head), false);
    exchange->tunnel.magic = DUPLEX_MAGIC;
    exchange->tunnel.class = &tunnel_class;
    exchange->tunnel.waker = NULL;
    return &exchange->tunnel;
}
