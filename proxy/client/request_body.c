#include "client/client.h"

#include "base/assert.h"

/* The body of a request, as a source: first what came along with the head, then from the socket. */

static void arm_body_timer(struct exchange *exchange) {
    struct client *client = exchange->client;
    loop_timer_after(client->net->loop, &client->timer, client->net->settings->client.body_timeout);
}

static enum source_status request_body_ended(struct exchange *exchange) {
    struct client *client = exchange->client;
    exchange->body_ended = true;
    timer_set(&client->net->loop->timers, &client->timer, TIMER_NEVER);
    return SOURCE_END;
}

static enum source_status waits(struct exchange *exchange) {
    arm_body_timer(exchange);
    return SOURCE_WAIT;
}

static enum source_status request_body_failed(struct exchange *exchange) {
    exchange->body_failed = true;
    return SOURCE_FAILED;
}

static struct slice buffered(const struct client *client) {
    return client->buffer == NULL ? slice_make(NULL, 0) : net_buffer_bytes(client->buffer);
}

static enum source_status request_body_from_socket(struct exchange *exchange, char *to,
                                                   size_t capacity, size_t *got) {
    struct client *client = exchange->client;
    if (!client->connection->readable)
        return waits(exchange);
    switch (connection_read(client->connection, to, capacity, got)) {
    case IO_DONE:
        client->net->counters.client_bytes_in += *got;
        timer_set(&client->net->loop->timers, &client->timer, TIMER_NEVER);
        return SOURCE_DATA;
    case IO_WAIT: return waits(exchange);
    default: return request_body_failed(exchange);
    }
}

static enum source_status read_length(struct exchange *exchange, char *to, size_t capacity,
                                      size_t *got) {
    struct client *client = exchange->client;
    struct slice waiting = buffered(client);
    enum source_status status = SOURCE_DATA;
    if (exchange->body_left == 0)
        return request_body_ended(exchange);
    if (capacity > exchange->body_left)
        capacity = (size_t)exchange->body_left;
    if (waiting.length > 0) {
        *got = waiting.length < capacity ? waiting.length : capacity;
        memcpy(to, waiting.base, *got);
        client->buffer->begin += *got;
    } else {
        status = request_body_from_socket(exchange, to, capacity, got);
    }
    exchange->body_left -= *got;
    if (exchange->body_left == 0)
        exchange->body_ended = true;
    return status;
}

/* More coded bytes into the buffer. */
static enum source_status request_body_refill(struct exchange *exchange) {
    struct client *client = exchange->client;
    size_t got = 0;
    if (client->buffer == NULL)
        client->buffer = net_buffer_take(client->net);
    client->buffer->begin = client->buffer->end = 0;
    enum source_status status =
        request_body_from_socket(exchange, client->buffer->data, client->buffer->capacity, &got);
    client->buffer->end = got;
    return status;
}

static enum source_status request_body_read_chunked(struct exchange *exchange, char *to,
                                                    size_t capacity, size_t *got) {
    struct client *client = exchange->client;
    for (;;) {
        struct slice input = buffered(client);
        if (input.length > 0) {
            enum chunked_status status =
                chunked_decode(&exchange->chunked, &input, to, capacity, got);
            client->buffer->begin = client->buffer->end - input.length;
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

/* RFC 9110 §10.1.1: the client waits for this before it sends. */
static void send_continue(struct exchange *exchange) {
    if (!exchange->expects_continue)
        return;
    exchange->expects_continue = false;
    if (buffered(exchange->client).length == 0)
        exchange_interim(exchange, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
}

static enum source_status request_body_body_read(struct source *source, char *buffer,
                                                 size_t capacity, size_t *got) {
    struct exchange *exchange = CONTAINER_OF(source, struct exchange, body);
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    *got = 0;
    if (exchange->body_ended)
        return SOURCE_END;
    if (exchange->body_failed || exchange->client->connection == NULL)
        return SOURCE_FAILED;
    ASSERT(exchange->owned);
    send_continue(exchange);
    if (exchange->client->connection == NULL)
        return request_body_failed(exchange); /* it went instead of taking the 100 */
    return exchange->framing.kind == FRAMING_CHUNKED
               ? request_body_read_chunked(exchange, buffer, capacity, got)
               : read_length(exchange, buffer, capacity, got);
}

static void request_body_body_close(struct source *source) {
    struct exchange *exchange = CONTAINER_OF(source, struct exchange, body);
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    exchange->body_in_use = false;
}

static const struct source_class body_class = {"request body", request_body_body_read,
                                               request_body_body_close, NULL};

void exchange_body_init(struct exchange *exchange) {
    const struct framing *framing = &exchange->framing;
    int64_t length = framing->kind == FRAMING_LENGTH ? (int64_t)framing->length : -1;
    source_init(&exchange->body, &body_class, exchange->client->net->loop, length);
    exchange->body_left = framing->length;
    exchange->body_ended =
        framing->kind == FRAMING_NONE || (framing->kind == FRAMING_LENGTH && framing->length == 0);
    if (framing->kind == FRAMING_CHUNKED)
        chunked_init(&exchange->chunked);
    exchange->expects_continue =
        !exchange->body_ended && exchange->error_status == 0 && exchange->request.version >= 11 &&
        http_head_has_token(&exchange->request, HTTP_EXPECT, SLICE("100-continue"));
}

struct source *exchange_body(struct exchange *exchange) {
    const struct framing *framing = &exchange->framing;
    if (framing->kind == FRAMING_NONE || (framing->kind == FRAMING_LENGTH && framing->length == 0))
        return NULL;
    ASSERT(!exchange->body_taken);
    exchange->body_taken = exchange->body_in_use = true;
    return &exchange->body;
}

/* A body that nobody read to its end must be gone before the next request: what is in the buffer
 * already costs nothing, waiting for more is not worth it. */
bool exchange_body_skip_rest(struct exchange *exchange) {
    char scrap[4096];
    size_t got;
    if (exchange->body_ended)
        return true;
    if (exchange->body_failed || exchange->expects_continue || exchange->client->connection == NULL)
        return false;
    exchange->owned = true;
    for (unsigned tries = 0; tries < 16; tries++) {
        enum source_status status =
            request_body_body_read(&exchange->body, scrap, sizeof scrap, &got);
        if (status == SOURCE_END)
            return true;
        if (status != SOURCE_DATA)
            return false;
    }
    return false;
}
