#include "client/client.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/reserve.h"
#include "http/head_parser.h"

#include <errno.h>

/* Nanoseconds: a response that is younger is not slow yet; between two that are cut. */
#define SHED_AFTER UINT64_C(2000000000)
#define SHED_PAUSE UINT64_C(20000000)

enum { EXCHANGES_KEPT = 256, LINGER_TIME = 2000, LINGER_BYTES = 1 << 20 };

static const char head_too_large[] = "the request head is larger than client.max_head";

static void client_on_timeout(struct timer *timer);
static bool client_read(struct client *client);

void client_hooks_init(struct client_hooks *hooks, struct mailbox *mailbox,
                       struct client_total *total,
                       void (*on_request)(struct exchange *exchange, void *arg), void *arg) {
    memset(hooks, 0, sizeof *hooks);
    hooks->on_request = on_request;
    hooks->arg = arg;
    hooks->mailbox = mailbox;
    hooks->total = total;
    list_init(&hooks->clients);
}

void client_hooks_release(struct client_hooks *hooks) {
    while (hooks->free_exchanges != NULL) {
        struct exchange *next = hooks->free_exchanges->next_free;
        free(hooks->free_exchanges);
        hooks->free_exchanges = next;
    }
}

bool client_total_add(struct client_total *total, unsigned most) {
    if (atomic_fetch_add_explicit(&total->count, 1, memory_order_relaxed) < most)
        return true;
    atomic_fetch_sub_explicit(&total->count, 1, memory_order_relaxed);
    return false;
}

static void arm(struct client *client, uint64_t milliseconds) {
    if (milliseconds == TIMER_NEVER)
        timer_set(&client->net->loop->timers, &client->timer, TIMER_NEVER);
    else
        loop_timer_after(client->net->loop, &client->timer, milliseconds);
}

static void client_free(struct client *client) {
    struct client_hooks *hooks = client->hooks;
    ASSERT(client->exchange == NULL);
    connection_close(&client->connection);
    net_buffer_give(client->net, &client->buffer);
    free(client->held_memory);
    timer_cancel(&client->net->loop->timers, &client->timer);
    task_cancel(&client->turn);
    list_remove(&client->link);
    hooks->client_count--;
    atomic_fetch_sub_explicit(&hooks->total->count, 1, memory_order_relaxed);
    client->net->counters.client_connections_open--;
    FREE_OBJ(client);
}

/* The first request mostly is there by now, and a connection that is closed behind its response
 * need not be watched. */
static void client_begin(struct client *client) {
    if (!client_read(client) || client->connection == NULL || connection_watch(client->connection))
        return;
    log_error("cannot watch a client connection: %s", strerror(errno));
    client_lost(client);
}

static void on_turn(struct task *task) {
    struct client *client = CONTAINER_OF(task, struct client, turn);
    CHECK_OBJ(client, CLIENT_MAGIC);
    if (client->exchange == NULL && client->state != CLIENT_LINGERING)
        client_read(client);
}

static const struct listen_settings *find_listen(const struct client *client) {
    const struct settings *settings = client->net->settings;
    for (size_t i = 0; i < settings->listen_count; i++)
        if (address_equal(&settings->listens[i].address, &client->listen_address))
            return &settings->listens[i];
    return NULL;
}

void client_settings_changed(struct client_hooks *hooks) {
    LIST_FOR_EACH (link, &hooks->clients) {
        struct client *client = CONTAINER_OF(link, struct client, link);
        client->listen = find_listen(client);
    }
}

void client_accept(struct net_context *net, int fd, const struct address *address,
                   const struct address *listen_address, struct client_hooks *hooks) {
    struct client *client;
    ALLOC_OBJ(client, CLIENT_MAGIC);
    client->net = net;
    client->hooks = hooks;
    client->connection = connection_adopt(net, &fd, client_on_ready, client);
    client->address = *address;
    client->listen_address = *listen_address;
    client->listen = find_listen(client);
    timer_init(&client->timer, client_on_timeout);
    task_init(&client->turn, on_turn);
    list_append(&hooks->clients, &client->link);
    hooks->client_count++;
    net->counters.client_connections++;
    net->counters.client_connections_open++;
    arm(client, net->settings->client.idle_timeout);
    client_begin(client);
}

