/*
 * What else of TLS ends one day, in /status and /metrics: the authority that signs certificates for
 * intercepted connections, authorities and revocation lists by which clients and servers are
 * verified, the proxy's own certificates for servers, and issuers that listeners show.
 *
 *     json_object_set_new(status, "trust", trust_page_to_json(&report));
 *     trust_page_print_metrics(out, &report);
 *
 * Each file has one row, about what ends first in it. What the system trusts is not shown.
 *
 * Threads: the admin plane's.
 */
#ifndef RETORT_ADMIN_TRUST_PAGE_H
#define RETORT_ADMIN_TRUST_PAGE_H

#include "admin/report.h"

#include <jansson.h>
#include <stdio.h>

/* An array. */
json_t *trust_page_to_json(const struct admin_report *report);
/* retort_trust_expiry_seconds, or nothing if there are no such files. */
void trust_page_print_metrics(FILE *out, const struct admin_report *report);

#endif
