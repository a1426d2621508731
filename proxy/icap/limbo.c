#include "icap/limbo.h"

#include "base/assert.h"

void icap_limbo_init(struct icap_limbo *limbo) {
    list_init(&limbo->connections);
}

/* What still comes is nobody's. */
static void limbo_on_ready(struct connection *connection) {
    if (connection->broken)
        connection_close(&connection);
}

void icap_limbo_add(struct icap_limbo *limbo, struct connection **connection) {
    connection_set_owner(*connection, limbo_on_ready, limbo);
    list_append(&limbo->connections, &(*connection)->pool_link);
    *connection = NULL;
}

void icap_limbo_end(struct icap_limbo *limbo) {
    struct list_link *link;
    while ((link = list_first(&limbo->connections)) != NULL) {
        struct connection *connection = CONTAINER_OF(link, struct connection, pool_link);
        connection_abort(&connection);
    }
}
