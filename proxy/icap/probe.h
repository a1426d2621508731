/*
 * A probe: one OPTIONS request to an ICAP service.
 *
 *     service->probe = icap_probe_start(service, on_probed);
 *     static void on_probed(struct icap_service *service, const struct icap_options *options,
 *                           const char *error);        options NULL: error says why
 *     icap_probe_cancel(&service->probe);
 *
 * The callback comes once, from the loop, after which the probe is gone.
 */
#ifndef RETORT_ICAP_PROBE_H
#define RETORT_ICAP_PROBE_H

#include "icap/service.h"

typedef void icap_probe_fn(struct icap_service *service, const struct icap_options *options,
                           const char *error);

struct icap_probe *icap_probe_start(struct icap_service *service, icap_probe_fn *on_probed);
void icap_probe_cancel(struct icap_probe **probep);

#endif
