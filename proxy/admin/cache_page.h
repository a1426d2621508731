/*
 * The pages of the admin plane that look after the cache's content; admin.h lists them.
 *
 *     if (cache_page_make(&page, &calls, &request)) ...       it was one of these
 *
 * Threads: those of the admin plane: purges from any, all else one at a time (admin.c). They do the
 * work of a purge themselves, in batches (cache/content.h).
 */
#ifndef RETORT_ADMIN_CACHE_PAGE_H
#define RETORT_ADMIN_CACHE_PAGE_H

#include "admin/page.h"

bool cache_page_make(struct page *page, const struct admin_calls *calls,
                     const struct page_request *request);

#endif
