/*
 * Patience: a page for a person who waits for a download that a service has not decided about. The
 * page refreshes itself, tells how far things are, and in the end becomes the download.
 *
 *     patience_begin(transaction, patience_after);       RESPMOD has begun
 *     if (patience_is_over(transaction))                 RESPMOD, with no verdict yet:
 *         return patience_reply(transaction);            the page goes out
 *     if (patience_goes_on(transaction))                 LOG, with the client let go
 *         return STEP_WAIT;
 *     patience_end(transaction);
 *
 *     if (patience_is_url(path)) return patience_collect(transaction);    ADMIT: the page asks
 *
 * For GET requests of browsers that go to what they ask for (Accept names text/html, and
 * Sec-Fetch-Dest, where it is there, is "document"), and for 200s that are no HTML: a page would
 * come back under another URL, to which its links do not belong. The URL is on the host that was
 * asked, so that it comes to this proxy by the same way. What is kept of the result:
 * transaction/parcel.h. It is not stored in the cache.
 *
 * Threads: the worker's; the page may be asked for at any worker.
 */
#ifndef RETORT_TRANSACTION_PATIENCE_H
#define RETORT_TRANSACTION_PATIENCE_H

#include "transaction/parcel.h"
#include "transaction/transaction.h"

struct patience {
    unsigned magic;
#define PATIENCE_MAGIC 0x9a71e4ceu
    struct transaction *transaction;
    struct timer timer; /* until the page, then of progress */
    bool over, abandoned;
    struct parcel *parcel;  /* referenced; NULL: the page has not been sent */
    struct http_head *head; /* of the result, once there is one */
    struct source *body;    /* owned */
};

void patience_begin(struct transaction *transaction, uint64_t after);
bool patience_is_over(const struct transaction *transaction);
enum step patience_reply(struct transaction *transaction);
bool patience_goes_on(struct transaction *transaction);
void patience_end(struct transaction *transaction);

bool patience_is_url(struct slice path);
enum step patience_collect(struct transaction *transaction);

#endif
