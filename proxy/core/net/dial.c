#include "net/dial.h"

#include "base/assert.h"
#include "http/head_parser.h"
#include "net/connection.h"
#include "tls/client.h"
#include "tls/verify.h"

#include <errno.h>
#include <stdio.h>

/*
 * A tunnel through another proxy: a CONNECT on a connection to that proxy (RFC 9110 §9.3.6), after
 * which the connection leads to the server. net/dial.h uses it.
 */

enum { ANSWER_MOST = 16384, TUNNEL_ERROR = 400 };

struct proxy_tunnel {
    unsigned magic;
#define PROXY_TUNNEL_MAGIC 0x940c7414u
    char *head;
    size_t length, sent; /* of the head */
    size_t received;     /* of the answer */
    unsigned status;
    char error[TUNNEL_ERROR];
    char answer[ANSWER_MOST];
};

static void proxy_tunnel_restart(struct proxy_tunnel *tunnel) {
    CHECK_OBJ(tunnel, PROXY_TUNNEL_MAGIC);
    tunnel->sent = tunnel->received = 0;
    tunnel->status = 0;
    tunnel->error[0] = '\0';
}

/* `head` is the whole CONNECT request; it is copied. */
static struct proxy_tunnel *proxy_tunnel_new(struct slice head) {
    struct proxy_tunnel *tunnel = xmalloc(sizeof *tunnel);
    tunnel->magic = PROXY_TUNNEL_MAGIC;
    tunnel->head = slice_dup(head);
    tunnel->length = head.length;
    proxy_tunnel_restart(tunnel);
    return tunnel;
}

static void proxy_tunnel_free(struct proxy_tunnel **tunnelp) {
    struct proxy_tunnel *tunnel = *tunnelp;
    *tunnelp = NULL;
    if (tunnel == NULL)
        return;
    CHECK_OBJ(tunnel, PROXY_TUNNEL_MAGIC);
    free(tunnel->head);
    FREE_OBJ(tunnel);
}

static enum io_status tunnel_fail(struct proxy_tunnel *tunnel, const char *error) {
    snprintf(tunnel->error, sizeof tunnel->error, "%s", error);
    return IO_FAILED;
}

static enum io_status tunnel_ask(struct proxy_tunnel *tunnel, struct connection *connection) {
    size_t put;
    while (tunnel->sent < tunnel->length) {
        const struct iovec rest = {tunnel->head + tunnel->sent, tunnel->length - tunnel->sent};
        switch (connection_write(connection, &rest, 1, &put)) {
        case IO_DONE: tunnel->sent += put; break;
        case IO_WAIT: return IO_WAIT;
        default: return tunnel_fail(tunnel, connection_error(connection));
        }
    }
    return IO_DONE;
}

/* Bytes behind the head of an answer that opens the tunnel would be the server's, and a TLS server
 * waits for its client to begin. */
static enum io_status tunnel_judge(struct proxy_tunnel *tunnel, const struct http_head *answer,
                                   size_t length) {
    tunnel->status = answer->status;
    if (answer->status == 407)
        return tunnel_fail(tunnel, "the parent proxy does not accept the credentials in its "
                                   "origins section, or needs some: set credentials there");
    if (answer->status < 200 || answer->status > 299)
        return tunnel_fail(tunnel, "the parent proxy did not open the tunnel");
    if (length < tunnel->received)
        return tunnel_fail(tunnel,
                           "bytes came through the parent proxy before they were asked for");
    return IO_DONE;
}

/* Interim answers (1xx) are passed over. */
static enum io_status tunnel_parse(struct proxy_tunnel *tunnel) {
    struct http_head answer;
    for (;;) {
        ssize_t length = http_head_parse_response(&answer, tunnel->answer, tunnel->received, 0);
        if (length == 0)
            return IO_WAIT;
        if (length < 0)
            return tunnel_fail(tunnel, "the parent proxy's answer is not HTTP");
        if (answer.status >= 200)
            return tunnel_judge(tunnel, &answer, (size_t)length);
        tunnel->received -= (size_t)length;
        memmove(tunnel->answer, tunnel->answer + length, tunnel->received);
    }
}

static enum io_status tunnel_hear(struct proxy_tunnel *tunnel, struct connection *connection) {
    size_t got;
    for (;;) {
        if (tunnel->received == ANSWER_MOST)
            return tunnel_fail(tunnel, "the parent proxy's answer is too large");
        switch (connection_read(connection, tunnel->answer + tunnel->received,
                                ANSWER_MOST - tunnel->received, &got)) {
        case IO_DONE: tunnel->received += got; break;
        case IO_WAIT: return IO_WAIT;
        case IO_END:
            return tunnel_fail(tunnel, "the parent proxy closed the connection without answering");
        default: return tunnel_fail(tunnel, connection_error(connection));
        }
        enum io_status status = tunnel_parse(tunnel);
        if (status != IO_WAIT || !connection->readable)
            return status;
    }
}

