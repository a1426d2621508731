/*
 * The page for groups of origins, and their metrics in /metrics.
 *
 *     origins_page_make(&page, &calls);                GET /origins
 *     origins_page_print_metrics(out, &calls);
 *
 * Threads: those of the admin plane, one at a time (admin.c).
 */
#ifndef RETORT_ADMIN_ORIGINS_PAGE_H
#define RETORT_ADMIN_ORIGINS_PAGE_H

#include "admin/page.h"

#include <stdio.h>

void origins_page_make(struct page *page, const struct admin_calls *calls);
void origins_page_print_metrics(FILE *out, const struct admin_calls *calls);

#endif
