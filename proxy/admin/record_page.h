/*
 * The pages of the admin plane that record ICAP exchanges; admin.h lists them.
 *
 *     record_page_begin(&page, &calls, &request);      the request has been answered
 *
 * The client that starts a recording has to fetch the recorded data again and again, because only
 * what fits into the recording's memory is kept. There is one recording at a time.
 *
 * Threads: those of the admin plane, one at a time (admin.c).
 */
#ifndef RETORT_ADMIN_RECORD_PAGE_H
#define RETORT_ADMIN_RECORD_PAGE_H

#include "admin/page.h"

/* Starts a recording. */
void record_page_begin(struct page *page, const struct admin_calls *calls,
                       const struct page_request *request);
/* Answers with the records that wait. */
void record_page_take(struct page *page, const struct admin_calls *calls,
                      const struct page_request *request);
/* Ends it. */
void record_page_end(struct page *page, const struct admin_calls *calls,
                     const struct page_request *request);

#endif
