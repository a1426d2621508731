/*
 * Pages of the admin plane: what they are made of, and those about the proxy as a whole. This file
 * knows nothing about sockets.
 *
 *     struct page page = {0};
 *     page_status(&page, &calls);
 *     ... page.status, page.content_type, page.text ...
 *     free(page.text);
 *
 * Threads: those of the admin plane. Pages are made one at a time, except those that are made apart
 * (admin/call.h).
 */
#ifndef RETORT_ADMIN_PAGE_H
#define RETORT_ADMIN_PAGE_H

#include "admin/admin.h"
#include "admin/answer_text.h"
#include "admin/call.h"
#include "base/slice.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/types.h>

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

/* An answer that goes on, such as a stream of events, until its reader goes or the feed ends. */
struct page_feed_class {
    /* `fd`: the reader's socket, which stays open until `release`. `wake` is called when there are bytes
     * again. */
    void (*bind)(void *arg, int fd, void (*wake)(void *wake_arg), void *wake_arg);
    /* Bytes that were copied; 0: there are none, and pause(wake_arg) was called; -1: the end. */
    ssize_t (*read)(void *arg, char *bytes, size_t most, void (*pause)(void *wake_arg));
    void (*release)(void *arg); /* the last call */
};

struct page_feed {
    void *arg;
    const struct page_feed_class *class; /* NULL: there is no feed */
};

enum { PAGE_ALLOW = 64 };

/* The text that is wanted in place of JSON. */
struct page_text {
    bool wanted;
    struct answer_style style;
    const struct call *call; /* whose form it is; NULL: there is none yet */
};

struct page {
    struct page_text shown;
    unsigned status; /* of HTTP */
    const char *content_type;
    char allow[PAGE_ALLOW]; /* the allowed methods, with 405; else empty */
    bool repeat;            /* with 503: soon, as Retry-After says */
    char *text;             /* the caller frees it */
    size_t length;
    struct page_source source;    /* whose bytes are the answer; read NULL: the text is */
    struct page_feed feed;        /* likewise; class NULL: the text is */
    bool (*may_still)(void *arg); /* with a feed or a source: may the caller have more? */
    void *may_still_arg;
    bool download;   /* a body of somebody else's: browsers save it, and show nothing of it */
    json_t *asked;   /* settings that were to be changed: {name: value}; for the audit log */
    json_t *changed; /* settings that have changed, likewise; NULL: none; admin.c releases both */
    json_t *error;  /* why it is refused, for the audit log; NULL: it is not. admin.c releases it */
    bool unchanged; /* of a call that may change something: it has not, and needs no audit */
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

/* The pages; admin/calls.def lists them. */
void page_status(struct page *page, const struct admin_calls *calls);
void page_drain(struct page *page, const struct admin_calls *calls);

void page_each_argument(const struct page_request *request, page_see_argument *see, void *arg);
const char *page_argument(const struct page_request *request, const char *name);
/* A new page, for a caller who accepts this; NULL: he has not said what. "text/plain" asks for a text,
 * with colours if "colours=yes" is behind it, and with local times if "zone=SECONDS" is. */
struct page page_begin(const char *accept);
/* Ends the page's stream from open_memstream. Returns false when memory is exhausted (also when
 * there is no stream); the page then says so. */
bool page_end_text(struct page *page, FILE *out);
/* Writes the JSON to the page and releases it. */
void page_json(struct page *page, unsigned status, json_t *json);
/* Likewise, without line breaks and with status 200: for long lists that programs read. */
void page_json_dense(struct page *page, json_t *json);
/* {"error": reason} */
void page_error(struct page *page, unsigned status, const char *reason);
/* Refuses a change, because another one is under way. */
void page_busy(struct page *page, const char *reason);
/* Answers with an error: the change is in force, but a restart would undo it. */
void page_not_kept(struct page *page);

#endif
