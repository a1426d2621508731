/*
 * The pages of the admin plane that manage the content of the cache; admin.h lists them.
 *
 *     if (cache_page_make(&page, &calls, &request)) ...       it was one of these
 *
 * Threads: those of the admin plane. Purges run in any of them, all other pages one at a time
 * (admin.c). These threads do the work of a purge themselves, in batches (cache/content.h).
 */
#ifndef RETORT_ADMIN_CACHE_PAGE_H
#define RETORT_ADMIN_CACHE_PAGE_H

#include "admin/page.h"

bool cache_page_make(struct page *page, const struct admin_calls *calls,
                     const struct page_request *request);

#endif
