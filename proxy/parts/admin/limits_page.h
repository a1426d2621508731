/*
 * The pages about limits (limits/limits.h):
 *
 *     GET  /limits?section=&client=            {"entries": N, "sections": [...], "list": [...]}
 *     POST /limits/clear?section=&client=      {"cleared": N}; without arguments: everything
 *
 * "client" is an address, which finds the network that counts it as well, or "user NAME". The list
 * has at most LIMITS_PAGE_MOST entries.
 *
 * Threads: those of the admin plane, one at a time (admin.c).
 */
#ifndef RETORT_ADMIN_LIMITS_PAGE_H
#define RETORT_ADMIN_LIMITS_PAGE_H

#include "admin/page.h"

enum { LIMITS_PAGE_MOST = 1000 };

/* False: the request is for another page. */
void limits_page_show(struct page *page, const struct admin_calls *calls,
                      const struct page_request *request);
void limits_page_clear(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request);
void limits_page_print_metrics(FILE *out, const struct admin_calls *calls);

#endif
