/*
 * A probe: one OPTIONS request to an endpoint of an ICAP service.
 *
 *     endpoint->probe = icap_probe_start(endpoint, on_probed);
 *     static void on_probed(struct icap_endpoint *endpoint, const struct icap_options *options,
 *                           const char *error);        options NULL: error says why
 *     icap_probe_cancel(&endpoint->probe);
 *
 * The callback comes once, from the loop, after which the probe is gone.
 */
#ifndef RETORT_ICAP_PROBE_H
#define RETORT_ICAP_PROBE_H

#include "icap/endpoint.h"

typedef void icap_probe_fn(struct icap_endpoint *endpoint, const struct icap_options *options,
                           const char *error);

struct icap_probe *icap_probe_start(struct icap_endpoint *endpoint, icap_probe_fn *on_probed);
void icap_probe_cancel(struct icap_probe **probep);

#endif
