/*
 * What else of TLS ends one day, in /status and /metrics: what parts sign with, authorities
 * and revocation lists by which clients and servers are verified, the proxy's own certificates for
 * servers, and issuers that listeners show.
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

#include "admin/admin.h"
#include "tls/certificate_text.h"

#include <jansson.h>
#include <stdio.h>

/* A file, and what ends first in it. */
struct trust_row {
    const char *kind;  /* "authority", "issuer", "ca", "crl" or "certificate" */
    const char *place; /* the section that names it: "origin", "listen 127.0.0.1:443" */
    const char *file;
    struct validity validity;
};

struct trust_rows {
    void (*see)(void *arg, const struct trust_row *row);
    void *arg;
};

/* For parts (part_pages.see_trust): shows a row, unless nothing ends. */
void trust_see(const struct trust_rows *rows, const char *kind, const char *place, const char *file,
               const struct validity *validity);

/* An array. */
json_t *trust_page_to_json(const struct admin_report *report);
/* retort_trust_expiry_seconds, or nothing if there are no such files. */
void trust_page_print_metrics(FILE *out, const struct admin_report *report);

#endif
