/*
 * Pages of the proxy's own: those of the part pages, or, for errors, a short one in plain text.
 *
 *     struct page_choice choice = {.status = 403, .sentence = sentence};
 *     struct http_head *head = page_reply(transaction, &choice);
 *     http_head_add(head, SLICE("Retry-After"), SLICE("10"));
 *     return STEP_DELIVER;
 *
 *     struct page_text page = {.purpose = PAGE_FOR_WAITING, .value = ..., .arg = ...};
 *     if (page_write(transaction, &page)) ...             page.body; else there is no such section
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_PAGE_H
#define RETORT_TRANSACTION_PAGE_H

#include "http/head.h"

struct transaction;

struct page_choice {
    unsigned status;
    struct slice sentence; /* why, for people, without a full stop */
    const char *name;      /* of the error_page section; NULL: class and status choose it */
};

/* Makes the page the reply of the transaction. Returns its head, for more fields. */
struct http_head *page_reply(struct transaction *transaction, const struct page_choice *choice);

/* What a page is shown for: an error; a download that a service has not decided about; the
 * certificate of the authority. */
enum page_purpose { PAGE_FOR_ERROR, PAGE_FOR_WAITING, PAGE_FOR_AUTHORITY };

/* A page that is no error, as an error_page section has it. */
struct page_text {
    enum page_purpose purpose;
    struct slice (*value)(void *arg, unsigned variable); /* of the page's own variables */
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
