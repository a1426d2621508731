#include "net/dial.h"

#include "base/assert.h"
#include "net/own_connections.h"
#include "net/privileges.h"
#include "net/proxy_tunnel.h"
#include "tls/client.h"
#include "tls/intermediates.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

static void try_next(struct dial *dial);
static void shake_hands(struct dial *dial);
static void dial_stop_fetching(struct dial *dial);

static void dial_finish(struct dial *dial, enum dial_state state) {
    dial->state = state;
    timer_cancel(&dial->net->loop->timers, &dial->timer);
    loop_defer(dial->net->loop, dial->waker);
}

/* A failure of TLS at one address says more than that another one can't be reached. */
static void note_unreachable(struct dial *dial, const char *error, bool timed_out) {
    if (dial->reached)
        return;
    dial->error = error;
    dial->timed_out = timed_out;
}

static void attempt_failed(struct dial *dial, const char *error, bool timed_out) {
    if (dial->state == DIAL_CONNECTING)
        note_unreachable(dial, error, timed_out);
    else {
        dial->error = error;
        dial->timed_out = timed_out;
    }
    dial_stop_fetching(dial);
    connection_close(&dial->connection);
    if (dial->proxy_answered)
        dial_finish(dial, DIAL_FAILED);
    else
        try_next(dial);
}

/* With whom the handshake is made now. */
static struct tls_client *dial_tls(const struct dial *dial) {
    return dial->tunnel != NULL && !dial->tunnel_open ? dial->proxy_tls : dial->tls;
}

/* Waits for the certificates of a URL; somebody else may be fetching them. NULL: none are needed. */
static void dial_fetch(struct dial *dial, const char *url) {
    struct net_context *net = dial->net;
    struct intermediates *list = net->intermediates;
    if (url == NULL)
        return;
    if (dial->fetch_until == 0)
        dial->fetch_until = net->loop->now + DIAL_FETCH_TIME;
    dial->state = DIAL_FETCHING;
    timer_set(&net->loop->timers, &dial->timer, dial->fetch_until);
    if (intermediates_await(list, url, &dial->fetched, net->mailbox, &dial->fetched_task))
        net->fetch_intermediate(net, url);
}

static void dial_on_fetched(struct task *task) {
    struct dial *dial = CONTAINER_OF(task, struct dial, fetched_task);
    CHECK_OBJ(dial, DIAL_MAGIC);
    if (dial->state != DIAL_FETCHING)
        return;
    loop_timer_after(dial->net->loop, &dial->timer, dial->timeout);
    shake_hands(dial);
}

static void dial_stop_fetching(struct dial *dial) {
    if (dial->fetched != NULL)
        intermediates_forget(dial->net->intermediates, &dial->fetched);
    task_cancel(&dial->fetched_task);
}

static void dial_tunnel_opened(struct dial *dial) {
    dial->tunnel_open = true;
    if (dial->tls == NULL) {
        dial_finish(dial, DIAL_DONE);
        return;
    }
    loop_timer_after(dial->net->loop, &dial->timer, dial->timeout);
    connection_nest(dial->connection);
    shake_hands(dial);
}

static void dial_open_tunnel(struct dial *dial) {
    if (dial->state != DIAL_TUNNEL)
        loop_timer_after(dial->net->loop, &dial->timer, dial->proxy_timeout);
    dial->state = DIAL_TUNNEL;
    switch (proxy_tunnel_continue(dial->tunnel, dial->connection)) {
    case IO_DONE:
        dial->proxy_answered = true;
        dial_tunnel_opened(dial);
        return;
    case IO_WAIT: return;
    default:
        dial->proxy_answered = proxy_tunnel_status(dial->tunnel) != 0;
        attempt_failed(dial, proxy_tunnel_error(dial->tunnel),
                       proxy_tunnel_status(dial->tunnel) == 504);
    }
}

static void dial_secured(struct dial *dial) {
    if (dial->tunnel != NULL && !dial->tunnel_open)
        dial_open_tunnel(dial);
    else
        dial_finish(dial, DIAL_DONE);
}

