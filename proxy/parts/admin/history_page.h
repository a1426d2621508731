/*
 * The page of the history (admin/history.h): GET /v1/history. Its samples are arrays, in the order of
 * `names`; the first two numbers of each are the time in milliseconds since 1970 and how many
 * milliseconds it is about.
 *
 *     {"step": 10000, "now": ..., "names": ["at", "lasted", "requests", ...], "samples": [[...], ...]}
 *
 * Threads: those of the admin plane.
 */
#ifndef RETORT_ADMIN_HISTORY_PAGE_H
#define RETORT_ADMIN_HISTORY_PAGE_H

#include "admin/page.h"

void history_page_make(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request);

#endif
