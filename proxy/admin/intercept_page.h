/*
 * The pages about connections that are spliced because somebody refused to have them opened:
 *
 *     GET  /intercept                        {"refusals": [...], "asking": [...]}
 *     POST /intercept/clear?client=&host=    {"cleared": N}; without arguments: all of them
 *
 * "refusals" are clients that refused our certificate for a server; "asking" are servers that ask
 * for client certificates.
 *
 * Threads: those of the admin plane, one at a time (admin.c).
 */
#ifndef RETORT_ADMIN_INTERCEPT_PAGE_H
#define RETORT_ADMIN_INTERCEPT_PAGE_H

#include "admin/page.h"

void intercept_page_make(struct page *page, const struct admin_calls *calls);
/* False: the request is for another page. */
void intercept_page_clear(struct page *page, const struct admin_calls *calls,
                          const struct page_request *request);

#endif
