/*
 * The pages of the admin plane by which ICAP exchanges are recorded; admin.h lists them.
 *
 *     if (record_page_make(&page, &calls, &request)) ...      it was one of these
 *
 * Whoever asks for a recording comes back again and again to take what has been recorded, so that
 * nothing is kept here but what fits into its memory. There is one recording at a time.
 *
 * Threads: those of the admin plane, one at a time (admin.c).
 */
#ifndef RETORT_ADMIN_RECORD_PAGE_H
#define RETORT_ADMIN_RECORD_PAGE_H

#include "admin/page.h"

bool record_page_make(struct page *page, const struct admin_calls *calls,
                      const struct page_request *request);

#endif
