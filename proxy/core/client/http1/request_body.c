#include "client/http1/request_body.h"

#include "base/assert.h"

/* False: the client has no time left. */
static bool arm_body_timer(struct http1_exchange *exchange) {
    struct http1_connection *connection = exchange->connection;
    uint64_t left = body_clock_wait(&exchange->clock, connection->net->settings,
                                    connection->net->loop->now_nanoseconds);
    if (left > 0)
        http1_connection_arm(connection, left);
    return left > 0;
}

static enum source_status request_body_ended(struct http1_exchange *exchange) {
    struct http1_connection *connection = exchange->connection;
    exchange->body_ended = true;
    http1_connection_disarm(connection);
    return SOURCE_END;
}

static enum source_status request_body_failed(struct http1_exchange *exchange) {
    exchange->base.body_failed = true;
    return SOURCE_FAILED;
}

static enum source_status waits(struct http1_exchange *exchange) {
    if (arm_body_timer(exchange))
        return SOURCE_WAIT;
    exchange->base.body_timed_out = true;
    return request_body_failed(exchange);
}

static struct slice buffered(const struct http1_connection *connection) {
    return connection->buffer == NULL ? slice_make(NULL, 0) : net_buffer_bytes(connection->buffer);
}

static enum source_status request_body_from_socket(struct http1_exchange *exchange, char *to,
                                                   size_t capacity, size_t *got) {
    struct http1_connection *connection = exchange->connection;
    if (!connection->socket->readable)
        return waits(exchange);
    switch (connection_read(connection->socket, to, capacity, got)) {
    case IO_DONE:
        connection->net->counters.client_bytes_in += *got;
        http1_connection_disarm(connection);
        body_clock_got(&exchange->clock, connection->net->loop->now_nanoseconds);
        return SOURCE_DATA;
    case IO_WAIT: return waits(exchange);
    default: return request_body_failed(exchange);
    }
}

static enum source_status read_length(struct http1_exchange *exchange, char *to, size_t capacity,
                                      size_t *got) {
    struct http1_connection *connection = exchange->connection;
    struct slice waiting = buffered(connection);
    enum source_status status = SOURCE_DATA;
    if (exchange->body_left == 0)
        return request_body_ended(exchange);
    if (capacity > exchange->body_left)
        capacity = (size_t)exchange->body_left;
    if (waiting.length > 0) {
        *got = waiting.length < capacity ? waiting.length : capacity;
        memcpy(to, waiting.base, *got);
        connection->buffer->begin += *got;
    } else {
        status = request_body_from_socket(exchange, to, capacity, got);
    }
    exchange->body_left -= *got;
    if (exchange->body_left == 0)
        exchange->body_ended = true;
    return status;
}

/* Reads more coded bytes into the buffer. */
static enum source_status request_body_refill(struct http1_exchange *exchange) {
    struct http1_connection *connection = exchange->connection;
    size_t got = 0;
    if (connection->buffer == NULL)
        connection->buffer = net_buffer_take(connection->net);
    connection->buffer->begin = connection->buffer->end = 0;
    enum source_status status = request_body_from_socket(exchange, connection->buffer->data,
                                                         connection->buffer->capacity, &got);
    connection->buffer->end = got;
    return status;
}

static enum source_status request_body_read_chunked(struct http1_exchange *exchange, char *to,
                                                    size_t capacity, size_t *got) {
    struct http1_connection *connection = exchange->connection;
    for (;;) {
        struct slice input = buffered(connection);
        if (input.length > 0) {
            enum chunked_status status =
                chunked_decode(&exchange->chunked, &input, to, capacity, got);
            connection->buffer->begin = connection->buffer->end - input.length;
            if (status == CHUNKED_BAD)
                return request_body_failed(exchange);
            if (status == CHUNKED_END)
                exchange->body_ended = true;
            if (*got > 0)
                return SOURCE_DATA;
            if (status == CHUNKED_END)
                return request_body_ended(exchange);
        }
        enum source_status status = request_body_refill(exchange);
        if (status != SOURCE_DATA)
            return status;
    }
}

/* The client waits for the 100 before it sends the body. If only a part of the head could be sent,
 * the connection is lost. */
