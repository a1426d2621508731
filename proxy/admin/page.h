/*
 * Pages of the admin plane: the answer to a method and a path. This file knows nothing about
 * sockets.
 *
 *     struct page page = {0};
 *     struct page_request request = {.method = "GET", .path = "/status"};
 *     page_make(&page, &calls, &request);
 *     ... page.status, page.content_type, page.text ...
 *     free(page.text);
 *
 * Threads: those of the admin plane. Purges run in any of them, all other pages one at a time
 * (admin.c).
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
    const char *allow; /* the allowed methods, with 405; else NULL */
    char *text;        /* the caller frees it */
    size_t length;
};

struct page_request {
    const char *method, *path;
    struct slice body;
    /* Returns the decoded value of an argument in the query, or NULL when it is missing. */
    const char *(*argument)(void *arg, const char *name);
    void *arg;
};

void page_make(struct page *page, const struct admin_calls *calls,
               const struct page_request *request);
/* Returns the largest body that a request to this path may have. */
size_t page_body_max(const char *method, const char *path);
const char *page_argument(const struct page_request *request, const char *name);
/* Ends the page's stream from open_memstream. Returns false when memory is exhausted (also when
 * there is no stream); the page then says so. */
bool page_end_text(struct page *page, FILE *out);
/* Writes the JSON to the page and releases it. */
void page_json(struct page *page, unsigned status, json_t *json);
/* {"error": reason} */
void page_error(struct page *page, unsigned status, const char *reason);
/* Answers with an error: the change is in force, but a restart would undo it. */
void page_not_kept(struct page *page);

#endif
