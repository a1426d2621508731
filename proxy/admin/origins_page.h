/*
 * The page about groups of origins, and what /metrics says of them.
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
