#include "icap/lost_connections.h"

#include "base/assert.h"

void icap_lost_connections_init(struct icap_lost_connections *lost) {
    list_init(&lost->connections);
}

/* Nothing reads the remaining bytes. */
static void lost_connection_on_ready(struct connection *connection) {
    if (connection->broken)
        connection_close(&connection);
}

void icap_lost_connections_add(struct icap_lost_connections *lost, struct connection **connection) {
    connection_set_owner(*connection, lost_connection_on_ready, lost);
    list_append(&lost->connections, &(*connection)->pool_link);
    *connection = NULL;
}

void icap_lost_connections_end(struct icap_lost_connections *lost) {
    struct list_link *link;
    while ((link = list_first(&lost->connections)) != NULL) {
        struct connection *connection = CONTAINER_OF(link, struct connection, pool_link);
        connection_abort(&connection);
    }
}
