#include "icap/look.h"

#include "base/assert.h"
#include "icap/call.h"
#include "icap/host_check.h"
#include "icap/probe.h"

enum { LOOKS = 6, LOOK_LEAST = 50, LOOK_MOST = 500 };

/* A check of a host that is under way. */
struct look_check {
    unsigned magic;
#define LOOK_CHECK_MAGIC 0x1ca910c4u
    struct list_link link;
    struct icap_endpoint *endpoint;
    struct icap_host *host;
    struct host_check check;
    struct task task;
};

static void on_look(struct timer *timer);

void icap_look_init(struct icap_look *look) {
    timer_init(&look->timer, on_look);
    list_init(&look->calls);
    list_init(&look->checks);
}

static void look_check_free(struct look_check *check) {
    list_remove(&check->link);
    host_check_stop(&check->check);
    task_cancel(&check->task);
    icap_host_release(&check->host);
    FREE_OBJ(check);
}

void icap_look_end(struct icap_look *look, struct loop *loop) {
    struct list_link *link;
    ASSERT(list_empty(&look->calls));
    timer_cancel(&loop->timers, &look->timer);
    while ((link = list_first(&look->checks)) != NULL) {
        struct look_check *check = CONTAINER_OF(link, struct look_check, link);
        icap_host_unclaim(check->host, true);
        look_check_free(check);
    }
    for (unsigned i = 0; i < ICAP_LOOK_HOSTS; i++)
        icap_host_release(&look->hosts[i].host);
}

static uint64_t connect_timeout_of(const struct icap_endpoint *endpoint) {
    return endpoint->service->base.settings->connect_timeout;
}

static uint64_t look_pause(const struct icap_endpoint *endpoint) {
    uint64_t pause = connect_timeout_of(endpoint) / LOOKS;
    return pause < LOOK_LEAST ? LOOK_LEAST : pause > LOOK_MOST ? LOOK_MOST : pause;
}

void icap_look_go_on(struct icap_endpoint *endpoint) {
    if (endpoint->look.going)
        return;
    endpoint->look.going = true;
    loop_timer_after(endpoint->service->net->loop, &endpoint->look.timer, look_pause(endpoint));
}

void icap_look_add(struct icap_endpoint *endpoint, struct list_link *call) {
    list_append(&endpoint->look.calls, call);
    icap_look_go_on(endpoint);
}

void icap_look_soon(struct icap_endpoint *endpoint) {
    if (!list_empty(&endpoint->look.calls))
        loop_timer_after(endpoint->service->net->loop, &endpoint->look.timer, 0);
}

/* What is heard of hosts. */

static bool checks_hosts(const struct icap_endpoint *endpoint) {
    return connect_timeout_of(endpoint) <= ICAP_LOOK_CHECK_MOST;
}

/* A name may have more addresses than there are slots: they are taken in turn then. */
static struct icap_look_host *look_host(struct icap_look *look, const struct address *address) {
    for (unsigned i = 0; i < ICAP_LOOK_HOSTS; i++)
        if (look->hosts[i].host != NULL &&
            address_equal(icap_host_address(look->hosts[i].host), address))
            return &look->hosts[i];
    struct icap_look_host *slot = &look->hosts[look->next_slot++ % ICAP_LOOK_HOSTS];
    icap_host_release(&slot->host);
    *slot = (struct icap_look_host){.host = icap_host_get(address)};
    return slot;
}

/* True: its host is lost since then. */
static bool note_waiting(struct icap_endpoint *endpoint, const struct connection *connection,
                         uint64_t heard_at, bool doubted) {
    if ((!checks_hosts(endpoint) && !doubted) || connection->remote == NULL)
        return false;
    struct icap_look_host *slot = look_host(&endpoint->look, connection->remote);
    slot->awaited = true;
    icap_host_heard(slot->host, heard_at);
    if (doubted) {
        slot->doubted = true;
        icap_host_doubt(slot->host, ICAP_LOOK_QUIET, endpoint->service->net->loop->now);
    }
    return icap_host_is_lost(slot->host, heard_at);
}

bool icap_look_finds_lost(struct icap_endpoint *endpoint, const struct connection *connection,
                          uint64_t heard_at, unsigned *doubts) {
    uint64_t now = endpoint->service->net->loop->now, silent = now - heard_at;
    bool lost = icap_endpoint_is_lost(endpoint);
    struct connection_signs signs = {.heard = silent};
    if (lost || silent >= look_pause(endpoint))
        signs = connection_signs(connection);
    if (signs.unanswered == 0)
        *doubts = 0;
    else
        *doubts += endpoint->look.counts;
    uint64_t heard = signs.heard < silent ? signs.heard : silent;
    if (silent > signs.unanswered)
        silent = signs.unanswered;
    bool doubted = *doubts > 0 && (lost || silent >= connect_timeout_of(endpoint));
    return note_waiting(endpoint, connection, now - heard, doubted && !lost) ||
           (doubted && *doubts > 1 && (lost || signs.asked >= CONNECTION_SIGNS_ASKED));
}

