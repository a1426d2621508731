/*
 * Connections to a host that is lost. If they were closed now, their other ends would stay open,
 * because nothing arrives there, and each might hold a thread of the ICAP server long after its
 * return. They are kept until the host is back, and reset then.
 *
 *     icap_lost_connections_init(&lost);
 *     icap_lost_connections_add(&lost, &connection);
 *     icap_lost_connections_end(&lost);               resets each of them
 *
 * Threads: the loop's.
 */
#ifndef RETORT_ICAP_LOST_CONNECTIONS_H
#define RETORT_ICAP_LOST_CONNECTIONS_H

#include "base/list.h"
#include "net/connection.h"

struct icap_lost_connections {
    struct list_link connections;
};

void icap_lost_connections_init(struct icap_lost_connections *lost);
void icap_lost_connections_add(struct icap_lost_connections *lost, struct connection **connection);
void icap_lost_connections_end(struct icap_lost_connections *lost);

#endif
