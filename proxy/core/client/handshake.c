#include "client/handshake.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/listener.h"

#include <errno.h>
#include <unistd.h>

/* In milliseconds: how long the alert has to reach the client, and how long a handshake is safe from
 * others when there are too many. */
enum { LINGER_TIME = 1000, SAFE_TIME = 1000 };
/* Bytes that are read away after a failure. */
enum { LINGER_BYTES = 64 * 1024 };

enum handshake_state {
    HANDSHAKE_SILENT,   /* no byte has come */
    HANDSHAKE_GOING_ON, /* TLS */
    HANDSHAKE_LINGERING /* it has failed; what the client still sends is read away */
};

struct handshake {
    unsigned magic;
#define HANDSHAKE_MAGIC 0x4a9d54aeu
    enum handshake_state state;
    struct client_connection client;
    struct connection *socket;
    struct tls_server *server;
    struct timer timer;
    struct list_link link; /* of clients->handshakes, the oldest first */
    uint64_t started;      /* milliseconds of the loop's clock */
    uint64_t started_nanoseconds;
    size_t lingered; /* bytes */
};

/* Others may begin: what is left costs no time. */
static void handshake_give_place(struct handshake *handshake) {
    struct clients *clients = handshake->client.clients;
    list_remove(&handshake->link);
    atomic_fetch_sub_explicit(&clients->total->handshakes, 1, memory_order_relaxed);
    clients->net->counters.tls_handshakes_open--;
}

static void handshake_free(struct handshake *handshake) {
    struct clients *clients = handshake->client.clients;
    if (handshake->state != HANDSHAKE_LINGERING)
        handshake_give_place(handshake);
    timer_cancel(&clients->net->loop->timers, &handshake->timer);
    clients_note_end(&handshake->client, handshake->socket, "handshake");
    connection_close(&handshake->socket);
    tls_server_release(&handshake->server);
    clients_remove(&handshake->client);
    FREE_OBJ(handshake);
}

static void count_failure(struct counters *counters, enum tls_failure failure) {
    switch (failure) {
    case TLS_FAILURE_CLOSED: counters->tls_failures_closed++; return;
    case TLS_FAILURE_ALERT: counters->tls_failures_alert++; return;
    case TLS_FAILURE_CERTIFICATE: counters->tls_failures_certificate++; return;
    case TLS_FAILURE_MISMATCH: counters->tls_failures_mismatch++; return;
    case TLS_FAILURE_NONE:
    case TLS_FAILURE_OTHER: counters->tls_failures_other++;
    }
}

/* Closing a socket with unread bytes would reset the connection before the client has seen our
 * alert. */
static void handshake_linger(struct handshake *handshake) {
    char scrap[4096];
    size_t got;
    while (handshake->socket->readable) {
        enum io_status status = connection_read(handshake->socket, scrap, sizeof scrap, &got);
        if (status == IO_WAIT)
            return;
        handshake->lingered += got;
        if (status != IO_DONE || handshake->lingered > LINGER_BYTES) {
            handshake_free(handshake);
            return;
        }
    }
}

static void handshake_fail(struct handshake *handshake) {
    struct net_context *net = handshake->client.clients->net;
    struct connection *socket = handshake->socket;
    enum tls_failure failure =
        socket->tls != NULL ? tls_stream_failure(socket->tls) : TLS_FAILURE_OTHER;
    char address[ADDRESS_TEXT];
    count_failure(&net->counters, failure);
    address_format(&handshake->client.ends.client, address);
    log_debug("client %s: %s", address,
              socket->tls != NULL ? connection_error(socket) : tls_server_error(handshake->server));
    if (failure == TLS_FAILURE_CLOSED || socket->tls == NULL) {
        handshake_free(handshake);
        return;
    }
    tls_stream_free(&socket->tls); /* what follows is clear text that nobody reads */
    connection_shutdown(socket);
    handshake_give_place(handshake);
    handshake->state = HANDSHAKE_LINGERING;
    loop_timer_after(net->loop, &handshake->timer, LINGER_TIME);
    handshake_linger(handshake);
}

static void handshake_hand_over(struct handshake *handshake) {
    struct clients *clients = handshake->client.clients;
    clients_adopt(clients, &(struct client_arrival){
                               .connection = &handshake->socket,
                               .client = &handshake->client.ends.client,
                               .listener = &handshake->client.listener,
                               .destination = handshake->client.destination,
                           });
    handshake_free(handshake);
}

static void handshake_complete(struct handshake *handshake) {
    struct net_context *net = handshake->client.clients->net;
    struct counters *counters = &net->counters;
    counters->tls_handshakes++;
    times_add(&net->durations.tls_handshake_seconds,
              (net->loop->now_nanoseconds - handshake->started_nanoseconds) / 1000);
    counters->tls_handshakes_resumed += connection_tls_facts(handshake->socket)->resumed;
    handshake_hand_over(handshake);
}

/* `before`: milliseconds that the connection has waited in the kernel. */
static void handshake_arm(struct handshake *handshake, uint64_t before) {
    struct net_context *net = handshake->client.clients->net;
    uint64_t limit = net->settings->client.handshake_timeout;
    timer_set(&net->loop->timers, &handshake->timer,
              handshake->started + (limit > before ? limit - before : 0));
}

