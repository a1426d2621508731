#include "origin/connections.h"

#include "base/assert.h"

struct origin_connections *origin_connections_new(struct net_context *net,
                                                  const struct origin_call_class *http1) {
    struct origin_connections *connections;
    ALLOC_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    connections->net = net;
    connections->http1 = http1;
    connections->pool = pool_new(net, &net->counters.origin_connections_idle);
    return connections;
}

void origin_connections_free(struct origin_connections **connectionsp) {
    struct origin_connections *connections = *connectionsp;
    *connectionsp = NULL;
    if (connections == NULL)
        return;
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    pool_free(&connections->pool);
    FREE_OBJ(connections);
}

void origin_connections_set_limit(struct origin_connections *connections, unsigned limit) {
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    pool_set_limit(connections->pool, limit);
}

void origin_connections_give(struct origin_connections *connections, struct slice key,
                             struct connection **connectionp, uint64_t idle_timeout,
                             unsigned max_idle) {
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    pool_give(connections->pool, key, connectionp, idle_timeout, max_idle);
}

void origin_connections_close_idle(struct origin_connections *connections) {
    CHECK_OBJ(connections, ORIGIN_CONNECTIONS_MAGIC);
    pool_close_idle(connections->pool);
}