/* Connections that nobody waits for, idle ones too, say as much of their host as others. */
static void note_connection(struct connection *connection, void *arg) {
    struct look_check *check;
    CAST_OBJ(check, arg, LOOK_CHECK_MAGIC);
    if (connection->remote != NULL &&
        address_equal(connection->remote, icap_host_address(check->host)))
        icap_host_heard(check->host,
                        connection->net->loop->now - connection_signs(connection).heard);
}

static void note_connections(struct look_check *check) {
    struct icap_endpoint *endpoint = check->endpoint;
    pool_visit(endpoint->pool, icap_endpoint_key(endpoint), note_connection, check);
    LIST_FOR_EACH (link, &endpoint->look.calls) {
        struct icap_call *call = CONTAINER_OF(link, struct icap_call, link);
        if (call->connection != NULL)
            note_connection(call->connection, check);
    }
}

/* Checks of hosts. */

static void on_checked(struct task *task) {
    struct look_check *check = CONTAINER_OF(task, struct look_check, task);
    CHECK_OBJ(check, LOOK_CHECK_MAGIC);
    struct icap_endpoint *endpoint = check->endpoint;
    struct counters *counters = &endpoint->service->net->counters;
    switch (check->check.state) {
    case HOST_CHECK_ANSWERED: icap_host_answered(check->host); break;
    case HOST_CHECK_UNANSWERED:
        counters->icap_host_checks_unanswered++;
        note_connections(check);
        if (icap_host_unanswered(check->host))
            icap_look_soon(endpoint);
        break;
    default: icap_host_unclaim(check->host, false);
    }
    look_check_free(check);
}

static uint64_t check_patience(const struct icap_endpoint *endpoint, bool doubted) {
    uint64_t patience = connect_timeout_of(endpoint) / (doubted ? 3 : 1);
    uint64_t least = doubted ? ICAP_LOOK_DOUBT_LEAST : ICAP_LOOK_CHECK_LEAST;
    return patience < least ? least : patience;
}

/* The connections that wait have been silent for long; the others may not have been. */
static void check_host(struct icap_endpoint *endpoint, struct icap_host *host, bool doubted) {
    struct net_context *net = endpoint->service->net;
    struct look_check *check;
    ALLOC_OBJ(check, LOOK_CHECK_MAGIC);
    check->endpoint = endpoint;
    check->host = icap_host_reference(host);
    task_init(&check->task, on_checked);
    list_append(&endpoint->look.checks, &check->link);
    note_connections(check);
    if (!icap_host_claim(host, ICAP_LOOK_QUIET, net->loop->now)) {
        look_check_free(check);
        return;
    }
    net->counters.icap_host_checks++;
    host_check_start(&check->check, net, icap_host_address(host), check_patience(endpoint, doubted),
                     &check->task);
}

/* Returns when the next check is due. */
static uint64_t check_hosts(struct icap_endpoint *endpoint) {
    uint64_t now = endpoint->service->net->loop->now, next = TIMER_NEVER;
    for (unsigned i = 0; i < ICAP_LOOK_HOSTS; i++) {
        struct icap_look_host *slot = &endpoint->look.hosts[i];
        if (!slot->awaited)
            continue;
        bool doubted = slot->doubted;
        slot->awaited = slot->doubted = false;
        if (icap_host_due(slot->host, ICAP_LOOK_QUIET) <= now)
            check_host(endpoint, slot->host, doubted);
        uint64_t due = icap_host_due(slot->host, ICAP_LOOK_QUIET);
        next = due < next ? due : next;
    }
    return next;
}

static void look_at_calls(struct icap_look *look) {
    struct list_link looked_at;
    struct list_link *link;
    list_init(&looked_at);
    while ((link = list_first(&look->calls)) != NULL) {
        list_remove(link);
        list_append(&looked_at, link);
        icap_call_look(CONTAINER_OF(link, struct icap_call, link));
    }
    list_splice(&look->calls, &looked_at);
}

/* Between two looks that find a packet without an answer there is time for the answer. */
static void note_look(struct icap_look *look, uint64_t now) {
    look->counts = now - look->counted_at >= LOOK_LEAST;
    if (look->counts)
        look->counted_at = now;
}

static void on_look(struct timer *timer) {
    struct icap_endpoint *endpoint = CONTAINER_OF(timer, struct icap_endpoint, look.timer);
    CHECK_OBJ(endpoint, ICAP_ENDPOINT_MAGIC);
    struct loop *loop = endpoint->service->net->loop;
    endpoint->look.going = false;
    note_look(&endpoint->look, loop->now);
    if (endpoint->probe != NULL)
        icap_probe_look(endpoint->probe);
    look_at_calls(&endpoint->look);
    uint64_t next = check_hosts(endpoint);
    if (endpoint->busy == 0 && endpoint->probe == NULL)
        return;
    icap_look_go_on(endpoint);
    if (next < loop->now + look_pause(endpoint))
        timer_set(&loop->timers, &endpoint->look.timer, next);
}
