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
 * Everything that comes from a request is escaped for the place where it is written.
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

#endif
