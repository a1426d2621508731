/*
 * Pages of the admin plane: what is answered to a method and a path. Knows nothing of sockets.
 *
 *     struct page page = {0};
 *     page_make(&page, &calls, "GET", "/status");
 *     ... page.status, page.content_type, page.text ...
 *     free(page.text);
 *
 * Threads: the admin thread.
 */
#ifndef RETORT_ADMIN_PAGE_H
#define RETORT_ADMIN_PAGE_H

#include "admin/admin.h"

struct page {
    unsigned status; /* of HTTP */
    const char *content_type;
    const char *allow; /* the methods, with 405; else NULL */
    char *text;        /* the caller frees it */
};

void page_make(struct page *page, const struct admin_calls *calls, const char *method,
               const char *path);
/* {"error": reason} */
void page_error(struct page *page, unsigned status, const char *reason);

#endif