static void dial_handshake_failed(struct dial *dial) {
    const struct tls_stream *stream = dial->connection->tls;
    dial->unverified = stream != NULL && tls_stream_is_unverified(stream);
    attempt_failed(dial, tls_client_error(dial_tls(dial)), false);
}

static void shake_hands(struct dial *dial) {
    dial->state = DIAL_HANDSHAKE;
    dial->reached = true;
    if (dial->patience < dial->timeout)
        loop_timer_after(dial->net->loop, &dial->timer, dial->timeout);
    switch (connection_secure(dial->connection, dial_tls(dial))) {
    case IO_DONE: dial_secured(dial); return;
    case IO_WAIT: dial_fetch(dial, tls_stream_wanted(dial->connection->tls)); return;
    default: dial_handshake_failed(dial);
    }
}

static void dial_connected(struct dial *dial) {
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(dial->connection->event.fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    if (error != 0)
        attempt_failed(dial, strerrordesc_np(error), error == ETIMEDOUT);
    else if (dial_tls(dial) != NULL)
        shake_hands(dial);
    else
        dial_secured(dial);
}

static void dial_on_ready(struct connection *connection) {
    struct dial *dial;
    CAST_OBJ(dial, connection->event.owner, DIAL_MAGIC);
    if (dial->state == DIAL_CONNECTING && connection->writable)
        dial_connected(dial);
    else if (dial->state == DIAL_HANDSHAKE)
        shake_hands(dial);
    else if (dial->state == DIAL_TUNNEL)
        dial_open_tunnel(dial);
}

static void dial_on_timeout(struct timer *timer) {
    struct dial *dial = CONTAINER_OF(timer, struct dial, timer);
    CHECK_OBJ(dial, DIAL_MAGIC);
    if (dial->state == DIAL_CONNECTING)
        attempt_failed(dial, strerrordesc_np(ETIMEDOUT), true);
    else if (dial->state == DIAL_HANDSHAKE)
        attempt_failed(dial, "it did not finish the TLS handshake in time; is its port for TLS?",
                       true);
    else if (dial->state == DIAL_TUNNEL)
        attempt_failed(dial, "the parent proxy did not open the tunnel in time", true);
    else if (dial->state == DIAL_FETCHING)
        attempt_failed(dial,
                       "it did not send an intermediate certificate, which could not be fetched in "
                       "time: install the intermediate certificates on that host",
                       true);
}

/* Makes the connection come from dial->from. The system chooses the port when it knows where the
 * connection goes, so that there are enough ports. */
static bool bind_to_source(const struct dial *dial, int fd) {
    int on = 1;
    if (dial->from == NULL || dial->from->any.sa_family != dial->address.any.sa_family)
        return true;
    struct address from = *dial->from;
    address_set_port(&from, 0);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return privileges_set_foreign(fd, &from, true) && bind(fd, &from.any, from.length) == 0;
}

/* Returns a socket whose connection is under way, or -1 and errno. */
static int dial_open_socket(const struct dial *dial) {
    int on = 1;
    unsigned mark = dial->net->configured.mark;
    int fd = socket(dial->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if ((mark == 0 || privileges_set_mark(fd, mark)) && bind_to_source(dial, fd) &&
        (connect(fd, &dial->address.any, dial->address.length) == 0 || errno == EINPROGRESS))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Begins to connect. Returns 0, or an error number when that fails at once. */
static int dial_begin(struct dial *dial) {
    struct own_connections *set = dial->net->own_connections;
    int fd = dial_open_socket(dial);
    if (fd < 0)
        return errno;
    struct own_connection *own =
        dial->net->configured.transparent ? own_connections_add(set, fd, &dial->address) : NULL;
    dial->connection = connection_new(dial->net, &fd, dial_on_ready, dial);
    if (dial->connection == NULL)
        own_connections_remove(set, &own);
    else
        dial->connection->own = own;
    return dial->connection == NULL ? ENOMEM : 0;
}

/* Is the new connection allowed from the local address that the system chose? Nothing has been sent
 * on it yet. */
static bool leads_out(const struct dial *dial) {
    struct address from = {.length = sizeof from.v6};
    if (dial->reach == REACH_ANY)
        return true;
    return getsockname(dial->connection->event.fd, &from.any, &from.length) == 0 &&
           reach_allows_from(dial->net, dial->reach, &dial->address, &from);
}

static void pass_over(struct dial *dial) {
    if (dial->tried)
        return; /* the error of that address says more */
    dial->denied = true;
    dial->error = reach_error(dial->reach);
}

static void try_next(struct dial *dial) {
    while (dial->next < dial->query.result.count) {
        dial->address = dial->query.result.addresses[dial->next++];
        address_set_port(&dial->address, dial->port);
        if (!reach_allows(dial->net, dial->reach, &dial->address)) {
            pass_over(dial);
            continue;
        }
        int error = dial_begin(dial);
        if (error == 0 && !leads_out(dial)) {
            connection_close(&dial->connection);
            pass_over(dial);
            continue;
        }
        dial->tried = true;
        dial->denied = false;
        if (error == 0) {
            if (dial->tunnel != NULL)
                proxy_tunnel_restart(dial->tunnel);
            dial->state = DIAL_CONNECTING;
            loop_timer_after(dial->net->loop, &dial->timer, dial->patience);
            return;
        }
        note_unreachable(dial, strerrordesc_np(error), false);
    }
    dial_finish(dial, DIAL_FAILED);
}

static void resolved(struct dial *dial) {
    if (dial->query.result.count == 0)
        dial->error = dial->query.result.error;
    try_next(dial);
}

static void on_resolved(struct resolver_query *query) {
    struct dial *dial = CONTAINER_OF(query, struct dial, query);
    CHECK_OBJ(dial, DIAL_MAGIC);
    resolved(dial);
}

void dial_start(struct dial *dial, struct net_context *net, const struct dial_target *target,
                struct task *waker) {
    INIT_OBJ(dial, DIAL_MAGIC);
    dial->tls = target->tls;
    dial->net = net;
    dial->port = target->port;
    dial->reach = target->reach;
    dial->timeout = dial->patience = target->timeout;
    dial->from = target->from;
    dial->proxy_tls = target->proxy.tls;
    dial->proxy_timeout = target->proxy.timeout;
    if (target->proxy.head.length > 0)
        dial->tunnel = proxy_tunnel_new(target->proxy.head);
    dial->waker = waker;
    dial->error = "no address";
    dial->state = DIAL_RESOLVING;
    timer_init(&dial->timer, dial_on_timeout);
    task_init(&dial->fetched_task, dial_on_fetched);
    resolver_query_init(&dial->query);
    if (resolver_lookup(net->resolver, target->host, &dial->query, on_resolved))
        resolved(dial);
}

void dial_hurry(struct dial *dial, uint64_t patience) {
    CHECK_OBJ(dial, DIAL_MAGIC);
    if (patience >= dial->timeout)
        return;
    dial->patience = patience;
    if (dial->state == DIAL_CONNECTING)
        loop_timer_after(dial->net->loop, &dial->timer, patience);
}

struct connection *dial_take(struct dial *dial, connection_ready_fn *ready, void *owner) {
    CHECK_OBJ(dial, DIAL_MAGIC);
    ASSERT(dial->state == DIAL_DONE);
    struct connection *connection = dial->connection;
    dial->connection = NULL;
    dial->state = DIAL_IDLE;
    proxy_tunnel_free(&dial->tunnel);
    connection_set_owner(connection, ready, owner);
    return connection;
}

void dial_cancel(struct dial *dial) {
    if (dial->magic != DIAL_MAGIC)
        return;
    dial_stop_fetching(dial);
    resolver_cancel(&dial->query);
    timer_cancel(&dial->net->loop->timers, &dial->timer);
    connection_close(&dial->connection);
    proxy_tunnel_free(&dial->tunnel);
    dial->state = DIAL_IDLE;
}
