/*
 * Error pages: in the type and language that the client prefers (RFC 9110 §12.5.1, §12.5.4), from
 * an error_page section of the settings or made here. Retort's own pages are HTML, plain text, and
 * JSON as RFC 9457 wants it.
 *
 *     struct page_choice choice = {.status = 403, .sentence = sentence};
 *     struct http_head *head = page_reply(transaction, &choice);
 *     http_head_add(head, SLICE("Retry-After"), SLICE("10"));
 *     return STEP_DELIVER;
 *
 *     struct page_text page = {.purpose = PAGE_FOR_WAITING, .value = ..., .arg = ...};
 *     if (page_write(transaction, &page)) ...             page.body; else there is no such section
 *
 * Everything that comes from a request is escaped for the place where it is written.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_PAGE_H
#define RETORT_TRANSACTION_PAGE_H

#include "http/head.h"
#include "settings/error_page.h"

struct transaction;

struct page_choice {
    unsigned status;
    struct slice sentence; /* why, for people, without a full stop */
    const char *name;      /* of the error_page section; NULL: class and status choose it */
};

/* Makes the page the reply of the transaction. Returns its head, for more fields. */
struct http_head *page_reply(struct transaction *transaction, const struct page_choice *choice);

/* A page that is no error, as an error_page section has it. */
struct page_text {
    enum page_purpose purpose;
    struct slice (*value)(void *arg, enum variable variable); /* of the page's own variables */
    void *arg;
    struct slice body;    /* HTML; written by page_write */
    const char *language; /* NULL: not known; written by page_write */
    bool by_language;     /* Accept-Language has chosen; written by page_write */
};

/* False: no section has such a page for this request, and Retort's own is to be sent. A variable
 * of which `value` knows nothing, by a slice with base NULL, is one of the transaction's. */
bool page_write(struct transaction *transaction, struct page_text *page);
/* Says in a head how the page was chosen. */
void page_add_language(struct http_head *head, const struct page_text *page);

#endif