/* Reads away what the client still sends, so that closing does not reset the connection before the
 * client has seen the response (RFC 9112 §9.6). */
static void client_linger(struct client *client) {
    connection_shutdown(client->connection);
    arm(client, LINGER_TIME);
    client->lingered = 0;
}

static bool linger_read(struct client *client) {
    char scrap[4096];
    size_t got;
    while (client->connection->readable) {
        enum io_status status = connection_read(client->connection, scrap, sizeof scrap, &got);
        client->lingered += got;
        if (status == IO_END || status == IO_FAILED || client->lingered > LINGER_BYTES) {
            client_free(client);
            return false;
        }
        if (status == IO_WAIT)
            break;
    }
    return true;
}

/* The connection is of no more use: tell the transaction, or go. */
void client_lost(struct client *client) {
    client->finished = true;
    if (client->exchange == NULL) {
        if (!client->reading) /* else client_read frees it */
            client_free(client);
        return;
    }
    struct exchange *exchange = client->exchange;
    exchange->state = EXCHANGE_ABORTED;
    connection_close(&client->connection);
    arm(client, TIMER_NEVER);
    if (exchange->waker != NULL)
        loop_defer(client->net->loop, exchange->waker);
}

static void client_on_timeout(struct timer *timer) {
    struct client *client = CONTAINER_OF(timer, struct client, timer);
    CHECK_OBJ(client, CLIENT_MAGIC);
    switch (client->state) {
    case CLIENT_HEAD:
        client->net->counters.client_timeouts++;
        /* fall through */
    case CLIENT_IDLE:
    case CLIENT_LINGERING: client_free(client); return;
    case CLIENT_BUSY:
        client->net->counters.client_timeouts++;
        if (client->exchange->state == EXCHANGE_REQUEST) {
            client->exchange->body_failed = client->exchange->body_timed_out = true;
            source_wake(&client->exchange->body);
        } else {
            exchange_abort(client->exchange);
        }
    }
}

static struct exchange *exchange_new(struct client *client) {
    struct client_hooks *hooks = client->hooks;
    struct exchange *exchange = hooks->free_exchanges;
    if (exchange != NULL) {
        hooks->free_exchanges = exchange->next_free;
        hooks->free_exchange_count--;
    } else {
        exchange = xmalloc(sizeof *exchange);
    }
    /* All but the head, which its parser initialises, and what only some use. */
    exchange->magic = EXCHANGE_MAGIC;
    memset(&exchange->framing, 0,
           offsetof(struct exchange, reader) - offsetof(struct exchange, framing));
    exchange->client = client;
    exchange->next_free = NULL;
    exchange->state = EXCHANGE_REQUEST;
    task_init(&exchange->reader_task, exchange_on_body);
    exchange->started = client->net->loop->now_nanoseconds;
    return exchange;
}

static void exchange_free(struct exchange *exchange) {
    struct client_hooks *hooks = exchange->client->hooks;
    exchange->magic = 0;
    if (hooks->free_exchange_count >= EXCHANGES_KEPT) {
        free(exchange);
        return;
    }
    exchange->next_free = hooks->free_exchanges;
    hooks->free_exchanges = exchange;
    hooks->free_exchange_count++;
}

static void begin_exchange(struct client *client, struct exchange *exchange) {
    client->exchange = exchange;
    client->state = CLIENT_BUSY;
    client->requests++;
    arm(client, TIMER_NEVER);
    client->net->counters.client_requests++;
    exchange->listen = client->listen;
    exchange_body_init(exchange);
    unsigned most = client->net->settings->client.max_requests;
    if (client->hooks->draining || exchange->listen == NULL ||
        (most > 0 && client->requests >= most))
        exchange->keep_alive = false;
    client->hooks->on_request(exchange, client->hooks->arg);
}

/* A request that can't be parsed takes the same way as any other, so that it is answered and
 * logged. */