/* Sends the request and reads the answer. IO_DONE: the tunnel is open. IO_WAIT: call again when the
 * connection is readable or writable. */
static enum io_status proxy_tunnel_continue(struct proxy_tunnel *tunnel,
                                            struct connection *connection) {
    CHECK_OBJ(tunnel, PROXY_TUNNEL_MAGIC);
    enum io_status status = tunnel_ask(tunnel, connection);
    return status == IO_DONE ? tunnel_hear(tunnel, connection) : status;
}

/* Says why the tunnel failed. It lives as long as the tunnel. */
static const char *proxy_tunnel_error(const struct proxy_tunnel *tunnel) {
    return tunnel->error;
}

/* The status of the proxy's answer; 0: none has come. */
static unsigned proxy_tunnel_status(const struct proxy_tunnel *tunnel) {
    return tunnel->status;
}

static void shake_hands(struct dial *dial);
static void dial_stop_fetching(struct dial *dial);
static void dial_race(struct dial *dial);

static void dial_finish(struct dial *dial, enum dial_state state) {
    dial->state = state;
    timer_cancel(&dial->net->loop->timers, &dial->timer);
    loop_defer(dial->net->loop, dial->waker);
}

/* The connection to one address could not be used. */
static void attempt_failed(struct dial *dial, const char *error, bool timed_out) {
    snprintf(dial->said, sizeof dial->said, "%s", error);
    dial->error = dial->said; /* what has said it may fail again, or end, before anybody asks */
    dial->timed_out = timed_out;
    dial_stop_fetching(dial);
    connection_close(&dial->connection);
    if (dial->proxy_answered)
        dial_finish(dial, DIAL_FAILED);
    else
        dial_race(dial);
}

/* With whom the handshake is made now. */
static struct tls_client *dial_tls(const struct dial *dial) {
    return dial->tunnel != NULL && !dial->tunnel_open ? dial->proxy_tls : dial->tls;
}

/* Waits for the certificates of a URL; somebody else may be fetching them. NULL: none are needed. */
static void dial_fetch(struct dial *dial, const char *url) {
    struct net_context *net = dial->net;
    if (url == NULL)
        return;
    if (dial->fetch_until == 0)
        dial->fetch_until = net->loop->now + DIAL_FETCH_TIME;
    dial->state = DIAL_FETCHING;
    timer_set(&net->loop->timers, &dial->timer, dial->fetch_until);
    tls_pki()->fetch(net, url, &dial->fetched, &dial->fetched_task);
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
        tls_pki()->forget(&dial->fetched);
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
    attempt_failed(
        dial, stream != NULL ? tls_stream_error(stream) : tls_client_error(dial_tls(dial)), false);
}

static void shake_hands(struct dial *dial) {
    dial->state = DIAL_HANDSHAKE;
    dial->reached = true;
    switch (connection_secure(dial->connection, dial_tls(dial))) {
    case IO_DONE: dial_secured(dial); return;
    case IO_WAIT: dial_fetch(dial, tls_stream_wanted(dial->connection->tls)); return;
    default: dial_handshake_failed(dial);
    }
}

/* A new connection takes as little as this at once. */
static bool send_preface(struct dial *dial) {
    struct iovec piece = {(char *)dial->preface.base, dial->preface.length};
    size_t sent;
    return dial->preface.length == 0 ||
           (connection_write_more(dial->connection, &piece, 1, &sent) == IO_DONE &&
            sent == dial->preface.length);
}

static void dial_on_ready(struct connection *connection) {
    struct dial *dial;
    CAST_OBJ(dial, connection->event.owner, DIAL_MAGIC);
    if (dial->state == DIAL_HANDSHAKE)
        shake_hands(dial);
    else if (dial->state == DIAL_TUNNEL)
        dial_open_tunnel(dial);
}

static void dial_connected(struct dial *dial) {
    connection_set_owner(dial->connection, dial_on_ready, dial);
    if (!send_preface(dial)) {
        attempt_failed(dial, connection_error(dial->connection), false);
        return;
    }
    if (dial_tls(dial) == NULL) {
        dial_secured(dial);
        return;
    }
    loop_timer_after(dial->net->loop, &dial->timer, dial->timeout);
    shake_hands(dial);
}

/* A failure of TLS at one address says more than that another one can't be reached. */
static void dial_lost(struct dial *dial) {
    if (!dial->reached) {
        dial->error = dial->race.error;
        dial->timed_out = dial->race.timed_out;
        dial->denied = dial->race.denied;
    }
    dial->address = dial->race.address;
    dial_finish(dial, DIAL_FAILED);
}

static void on_race_end(struct connect_race *race) {
    struct dial *dial = CONTAINER_OF(race, struct dial, race);
    CHECK_OBJ(dial, DIAL_MAGIC);
    if (race->connection == NULL) {
        dial_lost(dial);
        return;
    }
    dial->connection = race->connection;
    race->connection = NULL;
    dial->address = race->address;
    dial_connected(dial);
}

