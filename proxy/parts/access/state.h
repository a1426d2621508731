/*
 * What a transaction has of the access sections: what they have decided (transaction/access.h), and what is known
 * for that: who the client is, and where the request would go. It is there only while there are such sections, or
 * while others ask for the user or the address.
 *
 *     struct class_subject subject;
 *     struct access_question question;
 *     struct access_decision decision;
 *     access_ask(transaction, &subject, &question);
 *     access_decide(&question, &decision);
 *     access_note(transaction, &question, &decision);
 *
 * Who decides: the step ACCESS about the client's request (step.c); RECHECK about one that a service or a rewrite
 * section has changed since (recheck.c); and whoever connects to an address or sends what services behind the cache
 * have made (permit.c).
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_ACCESS_STATE_H
#define RETORT_ACCESS_STATE_H

#include "access/rules.h"
#include "transaction/access.h"

struct access_search;
struct proof;
struct purge_order;

/* Written by state.c, destination.c, step.c, recheck.c and purge.c. */
struct access_state {
    struct access base;
    bool resolving, resolved; /* the host; resolved: it is not tried again */
    bool rechecking;
    /* A connection of a transparent listener: the name that its TLS asks for, which INTERCEPT reads, decides. */
    bool deferred;
    bool settled;                 /* it has decided */
    uint16_t port;                /* of `host` */
    struct slice url;             /* that was decided about */
    struct slice host;            /* its host */
    struct slice name;            /* that the TLS of a CONNECT asks for; empty: none */
    struct access_search *search; /* for the addresses of the host; NULL: they were not sought */
    struct proof *proof;          /* NULL: no credentials were looked at */
    struct purge_order *purge;    /* owned; NULL: the request is no order */
};

/* NULL: the rules have not been asked. */
static inline struct access_state *access_state(const struct transaction *transaction) {
    return (struct access_state *)(void *)transaction->access;
}
void access_state_begin(struct transaction *transaction);
/* False: it is let in without a step of its own, where nothing has to be asked or found out first. */
bool access_has_to_decide(struct transaction *transaction);

/* Can the client be answered with 407 or 401 now? */
bool access_may_challenge(const struct transaction *transaction);
/* Does the request name a server? Clients of a reverse listener name none of their own. */
bool access_names_a_server(const struct transaction *transaction);

/* The question about the request as it is now. The subject belongs to the caller and outlives it. */
void access_ask(struct transaction *transaction, struct class_subject *subject,
                struct access_question *question);
/* Keeps and counts the section that decided, and what those with log_only would have decided. */
void access_note(struct transaction *transaction, struct access_question *question,
                 const struct access_decision *decision);
/* Keeps the URL that is decided about. */
void access_note_url(struct transaction *transaction);
/* As access_note, for a further decision: what bypasses the cache and services goes on doing so. */
void access_note_again(struct transaction *transaction, struct access_question *question,
                       const struct access_decision *decision);
/* As access_note_again. `name`: that the TLS of the connection asks for. Clients may write any name there: where
 * the CONNECT names another host, the connection is a tunnel only if sections say so about both. */
void access_note_name(struct transaction *transaction, struct access_question *question,
                      const struct access_decision *decision, struct slice name);

/* The rows of ACCESS, PURGE and RECHECK. */
extern const struct step_row access_step, purge_step, recheck_step;

/* Ends what is under way. It may be called again. */
void access_end(struct transaction *transaction);

#endif