static void begin_bad_exchange(struct client *client, unsigned status, const char *text) {
    struct exchange *exchange = exchange_new(client);
    http_head_init(&exchange->request);
    exchange->error_status = status;
    exchange->error_text = text;
    client->net->counters.client_bad_requests++;
    begin_exchange(client, exchange);
}

static void begin_good_exchange(struct client *client, struct exchange *exchange) {
    /* RFC 9110 §9.3.6: a CONNECT leads out of HTTP. Where it is refused, what stands behind it was
     * meant for a tunnel and is nobody's request. */
    exchange->keep_alive = framing_keeps_alive(&exchange->request) &&
                           exchange->request.method_id != HTTP_METHOD_CONNECT;
    exchange->head_request = exchange->request.method_id == HTTP_METHOD_HEAD;
    if (!framing_of_request(&exchange->framing, &exchange->request)) {
        exchange->error_status = exchange->framing.status;
        exchange->error_text = exchange->framing.error;
        exchange->framing.kind = FRAMING_NONE;
        exchange->keep_alive = false;
        client->net->counters.client_bad_requests++;
    }
    begin_exchange(client, exchange);
}

/* For more there is no memory. Nothing is asked for: what is said is constant. */
static void client_refuse(struct client *client) {
    static const char busy[] = "HTTP/1.1 503 Service Unavailable\r\n"
                               "Content-Length: 0\r\n"
                               "Cache-Control: no-store\r\n"
                               "Retry-After: 1\r\n"
                               "Connection: close\r\n\r\n";
    struct iovec pieces[] = {{NULL, 0}, {(void *)(uintptr_t)busy, sizeof busy - 1}};
    size_t put;
    client_write(client, pieces, 1, false, &put);
    client->state = CLIENT_LINGERING;
}

/* Who has been sent least for the time it took, of those who have had time enough; NULL: nobody. */
static struct client *slowest(const struct client_hooks *hooks, uint64_t now) {
    struct client *chosen = NULL;
    double least = 0;
    LIST_FOR_EACH (link, &hooks->clients) {
        struct client *client = CONTAINER_OF(link, struct client, link);
        const struct exchange *exchange = client->exchange;
        if (exchange == NULL || exchange->state != EXCHANGE_SENDING || !exchange->has_reader ||
            now - exchange->started < SHED_AFTER)
            continue;
        double rate = (double)exchange->bytes_sent / (double)(now - exchange->started);
        if (chosen == NULL || rate < least) {
            chosen = client;
            least = rate;
        }
    }
    return chosen;
}

/* One at a time, and not all at once: what they held comes free only when they have ended. */
static void shed(struct client_hooks *hooks, struct net_context *net) {
    uint64_t now = net->loop->now_nanoseconds;
    if (now < hooks->sheds_again)
        return;
    hooks->sheds_again = now + SHED_PAUSE;
    struct client *client = slowest(hooks, now);
    if (client == NULL)
        return;
    net->counters.client_memory_shed++;
    exchange_abort(client->exchange);
}

bool client_lacks_memory(struct client_hooks *hooks, struct net_context *net) {
    if (reserve_is_low())
        reserve_refill(); /* others may have freed theirs */
    if (reserve_is_low()) {
        net->counters.memory_refused++;
        return true;
    }
    if (net->pressure != NET_FULL)
        return false;
    net->counters.client_memory_refused++;
    shed(hooks, net);
    return true;
}

/* True when the buffer held a whole head, good or bad, and an exchange has begun. */
static bool parse_head(struct client *client) {
    struct slice bytes = net_buffer_bytes(client->buffer);
    if (bytes.length == 0)
        return false;
    if (client_lacks_memory(client->hooks, client->net)) {
        client_refuse(client);
        return true;
    }
    struct exchange *exchange = exchange_new(client);
    ssize_t used =
        http_head_parse_request(&exchange->request, bytes.base, bytes.length, client->head_checked);
    if (used == 0) {
        exchange_free(exchange);
        client->head_checked = bytes.length;
        if (bytes.length < client->net->settings->client.max_head)
            return false;
        begin_bad_exchange(client, 431, head_too_large);
        return true;
    }
    client->head_checked = 0;
    if (used > 0 && (size_t)used > client->net->settings->client.max_head) {
        exchange_free(exchange);
        begin_bad_exchange(client, 431, head_too_large);
        return true;
    }
    if (used < 0) {
        exchange_free(exchange);
        begin_bad_exchange(client, http_error_status((enum http_error) - used),
                           http_error_text((enum http_error) - used));
        return true;
    }
    client->buffer->begin += (size_t)used;
    begin_good_exchange(client, exchange);
    return true;
}

