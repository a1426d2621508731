#include "worker_internal.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/reserve.h"
#include "base/scheduling.h"
#include "cache/vouching.h"
#include "client/handshake.h"
#include "client/http1/http1.h"
#include "configured_names.h"
#include "net/egress.h"
#include "net/listener.h"
#include "net/memory_share.h"
#include "net/resolver.h"
#include "origin/http1/http1.h"
#include "origin/lookup.h"
#include "origin/security.h"
#include "tls/server.h"
#include "transaction/transaction.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* In milliseconds. */
enum { COMPLAINT_PAUSE = 60000, A_DAY = 24 * 60 * 60 * 1000, FORSAKE_PAUSE = 20 };

/* What speaks with clients: only this file knows which protocols there are. */
struct worker_protocols {
    struct http1_host http1;
};

/* For headers of the PROXY protocol: the address of a connection to a listener that has all
 * addresses of the machine. The kernel knows better for a transparent listener. */
static bool find_destination(const struct client_accepted *accepted,
                             const struct listen_settings *listen, struct address *destination) {
    destination->length = sizeof destination->v6;
    if (accepted->destination != NULL || listen == NULL || listen->mode == LISTEN_TRANSPARENT ||
        getsockname(accepted->fd, &destination->any, &destination->length) != 0)
        return false;
    address_unmap(destination);
    return true;
}

/* The settings have no such listeners without a part that serves them. */
static void accept_redirected(struct clients *clients, const struct client_accepted *accepted) {
    PARTS_FOR_EACH (number, worker.accept_redirected)
        part_table[number]->worker.accept_redirected(clients, accepted);
}

static void accept_announced(struct clients *clients, const struct client_accepted *accepted,
                             const struct listen_settings *listen) {
    PARTS_FOR_EACH (number, proxy_protocol.accept)
        part_table[number]->proxy_protocol.accept(clients, accepted, listen);
}

/* The client is known now, also where a load balancer had to name it. `listen` may be NULL. */
static void worker_take(struct worker *worker, const struct client_accepted *accepted,
                        const struct listen_settings *listen) {
    struct clients *clients = &worker->clients;
    struct client_accepted meant;
    struct address destination;
    if (worker->settings->sends_proxy_headers && find_destination(accepted, listen, &destination)) {
        meant = *accepted;
        meant.destination = &destination;
        accepted = &meant;
    }
    struct tls_server *server = listen_set_server(clients->listen_set, listen);
    if (listen != NULL && listen->mode == LISTEN_TRANSPARENT)
        accept_redirected(clients, accepted);
    else if (server != NULL)
        handshake_accept(clients, accepted, server);
    else
        http1_accept(&worker->protocols->http1, accepted);
}

static void on_accept(struct listener *listener, int fd, const struct address *client, void *arg) {
    struct worker *worker;
    CAST_OBJ(worker, arg, WORKER_MAGIC);
    if (clients_lack_memory(&worker->clients)) {
        close(fd);
        return;
    }
    if (!client_total_add(worker->clients.total, worker->settings->client.max_connections)) {
        worker->net.counters.client_connections_rejected++;
        close(fd);
        return;
    }
    struct clients *clients = &worker->clients;
    const struct client_accepted accepted = {
        .fd = fd,
        .client = client,
        .listener = listener_address(listener),
    };
    const struct listen_settings *listen = listen_set_find(clients->listen_set, accepted.listener);
    if (listen != NULL && listen->proxy_network_count > 0)
        accept_announced(clients, &accepted, listen);
    else
        worker_take(worker, &accepted, listen);
}

static void worker_accept(struct clients *clients, const struct client_accepted *accepted) {
    struct worker *worker;
    CAST_OBJ(worker, clients->arg, WORKER_MAGIC);
    worker_take(worker, accepted, listen_set_find(clients->listen_set, accepted->listener));
}

static void worker_on_request(struct exchange *exchange, void *arg) {
    struct worker *worker;
    CAST_OBJ(worker, arg, WORKER_MAGIC);
    transaction_start(&worker->host, exchange);
}

static void worker_adopt(struct clients *clients, const struct client_arrival *arrival) {
    struct worker *worker;
    CAST_OBJ(worker, clients->arg, WORKER_MAGIC);
    const struct tls_facts *tls = connection_tls_facts(*arrival->connection);
    const char *protocol = arrival->http2 ? "h2" : tls != NULL ? tls->protocol : NULL;
    enum part_number part = protocol != NULL ? part_of_protocol(protocol) : PART_CORE;
    if (part != PART_CORE)
        part_table[part]->protocol.adopt(worker->host.parts[part], arrival);
    else
        http1_adopt(&worker->protocols->http1, arrival);
}

