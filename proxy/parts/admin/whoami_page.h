/*
 * The page that tells a caller who he is: GET /v1/whoami. The web page offers what his role allows.
 *
 *     {"name": "anna", "role": "operate", "from": "127.0.0.1:40112", "version": "1.0", "pid": 815}
 *
 * Threads: those of the admin plane.
 */
#ifndef RETORT_ADMIN_WHOAMI_PAGE_H
#define RETORT_ADMIN_WHOAMI_PAGE_H

#include "admin/page.h"

void whoami_page_make(struct page *page, const struct admin_calls *calls,
                      const struct page_request *request);

#endif
