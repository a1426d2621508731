#include "origin/connections.h"

#include "base/assert.h"
#include "net/secret_hash.h"
#include "origin/call.h"

struct origin_connections *origin_connections_new(struct net_context *net,
                                                  const struct origin_call_class *http1,
                                                  const struct origin_call_class *http2) {
    struct origin_connections *connections;
    ALLOC_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    connections->net = net;
    connections->http1 = http1;
    connections->http2 = http2;
    connections->pool = pool_new(net, &net->counters.origin_connections_idle);
    list_init(&connections->unused);
    connections->http2_worker = http2->open_worker(net);
    return connections;
}

void origin_connections_set_limit(struct origin_connections *connections, unsigned limit) {
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    pool_set_limit(connections->pool, limit);
}

const struct origin_call_class *
origin_connections_class(const struct origin_connections *connections,
                         const struct connection *connection, enum origin_protocols protocols) {
    bool speaks =
        protocols == ORIGIN_HTTP2 || (protocols == ORIGIN_AGREED && connection->tls != NULL &&
                                      tls_stream_speaks(connection->tls, SLICE("h2")));
    return speaks ? connections->http2 : connections->http1;
}

void origin_connections_give(struct origin_connections *connections, struct slice key,
                             enum origin_protocols protocols, struct connection **connectionp,
                             uint64_t idle_timeout, unsigned max_idle) {
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    const struct origin_call_class *class =
        origin_connections_class(connections, *connectionp, protocols);
    struct origin_site *site = origin_site_take(connections, key);
    site->known = true;
    site->shares = class == connections->http2;
    if (site->shares)
        class->keep(site, connectionp);
    else
        pool_give(connections->pool, key, connectionp, idle_timeout, max_idle);
    origin_site_wake(site);
    origin_site_leave(&site);
}

/* Sites */

static struct origin_site **site_at(struct origin_connections *connections, struct slice key,
                                    uint32_t hash) {
    struct origin_site **at = &connections->sites[hash % ORIGIN_SITE_BUCKETS];
    while (*at != NULL && !((*at)->hash == hash && slice_equal((*at)->key, key)))
        at = &(*at)->next;
    return at;
}

static void site_forget(struct origin_site *site) {
    struct origin_connections *connections = site->connections;
    struct origin_site **at = site_at(connections, site->key, site->hash);
    ASSERT(*at == site && site->users == 0);
    *at = site->next;
    list_remove(&site->link);
    connections->unused_count--;
    task_cancel(&site->task);
    FREE_OBJ(site);
}

static void site_forget_oldest(struct origin_connections *connections) {
    site_forget(CONTAINER_OF(list_first(&connections->unused), struct origin_site, link));
}

static void site_on_task(struct task *task) {
    struct origin_site *site = CONTAINER_OF(task, struct origin_site, task);
    CHECK_OBJ(site, ORIGIN_SITE_MAGIC);
    origin_call_let_try(site);
}

static struct origin_site *site_make(struct origin_connections *connections, struct slice key,
                                     uint32_t hash) {
    struct origin_site *site = xcalloc(1, sizeof *site + key.length);
    site->magic = ORIGIN_SITE_MAGIC;
    site->connections = connections;
    site->hash = hash;
    memcpy(site->bytes, key.base, key.length);
    site->key = slice_make(site->bytes, key.length);
    list_init(&site->link);
    list_init(&site->carriers);
    list_init(&site->waiting);
    task_init(&site->task, site_on_task);
    return site;
}

struct origin_site *origin_site_take(struct origin_connections *connections, struct slice key) {
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    uint32_t hash = (uint32_t)secret_hash(key);
    struct origin_site **at = site_at(connections, key, hash);
    if (*at == NULL) {
        *at = site_make(connections, key, hash);
    } else if ((*at)->users == 0) {
        list_remove(&(*at)->link);
        connections->unused_count--;
    }
    (*at)->users++;
    return *at;
}

void origin_site_leave(struct origin_site **sitep) {
    struct origin_site *site = *sitep;
    *sitep = NULL;
    if (site == NULL)
        return;
    CHECK_OBJ(site, ORIGIN_SITE_MAGIC);
    if (--site->users > 0)
        return;
    struct origin_connections *connections = site->connections;
    list_append(&connections->unused, &site->link);
    if (++connections->unused_count > ORIGIN_SITES_KEPT)
        site_forget_oldest(connections);
}

void origin_site_wake(struct origin_site *site) {
    CHECK_OBJ(site, ORIGIN_SITE_MAGIC);
    if (!list_empty(&site->waiting))
        loop_defer(site->connections->net->loop, &site->task);
}

/* Idle connections that calls share, or all of them. */
static void close_carriers(struct origin_connections *connections) {
    for (unsigned i = 0; i < ORIGIN_SITE_BUCKETS; i++)
        for (struct origin_site *site = connections->sites[i]; site != NULL; site = site->next)
            connections->http2->close_idle(site);
}

void origin_connections_close_idle(struct origin_connections *connections) {
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    pool_close_idle(connections->pool);
    close_carriers(connections);
}

void origin_connections_free(struct origin_connections **connectionsp) {
    struct origin_connections *connections = *connectionsp;
    *connectionsp = NULL;
    if (connections == NULL)
        return;
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    connections->http2->close_worker(connections->http2_worker);
    while (connections->unused_count > 0)
        site_forget_oldest(connections);
    pool_free(&connections->pool);
    FREE_OBJ(connections);
}
