/*
 * The pages of the admin plane that record ICAP exchanges; admin.h lists them.
 *
 *     if (record_page_make(&page, &calls, &request)) ...      it was one of these
 *
 * The client that starts a recording has to fetch the recorded data again and again, because only
 * what fits into the recording's memory is kept. There is one recording at a time.
 *
 * Threads: those of the admin plane, one at a time (admin.c).
 */
#ifndef RETORT_ADMIN_RECORD_PAGE_H
#define RETORT_ADMIN_RECORD_PAGE_H

#include "admin/page.h"

bool record_page_make(struct page *page, const struct admin_calls *calls,
                      const struct page_request *request);

#endif
