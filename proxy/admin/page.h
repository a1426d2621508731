/*
 * Pages of the admin plane: what they are made of, and those about the proxy as a whole. This file
 * knows nothing about sockets.
 *
 *     struct page page = {0};
 *     page_status(&page, &calls);
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
#include <sys/types.h>

struct event_consumer;

/* A long answer, whose bytes are read while it is sent: it is never in memory as a whole. Its calls
 * come from a thread of the admin plane, without the lock that pages are made under. */
struct page_source {
    void *arg;
    uint64_t length; /* bytes of the whole answer */
    /* Returns how many bytes from `at` on there are now in `bytes`, at least 1; -1: they can't be
     * read, and the answer is broken off. */
    ssize_t (*read)(void *arg, uint64_t at, char *bytes, size_t most);
    void (*release)(void *arg); /* the last call */
};

struct page {
    unsigned status; /* of HTTP */
    const char *content_type;
    const char *allow; /* the allowed methods, with 405; else NULL */
    char *text;        /* the caller frees it */
    size_t length;
    struct page_source source;       /* whose bytes are the answer; read NULL: the text is */
    struct event_consumer *consumer; /* whose events are the answer; NULL: the text is */
    bool (*may_still)(void *arg);    /* with a consumer or a source: may the caller have more? */
    void *may_still_arg;
    bool download;   /* a body of somebody else's: browsers save it, and show nothing of it */
    json_t *asked;   /* settings that were to be changed: {name: value}; for the audit log */
    json_t *changed; /* settings that have changed, likewise; NULL: none; admin.c releases both */
    bool unchanged;  /* of a call that may change something: it has not, and needs no audit */
};

struct admin_caller;

typedef bool page_see_argument(void *arg, const char *name, const char *value);

struct page_request {
    const char *method, *path; /* of the route: without /v1, and GET for HEAD */
    struct slice body;
    const struct admin_caller *caller;
    const char *accept; /* the field Accept; NULL: there is none */
    /* Returns the decoded value of an argument in the query, or NULL when it is missing. */
    const char *(*argument)(void *arg, const char *name);
    /* Shows all arguments to `see`, until it returns false. */
    void (*arguments)(void *arg, page_see_argument *see, void *see_arg);
    void *arg;
};

/* The pages; admin/api.c lists them. */
void page_status(struct page *page, const struct admin_calls *calls);
void page_services(struct page *page, const struct admin_calls *calls);
void page_drain(struct page *page, const struct admin_calls *calls);

void page_each_argument(const struct page_request *request, page_see_argument *see, void *arg);
const char *page_argument(const struct page_request *request, const char *name);
/* Ends the page's stream from open_memstream. Returns false when memory is exhausted (also when
 * there is no stream); the page then says so. */
bool page_end_text(struct page *page, FILE *out);
/* Writes the JSON to the page and releases it. */
void page_json(struct page *page, unsigned status, json_t *json);
/* Likewise, without line breaks and with status 200: for long lists that programs read. */
void page_json_dense(struct page *page, json_t *json);
/* {"error": reason} */
void page_error(struct page *page, unsigned status, const char *reason);
/* Answers with an error: the change is in force, but a restart would undo it. */
void page_not_kept(struct page *page);

#endif
