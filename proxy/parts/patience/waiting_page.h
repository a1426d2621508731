/*
 * The waiting page: what a person sees in a browser while a service has not decided yet about a
 * download. The page refreshes itself, shows how much has come, and becomes the download in the
 * end.
 *
 * RESPMOD waits for the services, and LOG keeps what comes behind the client has got the page (struct patience_class of
 * transaction/adapting.h).
 *
 * COLLECT, where the page asks again, gives the result or the page.
 *
 * Only GET requests of browsers that navigate get the page (Accept names text/html, and
 * Sec-Fetch-Dest, if present, is "document"), and only for 200 responses that are not HTML: an HTML
 * page would come back under another URL, and its relative links would break. The page's URL is on
 * the host that was asked, so that its requests come to this proxy by the same way. The result is
 * kept as a waiting download (patience/waiting_download.h); it is not stored in the cache.
 *
 * The text is that of an error_page section with for = waiting (transaction/page.h), or Retort's own.
 *
 * Units: milliseconds, bytes. Memory: the transaction's arena; the page owns the body of the result
 * until it is kept. Errors: what fails is told to the browser with 502 when it asks again.
 *
 * Threads: the worker's; the page may be asked for at any worker.
 */
#ifndef RETORT_PATIENCE_WAITING_PAGE_H
#define RETORT_PATIENCE_WAITING_PAGE_H

#include "patience/waiting_download.h"
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

extern const struct patience_class waiting_page_class;
/* COLLECT: the browser asks for what it has waited for. */
extern const struct step_row collect_step;

#endif