/* Looks at the first byte. False: there is none yet, or the handshake is over. */
static bool handshake_begin(struct handshake *handshake) {
    struct net_context *net = handshake->client.clients->net;
    char first;
    switch (connection_peek(handshake->socket, &first)) {
    case IO_DONE: break;
    case IO_WAIT: handshake_arm(handshake, LISTENER_DEFERS); return false;
    default: handshake_free(handshake); return false;
    }
    handshake->state = HANDSHAKE_GOING_ON;
    if ((first < 'A' || first > 'Z') && (first < 'a' || first > 'z'))
        return true;
    net->counters.tls_plain_requests++;
    handshake_hand_over(handshake);
    return false;
}

static void handshake_go_on(struct handshake *handshake) {
    if (handshake->state == HANDSHAKE_SILENT && !handshake_begin(handshake))
        return;
    switch (connection_accept_secure(handshake->socket, handshake->server, SLICE(""))) {
    case IO_DONE: handshake_complete(handshake); return;
    case IO_WAIT: return;
    default: handshake_fail(handshake);
    }
}

static void handshake_on_ready(struct connection *socket) {
    struct handshake *handshake;
    CAST_OBJ(handshake, socket->event.owner, HANDSHAKE_MAGIC);
    if (handshake->state == HANDSHAKE_LINGERING)
        handshake_linger(handshake);
    else
        handshake_go_on(handshake);
}

static void handshake_on_timeout(struct timer *timer) {
    struct handshake *handshake = CONTAINER_OF(timer, struct handshake, timer);
    CHECK_OBJ(handshake, HANDSHAKE_MAGIC);
    if (handshake->state != HANDSHAKE_LINGERING)
        handshake->client.clients->net->counters.tls_handshake_timeouts++;
    handshake_free(handshake);
}

/* The functions of struct client_connection_class. */

static struct handshake *handshake_of(struct client_connection *client) {
    struct handshake *handshake = CONTAINER_OF(client, struct handshake, client);
    CHECK_OBJ(handshake, HANDSHAKE_MAGIC);
    return handshake;
}

/* A client that has begun gets the answer to its request. */
static void handshake_drain(struct client_connection *client) {
    struct handshake *handshake = handshake_of(client);
    if (handshake->state != HANDSHAKE_GOING_ON)
        handshake_free(handshake);
}

static void handshake_abort(struct client_connection *client) {
    handshake_free(handshake_of(client));
}

static struct exchange *handshake_slowest(struct client_connection *client) {
    (void)client;
    return NULL;
}

static const struct client_connection_class handshake_class = {
    .name = "TLS handshake",
    .drain = handshake_drain,
    .abort = handshake_abort,
    .slowest = handshake_slowest,
};

/* Of too many handshakes, the one that this worker has waited for longest is broken off. False: no
 * client has had time enough. */
static bool handshake_make_room(struct clients *clients) {
    if (list_empty(&clients->handshakes))
        return false;
    struct handshake *oldest = CONTAINER_OF(clients->handshakes.next, struct handshake, link);
    CHECK_OBJ(oldest, HANDSHAKE_MAGIC);
    if (clients->net->loop->now - oldest->started < SAFE_TIME)
        return false;
    handshake_free(oldest);
    return true;
}

/* Counts a handshake in all workers. */
static bool take_place(struct clients *clients) {
    unsigned most = clients->net->settings->client.max_handshakes;
    if (atomic_fetch_add_explicit(&clients->total->handshakes, 1, memory_order_relaxed) < most)
        return true;
    clients->net->counters.tls_handshakes_refused++;
    if (handshake_make_room(clients))
        return true;
    atomic_fetch_sub_explicit(&clients->total->handshakes, 1, memory_order_relaxed);
    return false;
}

static struct handshake *handshake_new(struct clients *clients,
                                       const struct client_accepted *accepted,
                                       struct tls_server *server) {
    struct handshake *handshake;
    int fd = accepted->fd;
    ALLOC_OBJ(handshake, HANDSHAKE_MAGIC);
    timer_init(&handshake->timer, handshake_on_timeout);
    clients_add(clients, &handshake->client, &handshake_class, accepted->client,
                accepted->listener);
    clients_set_destination(&handshake->client, accepted->destination);
    list_append(&clients->handshakes, &handshake->link);
    clients->net->counters.tls_handshakes_open++;
    handshake->server = tls_server_take(server);
    handshake->started = clients->net->loop->now;
    handshake->started_nanoseconds = clients->net->loop->now_nanoseconds;
    handshake->socket = connection_adopt(clients->net, &fd, handshake_on_ready, handshake);
    return handshake;
}

void handshake_accept(struct clients *clients, const struct client_accepted *accepted,
                      struct tls_server *server) {
    if (!take_place(clients)) {
        close(accepted->fd);
        atomic_fetch_sub_explicit(&clients->total->count, 1, memory_order_relaxed);
        return;
    }
    struct handshake *handshake = handshake_new(clients, accepted, server);
    if (!clients_count(&handshake->client) || !clients_count_half_open(&handshake->client)) {
        handshake_free(handshake);
        return;
    }
    if (!connection_watch(handshake->socket)) {
        log_error("cannot watch a client connection: %s", strerror(errno));
        handshake_free(handshake);
        return;
    }
    handshake_arm(handshake, 0);
    handshake_go_on(handshake);
}