static void send_continue(struct http1_exchange *exchange) {
    size_t sent;
    if (!exchange->expects_continue)
        return;
    exchange->expects_continue = false;
    if (buffered(exchange->connection).length == 0 &&
        !http1_exchange_send_now(exchange, SLICE("HTTP/1.1 100 Continue\r\n\r\n"), &sent))
        exchange_abort(&exchange->base);
}

static enum source_status read_framed(struct http1_exchange *exchange, char *buffer,
                                      size_t capacity, size_t *got) {
    enum source_status status = exchange->framing.kind == FRAMING_CHUNKED
                                    ? request_body_read_chunked(exchange, buffer, capacity, got)
                                    : read_length(exchange, buffer, capacity, got);
    exchange->clock.got += *got;
    return status;
}

static void request_body_on_pace(void *arg) {
    struct http1_exchange *exchange = arg;
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    source_wake(&exchange->body);
}

/* Reads as much as the limits allow now. */
static enum source_status read_paced(struct http1_exchange *exchange, struct pace *pace,
                                     char *buffer, size_t capacity, size_t *got) {
    pace->on_ready = request_body_on_pace;
    pace->arg = exchange;
    capacity = pace_ask(pace, capacity);
    if (capacity == 0) { /* the client is not to blame */
        http1_connection_disarm(exchange->connection);
        return SOURCE_WAIT;
    }
    enum source_status status = read_framed(exchange, buffer, capacity, got);
    pace_used(pace, *got);
    if (pace->most == 0 || exchange->clock.got <= pace->most)
        return status;
    exchange->base.body_too_large = true;
    return request_body_failed(exchange);
}

static enum source_status request_body_read(struct source *source, char *buffer, size_t capacity,
                                            size_t *got) {
    struct http1_exchange *exchange = CONTAINER_OF(source, struct http1_exchange, body);
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    *got = 0;
    if (exchange->body_ended)
        return SOURCE_END;
    if (exchange->base.body_failed || exchange->connection->socket == NULL)
        return SOURCE_FAILED;
    ASSERT(exchange->base.owned);
    send_continue(exchange);
    if (exchange->connection->socket == NULL)
        return request_body_failed(exchange); /* it went instead of taking the 100 */
    struct pace *pace = exchange->base.paces[PACE_UP];
    return pace == NULL ? read_framed(exchange, buffer, capacity, got)
                        : read_paced(exchange, pace, buffer, capacity, got);
}

static void request_body_close(struct source *source) {
    struct http1_exchange *exchange = CONTAINER_OF(source, struct http1_exchange, body);
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    exchange->body_in_use = false;
}

static const struct source_class body_class = {"request body", request_body_read,
                                               request_body_close, NULL};

void http1_request_body_init(struct http1_exchange *exchange) {
    const struct framing *framing = &exchange->framing;
    struct exchange *base = &exchange->base;
    int64_t length = framing->kind == FRAMING_LENGTH ? (int64_t)framing->length : -1;
    source_init(&exchange->body, &body_class, exchange->connection->net->loop, length);
    if (framing->kind == FRAMING_NONE || length == 0) {
        exchange->body_ended = true;
        return;
    }
    base->body_length = length;
    exchange->body_left = framing->length;
    if (framing->kind == FRAMING_CHUNKED)
        chunked_init(&exchange->chunked);
    exchange->expects_continue =
        base->error_status == 0 && base->request.version >= 11 &&
        http_head_has_token(&base->request, HTTP_EXPECT, SLICE("100-continue"));
}

struct source *http1_request_body_take(struct exchange *base) {
    struct http1_exchange *exchange = http1_exchange_of(base);
    ASSERT(!exchange->body_taken);
    exchange->body_taken = exchange->body_in_use = true;
    return &exchange->body;
}

bool http1_request_body_skip_rest(struct http1_exchange *exchange) {
    enum { TRIES = 16 };
    char scrap[4096];
    size_t got;
    if (exchange->base.body_failed || exchange->expects_continue ||
        exchange->connection->socket == NULL)
        return false;
    exchange->base.owned = true;
    for (unsigned tries = 0; tries < TRIES; tries++) {
        enum source_status status = request_body_read(&exchange->body, scrap, sizeof scrap, &got);
        if (status == SOURCE_END)
            return true;
        if (status != SOURCE_DATA)
            return false;
    }
    return false;
}
