/*
 * Pages about the access sections: what they have decided, and what they would decide.
 *
 *     GET /access            {"access": [{"class", "action", "log_only", "decided", "logged"}]}
 *     GET /access/test?url=&client=&method=&user=&group=&authenticator=&listener=&destination=&sni=
 *                      &certificate=&header=
 *                            {"outcome", "status", "section", "class", "why", "sections": [...]}
 *
 * group and destination are lists with commas; header has fields with CR LF
 * between them.
 *
 * Threads: those of the admin plane, one at a time.
 */
#ifndef RETORT_ADMIN_ACCESS_PAGE_H
#define RETORT_ADMIN_ACCESS_PAGE_H

#include "admin/page.h"

void access_page_make(struct page *page, const struct admin_calls *calls);
/* False: the path is not one of these. */
void access_page_test(struct page *page, const struct admin_calls *calls,
                      const struct page_request *request);

#endif
