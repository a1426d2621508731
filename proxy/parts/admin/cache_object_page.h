/*
 * The pages for one stored object: its state and its content.
 *
 *     struct cache_call call = {page, calls, request, cache, second_level, arena};
 *     cache_object_page_show(&call);                 the request has been answered
 *
 * The content is sent from where it stands, piece by piece, while others ask for other pages.
 *
 * Threads: any of the admin plane.
 */
#ifndef RETORT_ADMIN_CACHE_OBJECT_PAGE_H
#define RETORT_ADMIN_CACHE_OBJECT_PAGE_H

#include "admin/cache_call.h"

/* The object as an element of a list. */
json_t *cache_object_page_json(const struct cache_call *call, struct object *object);

/* All variants. */
void cache_object_page_show(const struct cache_call *call);
/* One of them, as a message. */
void cache_object_page_content(const struct cache_call *call);

#endif