/* Reads once into the buffer. */
static void client_fill(struct client *client) {
    size_t got;
    if (client->buffer == NULL)
        client->buffer = net_buffer_take(client->net);
    struct net_buffer **buffer = &client->buffer;
    if (!net_buffer_make_room(client->net, buffer, client->net->settings->client.max_head)) {
        begin_bad_exchange(client, 431, head_too_large);
        return;
    }
    enum io_status status = connection_read(client->connection, (*buffer)->data + (*buffer)->end,
                                            (*buffer)->capacity - (*buffer)->end, &got);
    switch (status) {
    case IO_DONE:
        (*buffer)->end += got;
        client->net->counters.client_bytes_in += got;
        break;
    case IO_WAIT: break;
    default: client_lost(client);
    }
}

static void wait_for_request(struct client *client) {
    const struct settings *settings = client->net->settings;
    bool empty = client->buffer == NULL || client->buffer->begin == client->buffer->end;
    if (empty) {
        net_buffer_give(client->net, &client->buffer);
        client->head_checked = 0;
    }
    if (!empty && client->state != CLIENT_HEAD) {
        client->state = CLIENT_HEAD;
        arm(client, settings->client.header_timeout);
    } else if (empty && client->requests > 0) {
        client->state = CLIENT_IDLE;
        arm(client, settings->client.idle_timeout);
    }
}

/* Serves requests one after the other until one has to wait, there is none, or others have theirs.
 * Exchanges that are finished within on_request come back here rather than calling deeper. False:
 * the client is gone.
 */
static bool client_read(struct client *client) {
    const struct counters *counters = &client->net->counters;
    unsigned last = client->requests + TURN_REQUESTS;
    uint64_t enough = counters->client_bytes_out + TURN_BYTES;
    if (client->held_memory != NULL)
        client_flush(client);
    client->reading = true;
    while (!client->finished && client->exchange == NULL && client->state != CLIENT_LINGERING &&
           client->held_memory == NULL) {
        if (client->requests == last || counters->client_bytes_out >= enough) {
            loop_defer(client->net->loop, &client->turn);
            break;
        }
        if (client->buffer != NULL && parse_head(client))
            continue;
        if (!client->connection->readable) {
            wait_for_request(client);
            break;
        }
        client_fill(client);
    }
    client->reading = false;
    enum io_status flushed = client_flush(client);
    if (client->exchange != NULL)
        return true; /* it writes what is left before its own */
    if (flushed == IO_WAIT) {
        arm(client, client->net->settings->client.send_timeout);
        return true;
    }
    if (client->finished || flushed == IO_FAILED) {
        client_free(client);
        return false;
    }
    if (client->state != CLIENT_LINGERING)
        return true;
    client_linger(client);
    return linger_read(client);
}

void client_on_ready(struct connection *connection) {
    struct client *client;
    CAST_OBJ(client, connection->event.owner, CLIENT_MAGIC);
    if (client->state == CLIENT_BUSY) {
        if (connection->broken) { /* nobody is there for the response: do not wait for it */
            client_lost(client);
            return;
        }
        if (connection->readable)
            source_wake(&client->exchange->body);
        if (connection->writable && client->exchange->state == EXCHANGE_SENDING)
            exchange_send(client->exchange);
        else if (connection->writable)
            client_flush(client);
    } else if (client->state == CLIENT_LINGERING && client->held_memory == NULL) {
        linger_read(client);
    } else if (client->held_memory == NULL || connection->writable) {
        client_read(client);
    }
}

struct slice client_ip(struct client *client) {
    if (client->ip_length == 0)
        client->ip_length = (uint8_t)address_format_ip(&client->address, client->ip);
    return slice_make(client->ip, client->ip_length);
}

