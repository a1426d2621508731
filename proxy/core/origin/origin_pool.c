#include "origin/origin_pool.h"

#include "base/assert.h"
#include "origin/call.h"

struct origin_pool *origin_pool_new(struct net_context *net, const struct origin_call_class *http1,
                                    const struct origin_call_class *http2) {
    struct origin_pool *connections;
    ALLOC_OBJ(connections, ORIGIN_POOL_MAGIC);
    connections->net = net;
    connections->http1 = http1;
    connections->http2 = http2;
    connections->pool = pool_new(net, &net->counters.origin_connections_idle);
    table_init(&connections->sites);
    list_init(&connections->unused);
    if (http2 != NULL)
        connections->http2_worker = http2->open_worker(net);
    return connections;
}

void origin_pool_set_limit(struct origin_pool *connections, unsigned limit) {
    CHECK_OBJ(connections, ORIGIN_POOL_MAGIC);
    pool_set_limit(connections->pool, limit);
}

const struct origin_call_class *origin_pool_class(const struct origin_pool *connections,
                                                  const struct connection *connection,
                                                  enum origin_protocols protocols) {
    bool speaks =
        protocols == ORIGIN_HTTP2 || (protocols == ORIGIN_AGREED && connection->tls != NULL &&
                                      tls_stream_speaks(connection->tls, SLICE("h2")));
    return speaks && connections->http2 != NULL ? connections->http2 : connections->http1;
}

void origin_pool_give(struct origin_pool *connections, struct slice key,
                      enum origin_protocols protocols, struct connection **connectionp,
                      uint64_t idle_timeout, unsigned max_idle) {
    CHECK_OBJ(connections, ORIGIN_POOL_MAGIC);
    const struct origin_call_class *class = origin_pool_class(connections, *connectionp, protocols);
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

static void site_forget(struct origin_site *site) {
    struct origin_pool *connections = site->connections;
    ASSERT(site->users == 0);
    table_remove(&connections->sites, &site->entry);
    list_remove(&site->link);
    connections->unused_count--;
    task_cancel(&site->task);
    FREE_OBJ(site);
}

static void site_forget_oldest(struct origin_pool *connections) {
    site_forget(CONTAINER_OF(list_first(&connections->unused), struct origin_site, link));
}

static void site_on_task(struct task *task) {
    struct origin_site *site = CONTAINER_OF(task, struct origin_site, task);
    CHECK_OBJ(site, ORIGIN_SITE_MAGIC);
    origin_call_let_try(site);
}

static struct origin_site *site_make(struct origin_pool *connections, struct slice key,
                                     uint64_t hash) {
    struct origin_site *site = xcalloc(1, sizeof *site + key.length);
    site->magic = ORIGIN_SITE_MAGIC;
    site->connections = connections;
    table_add_hashed(&connections->sites, &site->entry, slice_copy(site->bytes, key), hash);
    list_init(&site->link);
    list_init(&site->carriers);
    list_init(&site->waiting);
    task_init(&site->task, site_on_task);
    return site;
}

struct origin_site *origin_site_take(struct origin_pool *connections, struct slice key) {
    CHECK_OBJ(connections, ORIGIN_POOL_MAGIC);
    uint64_t hash = secret_hash(key);
    struct table_entry *entry = table_find_hashed(&connections->sites, key, hash);
    struct origin_site *site = entry == NULL ? site_make(connections, key, hash)
                                             : CONTAINER_OF(entry, struct origin_site, entry);
    if (entry != NULL && site->users == 0) {
        list_remove(&site->link);
        connections->unused_count--;
    }
    site->users++;
    return site;
}

void origin_site_leave(struct origin_site **sitep) {
    struct origin_site *site = *sitep;
    *sitep = NULL;
    if (site == NULL)
        return;
    CHECK_OBJ(site, ORIGIN_SITE_MAGIC);
    if (--site->users > 0)
        return;
    struct origin_pool *connections = site->connections;
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
static void close_carriers(struct origin_pool *connections) {
    if (connections->http2 == NULL)
        return;
    TABLE_FOR_EACH_SAFE(entry, following, &connections->sites)
    connections->http2->close_idle(CONTAINER_OF(entry, struct origin_site, entry));
}

void origin_pool_close_idle(struct origin_pool *connections) {
    CHECK_OBJ(connections, ORIGIN_POOL_MAGIC);
    pool_close_idle(connections->pool);
    close_carriers(connections);
}

void origin_pool_free(struct origin_pool **connectionsp) {
    struct origin_pool *connections = *connectionsp;
    *connectionsp = NULL;
    if (connections == NULL)
        return;
    CHECK_OBJ(connections, ORIGIN_POOL_MAGIC);
    if (connections->http2 != NULL)
        connections->http2->close_worker(connections->http2_worker);
    while (connections->unused_count > 0)
        site_forget_oldest(connections);
    table_release(&connections->sites);
    pool_free(&connections->pool);
    FREE_OBJ(connections);
}
