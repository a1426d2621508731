#include "http2/client/request_body.h"

#include "http2/hpack_encode.h"

static enum source_status http2_body_failed(struct http2_exchange *exchange) {
    exchange->base.body_failed = true;
    return SOURCE_FAILED;
}

static void http2_send_continue(struct http2_exchange *exchange) {
    char block[HPACK_STATUS_ROOM];
    if (!exchange->expects_continue)
        return;
    exchange->expects_continue = false;
    if (exchange->stream.in.length == 0 && !exchange->stream.they_ended && !exchange->head_sent)
        http2_exchange_put_block(exchange, block, hpack_put_status(block, 100), false);
}

/* Bodies that others do not read may shut our window of the connection, and then a client can't
 * send: its time stands still. Returns how many milliseconds it did. */
static uint64_t forgive_client(struct http2_exchange *exchange) {
    const struct http2_session *session = exchange->stream.session;
    const struct net_context *net = exchange->connection->net;
    return session == NULL
               ? 0
               : body_clock_forgive(&exchange->clock, net->settings,
                                    http2_session_shut_time(session), net->loop->now_nanoseconds);
}

static void end_wait(struct http2_exchange *exchange) {
    http2_stream_set_deadline(&exchange->stream, TIMER_NEVER);
    forgive_client(exchange);
    body_clock_got(&exchange->clock, exchange->connection->net->loop->now_nanoseconds);
}

/* Nothing has come: sets the time until which something has to, `most` milliseconds from now. */
static enum source_status http2_body_waits(struct http2_exchange *exchange, uint64_t most) {
    struct net_context *net = exchange->connection->net;
    forgive_client(exchange);
    uint64_t left = body_clock_wait(&exchange->clock, net->settings, net->loop->now_nanoseconds);
    left = left < most ? left : most;
    if (left == 0) {
        exchange->base.body_timed_out = true;
        return http2_body_failed(exchange);
    }
    http2_stream_set_deadline(&exchange->stream, net->loop->now + left);
    return SOURCE_WAIT;
}

void http2_request_body_is_late(struct http2_exchange *exchange) {
    struct counters *counters = &exchange->connection->net->counters;
    uint64_t forgiven = forgive_client(exchange);
    if (forgiven > 0 && http2_body_waits(exchange, forgiven) == SOURCE_WAIT)
        return;
    counters->client_timeouts++;
    counters->client_too_slow += exchange->clock.by_rate;
    exchange->base.body_failed = exchange->base.body_timed_out = true;
    source_wake(&exchange->body);
}

static enum source_status read_stream(struct http2_exchange *exchange, char *buffer,
                                      size_t capacity, size_t *got) {
    enum source_status status = http2_stream_read(&exchange->stream, buffer, capacity, got);
    if (status == SOURCE_WAIT)
        return http2_body_waits(exchange, UINT64_MAX);
    end_wait(exchange);
    if (status == SOURCE_FAILED)
        return http2_body_failed(exchange);
    exchange->clock.got += *got;
    return status;
}

static void http2_body_on_pace(void *arg) {
    struct http2_exchange *exchange = arg;
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    source_wake(&exchange->body);
}

/* Reads as much as the limits allow now. */
static enum source_status read_at_pace(struct http2_exchange *exchange, struct pace *pace,
                                       char *buffer, size_t capacity, size_t *got) {
    pace->on_ready = http2_body_on_pace;
    pace->arg = exchange;
    capacity = pace_ask(pace, capacity);
    if (capacity == 0) { /* the client is not to blame */
        http2_stream_set_deadline(&exchange->stream, TIMER_NEVER);
        return SOURCE_WAIT;
    }
    enum source_status status = read_stream(exchange, buffer, capacity, got);
    pace_used(pace, *got);
    if (pace->most == 0 || exchange->clock.got <= pace->most)
        return status;
    exchange->base.body_too_large = true;
    return http2_body_failed(exchange);
}

static enum source_status http2_body_read(struct source *source, char *buffer, size_t capacity,
                                          size_t *got) {
    struct http2_exchange *exchange = CONTAINER_OF(source, struct http2_exchange, body);
    CHECK_OBJ(&exchange->base, EXCHANGE_MAGIC);
    *got = 0;
    if (exchange->base.body_failed)
        return SOURCE_FAILED;
    http2_send_continue(exchange);
    struct pace *pace = exchange->base.paces[PACE_UP];
    return pace == NULL ? read_stream(exchange, buffer, capacity, got)
                        : read_at_pace(exchange, pace, buffer, capacity, got);
}

static void http2_body_close(struct source *source) {
    (void)source; /* what is left ends with the exchange */
}

static const struct source_class http2_body_class = {"request body", http2_body_read,
                                                     http2_body_close, NULL};

void http2_request_body_init(struct http2_exchange *exchange) {
    source_init(&exchange->body, &http2_body_class, exchange->connection->net->loop,
                exchange->base.body_length);
}

void http2_request_body_came(struct http2_exchange *exchange) {
    if (exchange->clock.waits_since != 0)
        end_wait(exchange);
    source_wake(&exchange->body);
}

struct source *http2_request_body_take(struct exchange *base) {
    struct http2_exchange *exchange = http2_exchange_of(base);
    ASSERT(!exchange->body_taken);
    exchange->body_taken = true;
    return &exchange->body;
}