void exchange_own_request(struct exchange *exchange, struct arena *arena) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    if (exchange->owned)
        return;
    exchange->owned = true;
    char *copy = arena_alloc(arena, http_head_size(&exchange->request));
    http_head_copy(&exchange->request, &exchange->request, copy);
}

void exchange_abort(struct exchange *exchange) {
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    struct client *client = exchange->client;
    client_flush(client);
    connection_abort(&client->connection);
    client_lost(client);
}

/* A client without a connection, for one exchange. */
static struct client *background_client(const struct client *like) {
    struct client *client;
    ALLOC_OBJ(client, CLIENT_MAGIC);
    client->state = CLIENT_BUSY;
    client->net = like->net;
    client->hooks = like->hooks;
    client->address = like->address;
    client->listen_address = like->listen_address;
    client->finished = true;
    timer_init(&client->timer, client_on_timeout);
    list_init(&client->link);
    return client;
}

/* The listener as it is now: the transaction that begins holds the current snapshot, whatever
 * reloads `exchange` has waited over. */
bool exchange_repeat_in_background(const struct exchange *exchange) {
    const struct listen_settings *listen = find_listen(exchange->client);
    if (listen == NULL)
        return false;
    struct client *client = background_client(exchange->client);
    struct exchange *repeated = exchange_new(client);
    repeated->background = repeated->owned = true;
    repeated->background_bytes = xmalloc(http_head_size(&exchange->request));
    http_head_copy(&repeated->request, &exchange->request, repeated->background_bytes);
    http_head_remove(&repeated->request, HTTP_RANGE); /* what is stored is whole */
    http_head_remove(&repeated->request, HTTP_IF_RANGE);
    repeated->framing.kind = FRAMING_NONE;
    repeated->listen = listen;
    exchange_body_init(repeated);
    client->exchange = repeated;
    client->hooks->on_request(repeated, client->hooks->arg);
    return true;
}

static void finish_in_background(struct exchange *exchange) {
    struct client *client = exchange->client;
    timer_cancel(&client->net->loop->timers, &client->timer);
    free(exchange->background_bytes);
    exchange_free(exchange);
    FREE_OBJ(client);
}

void exchange_finish(struct exchange **exchangep) {
    struct exchange *exchange = *exchangep;
    *exchangep = NULL;
    CHECK_OBJ(exchange, EXCHANGE_MAGIC);
    if (exchange->background) {
        finish_in_background(exchange);
        return;
    }
    struct client *client = exchange->client;
    bool reusable = exchange->state == EXCHANGE_SENT && exchange->keep_alive &&
                    exchange_body_skip_rest(exchange);
    bool body_ended = exchange->body_ended;
    task_cancel(&exchange->reader_task);
    if (exchange->has_reader)
        body_reader_close(&exchange->reader);
    exchange_free(exchange);
    client->exchange = NULL;
    client->state = CLIENT_IDLE;
    if (client->connection == NULL)
        client->finished = true;
    else if (!reusable && body_ended && !client_has_input(client))
        client->finished = true;
    else if (!reusable && !client->finished)
        client->state = CLIENT_LINGERING;
    if (!client->reading)
        client_read(client);
}

struct connection *exchange_take_connection(struct exchange *exchange,
                                            struct net_buffer **leftover) {
    struct client *client = exchange->client;
    struct connection *connection = client->connection;
    client->connection = NULL;
    client->finished = true;
    *leftover = client->buffer;
    client->buffer = NULL;
    return connection;
}

void client_drain(struct client_hooks *hooks) {
    hooks->draining = true;
    LIST_FOR_EACH_SAFE (link, next, &hooks->clients) {
        struct client *client = CONTAINER_OF(link, struct client, link);
        if (client->state == CLIENT_IDLE && !client_has_input(client) && client->held.length == 0)
            client_free(client);
        else if (client->exchange != NULL)
            client->exchange->keep_alive = false;
    }
}

void client_abort_all(struct client_hooks *hooks) {
    LIST_FOR_EACH_SAFE (link, next, &hooks->clients) {
        struct client *client = CONTAINER_OF(link, struct client, link);
        connection_abort(&client->connection);
        client_lost(client);
    }
}
