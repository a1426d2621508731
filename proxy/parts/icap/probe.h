/*
 * A probe: one OPTIONS request to an endpoint of an ICAP service.
 *
 *     endpoint->probe = icap_probe_start(endpoint, &connection, patience, on_probed);
 *     static void on_probed(struct icap_endpoint *endpoint, struct icap_probe_answer *answer);
 *     icap_probe_cancel(&endpoint->probe);
 *
 * It goes over the connection that it is given, or over one of its own; if the given one turns out
 * to have died meanwhile, over one of its own after all. The callback comes once, from the loop,
 * after which the probe is gone.
 */
#ifndef RETORT_ICAP_PROBE_H
#define RETORT_ICAP_PROBE_H

#include "icap/endpoint.h"
#include "net/connection.h"

struct icap_probe_answer {
    struct icap_options *options; /* NULL: the next two say why */
    enum icap_failure failure;
    const char *error;
    struct service_tag_moment asked; /* when it was */
    struct connection *connection; /* serves again: whoever is called takes it; NULL: it is gone */
};

typedef void icap_probe_fn(struct icap_endpoint *endpoint, struct icap_probe_answer *answer);

/* Takes *connection, unless that is NULL. For the answer to come there is `patience`, for a
 * connection connect_timeout besides. */
struct icap_probe *icap_probe_start(struct icap_endpoint *endpoint, struct connection **connection,
                                    uint64_t patience, icap_probe_fn *on_probed);
/* So long at most may it wait for a TCP connection. */
void icap_probe_hurry(struct icap_probe *probe, uint64_t patience);
/* Ends it if its host has fallen silent; *probe may be gone then. */
void icap_probe_look(struct icap_probe *probe);
void icap_probe_cancel(struct icap_probe **probep);

#endif
