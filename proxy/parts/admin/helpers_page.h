/*
 * The pages about the pools of helper processes, which belong to retort-helperd: the admin plane asks
 * it at the socket of admin.helpers.
 *
 *     GET  /v1/helpers                           the pools with their processes, CPU and counts
 *     POST /v1/helpers/renice?pool=gray&nice=19
 *     POST /v1/helpers/resize?pool=gray&processes=4
 *
 * retort-helperd lets root and the user that it runs as change something, so the proxy must be one of
 * them. Threads: those of the admin plane.
 */
#ifndef RETORT_ADMIN_HELPERS_PAGE_H
#define RETORT_ADMIN_HELPERS_PAGE_H

#include "admin/page.h"

/* What a pool may be given; retort-helperd checks it again. */
enum { HELPERS_NICE_MOST = 19, HELPERS_PROCESSES_MOST = 1000 };

void helpers_page_show(struct page *page, const struct admin_calls *calls);
void helpers_page_renice(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request);
void helpers_page_resize(struct page *page, const struct admin_calls *calls,
                         const struct page_request *request);

#endif