static void stop_if_drained(struct worker *worker) {
    if (worker->draining && worker->clients.connection_count == 0 &&
        list_empty(&worker->host.active))
        worker->stopped = true;
}

static void on_drain_timeout(struct timer *timer) {
    struct worker *worker = CONTAINER_OF(timer, struct worker, drain_timer);
    CHECK_OBJ(worker, WORKER_MAGIC);
    log_warn("worker %u: %u client connections are still busy after drain_timeout and are cut",
             worker->index, worker->clients.connection_count);
    worker->stopped = true;
}

static void on_retired(struct timer *timer) {
    struct worker *worker = CONTAINER_OF(timer, struct worker, retire_timer);
    CHECK_OBJ(worker, WORKER_MAGIC);
    clients_drain(&worker->clients);
}

/* Certificates that expire soon are warned of when they are loaded, and each day after that. */
static void on_day_over(struct timer *timer) {
    struct worker *worker = CONTAINER_OF(timer, struct worker, certificate_timer);
    CHECK_OBJ(worker, WORKER_MAGIC);
    const struct settings *settings = worker->settings;
    for (size_t i = 0; i < settings->listen_count; i++)
        if (settings->listens[i].tls.set != NULL)
            certificate_set_warn(settings->listens[i].tls.set);
    loop_timer_after(&worker->loop, &worker->certificate_timer, A_DAY);
}

/* The listeners of a worker: usually one for each address, more after a takeover from a process that
 * had more workers. */
struct listener_list {
    struct listener **all;
    size_t count;
};

static void listener_list_add(struct listener_list *list, struct listener *listener) {
    list->all = xrealloc(list->all, (list->count + 1) * sizeof *list->all);
    list->all[list->count++] = listener;
}

static void close_listeners(struct worker *worker) {
    for (size_t i = 0; i < worker->listener_count; i++)
        listener_close(&worker->listeners[i]);
    free(worker->listeners);
    worker->listeners = NULL;
    worker->listener_count = 0;
}

/* Moves the worker's listeners at the address into the list. */
static void keep_listeners(struct worker *worker, const struct address *address,
                           struct listener_list *list) {
    for (size_t i = 0; i < worker->listener_count; i++) {
        if (worker->listeners[i] == NULL ||
            !address_equal(listener_address(worker->listeners[i]), address))
            continue;
        listener_list_add(list, worker->listeners[i]);
        worker->listeners[i] = NULL;
    }
}

/* Opens listeners with the sockets that are claimed for this worker, or one with a new socket. */
static bool add_listeners(struct worker *worker, const struct address *address,
                          struct claims *claims, size_t at, struct listener_list *list,
                          char reason[LISTENER_ERROR]) {
    int claimed = claims_take(claims, at, worker->index);
    do {
        struct listener *listener =
            listener_open(&worker->net, address, claimed, on_accept, worker, reason);
        if (listener == NULL)
            return false;
        listener_list_add(list, listener);
        claimed = claimed < 0 ? -1 : claims_take(claims, at, worker->index);
    } while (claimed >= 0);
    return true;
}

/* Keeps the listeners that the new settings still contain, opens new ones and closes the others. */
static bool open_listeners(struct worker *worker, const struct settings *settings,
                           struct claims *claims, char error[SETTINGS_ERROR]) {
    struct listener_list list = {0};
    char reason[LISTENER_ERROR];
    bool good = true;
    for (size_t i = 0; i < settings->listen_count; i++) {
        const struct address *address = &settings->listens[i].address;
        size_t first = list.count;
        keep_listeners(worker, address, &list);
        bool opened =
            list.count > first || add_listeners(worker, address, claims, i, &list, reason);
        for (size_t j = first; opened && j < list.count; j++)
            opened = listener_take_foreign(list.all[j], settings_take_foreign(settings, i), reason);
        if (opened)
            continue;
        snprintf(error, SETTINGS_ERROR, "%s", reason);
        good = false;
    }
    close_listeners(worker);
    worker->listeners = list.all;
    worker->listener_count = list.count;
    return good;
}

static void on_other_members(void *arg, struct origin_group *group) {
    struct worker *worker;
    CAST_OBJ(worker, arg, WORKER_MAGIC);
    PARTS_FOR_EACH (number, worker.members_changed)
        part_table[number]->worker.members_changed(&worker->host, group);
}

