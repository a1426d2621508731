/*
 * The certificates of the listeners in /status and /metrics: what they are for, when they
 * expire, and the OCSP responses that are stapled to them.
 *
 *     json_object_set_new(status, "certificates", certificates_page_to_json(&report));
 *     certificates_page_print_metrics(out, &report);
 *
 * Threads: the admin plane's.
 */
#ifndef RETORT_ADMIN_CERTIFICATES_PAGE_H
#define RETORT_ADMIN_CERTIFICATES_PAGE_H

#include "admin/admin.h"

#include <jansson.h>
#include <stdio.h>

/* An array with an object for each certificate of each listener. */
json_t *certificates_page_to_json(const struct admin_report *report);
/* retort_certificate_expiry_seconds, or nothing if no listener has certificates. */
void certificates_page_print_metrics(FILE *out, const struct admin_report *report);

#endif
