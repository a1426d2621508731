/*
 * LIMIT: counts the request against the limit sections that it matches (settings/limit.h).
 *
 *     if (transaction->limiting != NULL && limit_refuses_reply(transaction)) ...      DELIVER
 *
 * What it has taken is given back when the client has its reply, or has left. The paces of the
 * exchange (limits/pace.h) shape the reply, the request's body, and what a tunnel carries.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_LIMIT_H
#define RETORT_TRANSACTION_STEPS_LIMIT_H

#include "limits/pace.h"
#include "settings/limit.h"
#include "transaction/step.h"

/* A section that matches, and what the request holds of it. */
struct limit_hold {
    const struct limit_settings *limit;
    struct limit_entry *entry; /* NULL: nothing of it is counted */
};

/* Written by limit.c. */
struct limiting {
    struct limit_hold *holds;
    unsigned count;
    struct pace *paces[LIMIT_WAYS];        /* NULL: that way is not limited */
    const struct limit_settings *smallest; /* with the least max_response; NULL: none has one */
    const struct limit_settings
        *refused; /* the section whose limit ended the request; NULL: none */
};

/* For DELIVER: the reply's body is longer than a section allows. The reply is made a page then. */
bool limit_refuses_reply(struct transaction *transaction);
/* The request's body is longer than a section allows: the page that says so. */
enum step limit_request_too_large(struct transaction *transaction);
/* The name of the section that has refused the request, or broken it off; NULL: none has. */
const char *limit_refused_by(const struct transaction *transaction);
/* The request is over: notes why the reply was broken off, if a limit did that. */
void limit_note_end(struct transaction *transaction);

#endif
