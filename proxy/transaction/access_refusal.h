/*
 * What the client is told about a request that the access sections do not let in.
 *
 *     const struct access_refusal refusal = access_refusal_of(transaction, &decision);
 *     return fail_page(transaction, refusal.status, refusal.reason, refusal.page);
 *
 * Inside of a connection that is opened for it, a section's redirection can be followed:
 *
 *     access_refusal_send_elsewhere(&refusal, transaction, decision.section, host);
 *
 * Threads: the worker's. Memory: the transaction's arena, and its settings.
 */
#ifndef RETORT_TRANSACTION_ACCESS_REFUSAL_H
#define RETORT_TRANSACTION_ACCESS_REFUSAL_H

#include "access/rules.h"

struct transaction;

struct access_refusal {
    unsigned status; /* 0: the request is let in */
    const char *reason;
    const char *page;      /* error_page.name; NULL: class and status choose it */
    struct slice location; /* a redirection in place of the page; empty: none */
};

struct access_refusal access_refusal_of(struct transaction *transaction,
                                        const struct access_decision *decision);
/* Makes it the section's redirection, if it is one. The variables about the URL are about
 * https://HOST/, since of a CONNECT no more is known. */
void access_refusal_send_elsewhere(struct access_refusal *refusal, struct transaction *transaction,
                                   const struct access_settings *section, struct slice host);
/* A refusal by access is none of the proxy's errors. */
static inline bool access_refusal_is_denial(const struct access_refusal *refusal) {
    return refusal->status < 500;
}

#endif