/* One worker asks for the SRV records of groups for all. */
static void start_lookups(struct worker *worker, struct origin_groups *origins) {
    origin_lookups_free(&worker->lookups);
    if (worker->index == 0 && !worker->draining)
        worker->lookups = origin_lookups_new(&worker->net, origins, on_other_members, worker);
}

static void start_transactions(struct worker *worker, const struct worker_shared *shared) {
    struct transaction_host *host = &worker->host;
    host->net = &worker->net;
    host->mailbox = &worker->mailbox;
    host->cache = shared->cache;
    host->second_level = shared->second_level;
    host->shared_fetches = shared->shared_fetches;
    host->vouching = &vouching_always;
    host->origin_hosts = shared->origin_hosts;
    host->clients = &worker->clients;
    host->client_total = shared->clients;
    transaction_host_init(host);
    enum part_number sharing = part_of_protocol("h2");
    host->origins =
        origin_pool_new(&worker->net, &origin_http1_class,
                        sharing != PART_CORE ? part_table[sharing]->protocol.origin : NULL);
    origin_pool_set_limit(host->origins, worker->settings->origin.max_idle_total);
    host->origin_securities = origin_securities_new(&worker->net);
    host->logs = access_logs_open(&worker->net, worker->settings);
    list_init(&host->active);
    if (getrandom(&host->id_prefix, sizeof host->id_prefix, 0) < 0)
        host->id_prefix = (uint64_t)getpid() << 32;
    host->index = worker->index;
    host->snapshot = snapshot_new(host, worker->settings, shared->origins);
    PARTS_FOR_EACH (number, worker.join)
        part_table[number]->worker.join(host, shared->parts[number]);
    transaction_host_watch(host);
}

static bool has_srv(const struct origins_settings *origins) {
    for (size_t i = 0; i < origins->server_count; i++)
        if (origins->servers[i].srv)
            return true;
    return false;
}

/* Does somebody other than the operator say where requests go: clients of some listener, or DNS? */
static bool names_come_from_others(const struct settings *settings) {
    for (size_t i = 0; i < settings->listen_count; i++)
        if (settings->listens[i].mode != LISTEN_REVERSE)
            return true;
    for (size_t i = 0; i < settings->origins_group_count; i++)
        if (has_srv(&settings->origins_groups[i]))
            return true;
    return false;
}

/* Those of the listeners, and of the sockets that parts have opened at the start. The caller frees them. */
static struct address *own_addresses(const struct settings *settings, size_t *count) {
    const struct settings *start = settings->start != NULL ? settings->start : settings;
    struct address *addresses = xcalloc(settings->listen_count + PART_COUNT, sizeof *addresses);
    *count = settings->listen_count;
    for (size_t i = 0; i < settings->listen_count; i++)
        addresses[i] = settings->listens[i].address;
    PARTS_FOR_EACH (number, socket.address) {
        const struct address *address = part_table[number]->socket.address(start);
        if (address != NULL)
            addresses[(*count)++] = *address;
    }
    return addresses;
}

static void configure_net(struct worker *worker) {
    const struct settings *settings = worker->settings;
    size_t count;
    struct address *listens = own_addresses(settings, &count);
    net_context_configure(&worker->net,
                          &(struct net_configuration){
                              .memory = settings->client.memory,
                              .listens = listens,
                              .listen_count = count,
                              .transparent = settings_are_transparent(settings),
                              .mark = settings->sockets.mark,
                              .attempt_delay = settings->origin.attempt_delay,
                              .dns_ipv6 = settings->origin.dns_ipv6,
                              .dns_timeout = settings->origin.dns_timeout,
                              .dns_tries = settings->origin.dns_tries,
                              .dns_ttl_max = settings->origin.dns_ttl_max,
                              .dns_negative_ttl_max = settings->origin.dns_negative_ttl_max,
                              .dns_stale = settings->origin.dns_stale,
                              .dns_names = settings->origin.dns_names,
                              .dns_client_lookups = settings->origin.dns_client_lookups,
                              .dns_search_clients = settings->origin.dns_search_clients,
                              .dns_servers = settings->origin.dns_servers,
                              .dns_search = settings->origin.dns_search,
                              .hosts_file = settings->origin.hosts_file,
                          });
    free(listens);
}

