/*
 * What ICAP servers count themselves (icap_service.info), for /metrics: one sample for each server,
 * however many services and endpoints have it.
 *
 *     server_numbers_print_metrics(out, report);
 *
 * Threads: pure.
 */
#ifndef RETORT_ADMIN_SERVER_NUMBERS_H
#define RETORT_ADMIN_SERVER_NUMBERS_H

#include "admin/report.h"

#include <stdio.h>

void server_numbers_print_metrics(FILE *out, const struct admin_report *report);

#endif
