/*
 * The waiting page: what a person sees in a browser while a service has not decided yet about a
 * download. The page refreshes itself, shows how much has come, and becomes the download in the
 * end.
 *
 * RESPMOD, which waits for the services:
 *
 *     waiting_page_begin(transaction, patience_after);
 *     if (waiting_page_is_due(transaction))
 *         return waiting_page_reply(transaction);
 *
 * LOG, after the client has got the page:
 *
 *     if (waiting_page_goes_on(transaction))
 *         return STEP_WAIT;
 *     waiting_page_end(transaction);
 *
 * COLLECT, where the page asks again, gives the result or the page.
 *
 * Only GET requests of browsers that navigate get the page (Accept names text/html, and
 * Sec-Fetch-Dest, if present, is "document"), and only for 200 responses that are not HTML: an HTML
 * page would come back under another URL, and its relative links would break. The page's URL is on
 * the host that was asked, so that its requests come to this proxy by the same way. The result is
 * kept as a waiting download (adapt/waiting_download.h); it is not stored in the cache.
 *
 * The text is that of an error_page section with for = waiting (transaction/page.h), or Retort's own.
 *
 * Units: milliseconds, bytes. Memory: the transaction's arena; the page owns the body of the result
 * until it is kept. Errors: what fails is told to the browser with 502 when it asks again.
 *
 * Threads: the worker's; the page may be asked for at any worker.
 */
#ifndef RETORT_ADAPT_WAITING_PAGE_H
#define RETORT_ADAPT_WAITING_PAGE_H

#include "adapt/waiting_download.h"
#include "transaction/transaction.h"

/* Written by waiting_page.c. */
struct waiting_page {
    unsigned magic;
#define WAITING_PAGE_MAGIC 0x9a71e4ceu
    struct transaction *transaction;
    struct timer timer; /* until the page, then of progress */
    bool due, abandoned;
    struct waiting_download *download; /* referenced; NULL: the page has not been sent */
    struct http_head *head;            /* of the result, once there is one */
    struct source *body;               /* owned */
};

/* Starts to wait, if this request may get a page. `after`: milliseconds; 0: no page. */
void waiting_page_begin(struct transaction *transaction, uint64_t after);
bool waiting_page_is_due(const struct transaction *transaction);
enum step waiting_page_reply(struct transaction *transaction);
/* Keeps what has come. True: there is more to come, and the transaction's task runs then. */
bool waiting_page_goes_on(struct transaction *transaction);
/* It may be called again. */
void waiting_page_end(struct transaction *transaction);

#endif