static bool worker_prepare(struct worker *worker, const struct worker_shared *shared,
                           struct claims *claims, char error[SETTINGS_ERROR]) {
    if (!loop_init(&worker->loop) || !mailbox_init(&worker->mailbox, &worker->loop)) {
        snprintf(error, SETTINGS_ERROR, "cannot create an event loop: %s", strerror(errno));
        return false;
    }
    net_context_init(&worker->net, &worker->loop);
    worker->net.settings = worker->settings;
    worker->net.mailbox = &worker->mailbox;
    worker->net.share = memory_shares_of(shared->memory, worker->index);
    configure_net(worker);
    worker->net.resolver = resolver_new(&worker->net);
    if (worker->net.resolver != NULL)
        configured_names_keep(worker->net.resolver, worker->settings);
    clients_init(&worker->clients, &worker->net, &worker->mailbox, shared->clients,
                 worker_on_request, worker);
    worker->clients.adopt = worker_adopt;
    worker->clients.accept = worker_accept;
    http1_host_init(&worker->protocols->http1, &worker->clients);
    timer_init(&worker->drain_timer, on_drain_timeout);
    timer_init(&worker->retire_timer, on_retired);
    timer_init(&worker->certificate_timer, on_day_over);
    if (worker->index == 0)
        loop_timer_after(&worker->loop, &worker->certificate_timer, A_DAY);
    start_transactions(worker, shared);
    if (worker->net.resolver == NULL) {
        snprintf(error, SETTINGS_ERROR, "cannot start the resolver");
        return false;
    }
    if (!egress_prepare(&worker->net) && names_come_from_others(worker->settings)) {
        snprintf(error, SETTINGS_ERROR,
                 "cannot read the machine's own addresses, which listen.local_destinations "
                 "protects: %s; in a sandbox, allow AF_NETLINK sockets",
                 strerror(errno));
        return false;
    }
    start_lookups(worker, shared->origins);
    return open_listeners(worker, worker->settings, claims, error);
}

struct worker *worker_new(struct settings *settings, const struct worker_shared *shared,
                          unsigned index, struct claims *claims, char error[SETTINGS_ERROR]) {
    struct worker *worker;
    ALLOC_OBJ(worker, WORKER_MAGIC);
    worker->index = index;
    worker->protocols = xcalloc(1, sizeof *worker->protocols);
    worker->settings = settings_use(settings);
    if (worker_prepare(worker, shared, claims, error))
        return worker;
    worker_join(&worker);
    return NULL;
}

/* Runs in the worker's own thread, when its loop has ended. */
static void cut_everything(struct worker *worker) {
    origin_lookups_free(&worker->lookups);
    PARTS_FOR_EACH (number, worker.cut)
        part_table[number]->worker.cut(&worker->host);
    transaction_abort_all(&worker->host);
    clients_abort(&worker->clients);
}

static void note_exhaustion(struct worker *worker) {
    uint64_t now = worker->loop.now;
    reserve_refill();
    if (now < worker->complains_again)
        return;
    worker->complains_again = now + COMPLAINT_PAUSE;
    log_warn("memory is exhausted: stored responses are removed, and requests may be refused "
             "(retort_memory_refused_total counts them): lower cache.memory, or give the process "
             "more memory");
}

static void worker_main(void *arg) {
    struct worker *worker;
    CAST_OBJ(worker, arg, WORKER_MAGIC);
    scheduling_take_short_slices();
    while (!worker->stopped) {
        loop_run_once(&worker->loop);
        net_context_tell_memory(&worker->net);
        if (reserve_take_notice())
            note_exhaustion(worker);
        stop_if_drained(worker);
    }
    cut_everything(worker);
}

struct transaction_host *worker_host(struct worker *worker) {
    return &worker->host;
}

bool worker_start(struct worker *worker) {
    CHECK_OBJ(worker, WORKER_MAGIC);
    return thread_start(&worker->thread, worker_main, worker, "rt-worker-%u", worker->index);
}

bool worker_wait(struct worker *worker, unsigned milliseconds) {
    CHECK_OBJ(worker, WORKER_MAGIC);
    return thread_join_within(&worker->thread, milliseconds);
}

bool worker_is_held(struct worker *worker, uint64_t *milliseconds, char reason[WORKER_REASON]) {
    PARTS_FOR_EACH (number, worker.is_held)
        if (part_table[number]->worker.is_held(&worker->host, milliseconds, reason))
            return true;
    return false;
}

bool worker_explain(struct worker *worker, char reason[WORKER_REASON]) {
    uint64_t milliseconds;
    CHECK_OBJ(worker, WORKER_MAGIC);
    return worker_is_held(worker, &milliseconds, reason);
}

