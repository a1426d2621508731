/*
 * Pages of the admin plane: what is answered to a method and a path. Knows nothing of sockets.
 *
 *     struct page page = {0};
 *     struct page_request request = {.method = "GET", .path = "/status"};
 *     page_make(&page, &calls, &request);
 *     ... page.status, page.content_type, page.text ...
 *     free(page.text);
 *
 * Threads: those of the admin plane: purges from any, all else one at a time (admin.c).
 */
#ifndef RETORT_ADMIN_PAGE_H
#define RETORT_ADMIN_PAGE_H

#include "admin/admin.h"
#include "base/slice.h"

#include <jansson.h>
#include <stdio.h>

struct page {
    unsigned status; /* of HTTP */
    const char *content_type;
    const char *allow; /* the methods, with 405; else NULL */
    char *text;        /* the caller frees it */
    size_t length;
};

struct page_request {
    const char *method, *path;
    struct slice body;
    /* The value of an argument in the query, decoded; NULL: it is not there. */
    const char *(*argument)(void *arg, const char *name);
    void *arg;
};

void page_make(struct page *page, const struct admin_calls *calls,
               const struct page_request *request);
/* Most bytes of a request's body. */
size_t page_body_max(const char *method, const char *path);
const char *page_argument(const struct page_request *request, const char *name);
/* What was written to open_memstream's stream for the page is whole; else, also where there is no
 * stream, memory is exhausted, and the page says so. */
bool page_end_text(struct page *page, FILE *out);
/* Takes the JSON. */
void page_json(struct page *page, unsigned status, json_t *json);
/* {"error": reason} */
void page_error(struct page *page, unsigned status, const char *reason);
/* The error of what counts, but will not after a restart. */
void page_not_kept(struct page *page);

#endif
