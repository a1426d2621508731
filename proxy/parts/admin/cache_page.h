/*
 * The pages of the admin plane that manage the content of the cache; admin.h lists them.
 *
 *     cache_page_purge(&call);                       the request has been answered
 *
 * A list looks at objects for a moment and then says where to go on, so an answer may be empty and
 * have a `next`.
 *
 * Threads: any of the admin plane. These threads do the work of a purge themselves, in batches
 * (cache/removal.h).
 */
#ifndef RETORT_ADMIN_CACHE_PAGE_H
#define RETORT_ADMIN_CACHE_PAGE_H

#include "admin/cache_call.h"

void cache_page_objects(const struct cache_call *call);
void cache_page_purge(const struct cache_call *call);
void cache_page_delete(const struct cache_call *call);
void cache_page_bans(const struct cache_call *call);
void cache_page_ban(const struct cache_call *call);
void cache_page_lifetime(const struct cache_call *call);
void cache_page_pin(const struct cache_call *call);
void cache_page_unpin(const struct cache_call *call);

#endif