bool worker_forsake(struct worker *worker, unsigned milliseconds, char reason[WORKER_REASON]) {
    char later[WORKER_REASON];
    uint64_t held;
    CHECK_OBJ(worker, WORKER_MAGIC);
    if (!worker_is_held(worker, &held, reason) || held < milliseconds)
        return false;
    PARTS_FOR_EACH (number, worker.forsake)
        part_table[number]->worker.forsake(&worker->host);
    return !worker_wait(worker, FORSAKE_PAUSE) && worker_is_held(worker, &held, later);
}

void worker_flush_logs(struct worker *worker) {
    CHECK_OBJ(worker, WORKER_MAGIC);
    access_logs_flush(worker->host.logs);
}

void worker_join(struct worker **workerp) {
    struct worker *worker = *workerp;
    *workerp = NULL;
    if (worker == NULL)
        return;
    CHECK_OBJ(worker, WORKER_MAGIC);
    thread_join(&worker->thread);
    close_listeners(worker);
    if (worker->mailbox.loop != NULL) /* else it could not be made */
        mailbox_release(&worker->mailbox);
    access_logs_close(&worker->host.logs);
    origin_lookups_free(&worker->lookups);
    origin_pool_free(&worker->host.origins);
    origin_securities_free(&worker->host.origin_securities);
    snapshot_release(&worker->host.snapshot);
    transaction_host_release(&worker->host);
    http1_host_release(&worker->protocols->http1);
    PARTS_FOR_EACH_BACK (number, worker.leave)
        part_table[number]->worker.leave(&worker->host);
    free(worker->protocols);
    clients_release(&worker->clients);
    resolver_free(&worker->net.resolver);
    egress_release(&worker->net);
    timer_cancel(&worker->loop.timers, &worker->drain_timer);
    timer_cancel(&worker->loop.timers, &worker->retire_timer);
    timer_cancel(&worker->loop.timers, &worker->certificate_timer);
    net_context_release(&worker->net);
    loop_release(&worker->loop);
    settings_end_use(&worker->settings);
    FREE_OBJ(worker);
}

/* New settings, and its end. */

/* The new ones first, so that a target which both use goes on. */
void worker_open_logs_again(struct worker *worker) {
    struct access_logs *old = worker->host.logs;
    access_logs_flush(old);
    worker->host.logs = access_logs_open(&worker->net, worker->settings);
    access_logs_close(&old);
}

/* The new one first, so that what goes on in it is not ended. */
static void worker_take_snapshot(struct worker *worker, struct origin_groups *origins) {
    struct snapshot *before = worker->host.snapshot;
    worker->host.snapshot = snapshot_new(&worker->host, worker->settings, origins);
    snapshot_release(&before);
}

/* What the worker does for no client. */
static void end_own_work(struct worker *worker) {
    origin_lookups_free(&worker->lookups);
    PARTS_FOR_EACH (number, worker.drain)
        part_table[number]->worker.drain(&worker->host);
}

void worker_take_settings(struct worker *worker, const struct worker_news *news) {
    char error[SETTINGS_ERROR];
    struct settings *old = worker->settings;
    worker->settings = news->settings;
    worker->net.settings = news->settings;
    configure_net(worker);
    resolver_settings_changed(worker->net.resolver);
    configured_names_keep(worker->net.resolver, worker->settings);
    clients_settings_changed(&worker->clients);
    if (!worker->draining && !open_listeners(worker, worker->settings, news->claims, error))
        log_error("worker %u: %s", worker->index, error);
    worker_take_snapshot(worker, news->origins);
    transaction_host_watch(&worker->host);
    start_lookups(worker, news->origins);
    origin_securities_retire(worker->host.origin_securities, worker->settings);
    origin_pool_set_limit(worker->host.origins, worker->settings->origin.max_idle_total);
    worker_open_logs_again(worker);
    PARTS_FOR_EACH (number, worker.change)
        part_table[number]->worker.change(&worker->host);
    if (worker->draining)
        end_own_work(worker);
    /* Transactions under way hold the old settings through their snapshot. All others use the new
     * settings. */
    settings_end_use(&old);
}

void worker_begin_drain(struct worker *worker) {
    worker->draining = true;
    close_listeners(worker);
    end_own_work(worker);
    origin_pool_close_idle(worker->host.origins);
    loop_timer_after(&worker->loop, &worker->drain_timer, worker->settings->drain_timeout);
}
