/*
 * The pages /dns and /dns/clear: the names that the workers remember.
 *
 * Threads: the admin plane's.
 */
#ifndef RETORT_ADMIN_DNS_PAGE_H
#define RETORT_ADMIN_DNS_PAGE_H

#include "admin/page.h"

void dns_page_make(struct page *page, const struct admin_calls *calls,
                   const struct page_request *request);

#endif