/* Goes on to the addresses that were not tried yet. */
static void dial_race(struct dial *dial) {
    dial->state = DIAL_CONNECTING;
    timer_set(&dial->net->loop->timers, &dial->timer, TIMER_NEVER);
    if (dial->tunnel != NULL)
        proxy_tunnel_restart(dial->tunnel);
    connect_race_go(&dial->race);
}

static void dial_on_timeout(struct timer *timer) {
    struct dial *dial = CONTAINER_OF(timer, struct dial, timer);
    CHECK_OBJ(dial, DIAL_MAGIC);
    if (dial->state == DIAL_RESOLVING)
        dial_race(dial); /* the other family takes too long to resolve */
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

/* The name is resolved, or it is known that it can't be. */
static void dial_resolved(struct dial *dial) {
    connect_race_add(&dial->race, &dial->query.result, true);
    if (dial->state == DIAL_RESOLVING)
        dial_race(dial);
}

static void dial_on_resolved(struct resolver_query *query) {
    struct dial *dial = CONTAINER_OF(query, struct dial, query);
    CHECK_OBJ(dial, DIAL_MAGIC);
    dial_resolved(dial);
}

/* IPv6 need not wait for IPv4, but IPv4 waits a little for IPv6 (RFC 8305 §3). Where a service says the
 * order, each waits for the other. */
static void dial_on_some(struct resolver_query *query) {
    struct dial *dial = CONTAINER_OF(query, struct dial, query);
    CHECK_OBJ(dial, DIAL_MAGIC);
    connect_race_add(&dial->race, &query->result, false);
    if (dial->state != DIAL_RESOLVING)
        return;
    if (query->result.addresses[0].any.sa_family == AF_INET6 && !query->result.ordered)
        dial_race(dial);
    else
        loop_timer_after(dial->net->loop, &dial->timer, DIAL_RESOLUTION_DELAY);
}

static void start_race(struct dial *dial, const struct dial_target *target) {
    connect_race_init(&dial->race, dial->net,
                      &(struct connect_race_terms){
                          .port = target->port,
                          .egress = target->egress,
                          .permit = target->permit,
                          .permit_arg = target->permit_arg,
                          .from = target->from,
                          .patience = target->timeout,
                      },
                      on_race_end);
}

/* Only names of the configuration are beyond the bounds of reach. A server that DNS has named is not
 * the client's wish, so a client whose look-ups are too many does not make it fail. */
static void start_query(struct dial *dial, const struct dial_target *target) {
    resolver_query_init(&dial->query);
    dial->query.on_some = dial_on_some;
    dial->query.client = egress_is_found(target->egress) ? NULL : target->client;
    dial->query.configured = target->egress == EGRESS_ANY;
    dial->query.complete = egress_is_found(target->egress);
    if (resolver_lookup(dial->net->resolver, target->host, &dial->query, dial_on_resolved))
        dial_resolved(dial);
}

void dial_start(struct dial *dial, struct net_context *net, const struct dial_target *target,
                struct task *waker) {
    memset(dial, 0, offsetof(struct dial, query));
    dial->magic = DIAL_MAGIC;
    dial->tls = target->tls;
    dial->net = net;
    dial->timeout = target->timeout;
    dial->proxy_tls = target->proxy.tls;
    dial->proxy_timeout = target->proxy.timeout;
    dial->preface = target->preface;
    if (target->proxy.head.length > 0)
        dial->tunnel = proxy_tunnel_new(target->proxy.head);
    dial->waker = waker;
    dial->state = DIAL_RESOLVING;
    timer_init(&dial->timer, dial_on_timeout);
    task_init(&dial->fetched_task, dial_on_fetched);
    start_race(dial, target);
    start_query(dial, target);
}

void dial_hurry(struct dial *dial, uint64_t patience) {
    CHECK_OBJ(dial, DIAL_MAGIC);
    if (patience < dial->timeout)
        connect_race_set_patience(&dial->race, patience);
}

struct connection *dial_take(struct dial *dial, connection_ready_fn *ready, void *owner) {
    CHECK_OBJ(dial, DIAL_MAGIC);
    ASSERT(dial->state == DIAL_DONE);
    struct connection *connection = dial->connection;
    dial->connection = NULL;
    dial->state = DIAL_IDLE;
    connect_race_stop(&dial->race);
    proxy_tunnel_free(&dial->tunnel);
    connection_note_remote(connection, &dial->address);
    connection_set_owner(connection, ready, owner);
    return connection;
}

void dial_cancel(struct dial *dial) {
    if (dial->magic != DIAL_MAGIC)
        return;
    dial_stop_fetching(dial);
    resolver_cancel(&dial->query);
    connect_race_stop(&dial->race);
    timer_cancel(&dial->net->loop->timers, &dial->timer);
    connection_close(&dial->connection);
    proxy_tunnel_free(&dial->tunnel);
    dial->state = DIAL_IDLE;
}
