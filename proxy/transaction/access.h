/*
 * What the access sections say about a request (access/rules.h), and what is known for it: who the
 * client is, and where the request would go. A transaction has it only while there are such
 * sections, or while others ask for the user or the address (settings->any_access).
 *
 *     struct class_subject subject;
 *     struct access_question question;
 *     struct access_decision decision;
 *     access_ask(transaction, &subject, &question);
 *     access_decide(&question, &decision);
 *     access_note(transaction, &question, &decision);
 *
 * Who decides: the step ACCESS about the client's request (steps/access.c); RECHECK about one that
 * a service or a rewrite section has changed since (steps/recheck.h); and whoever connects to an
 * address or sends what services behind the cache have made (access_permit.h).
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_ACCESS_H
#define RETORT_TRANSACTION_ACCESS_H

#include "access/rules.h"
#include "transaction/access_refusal.h"
#include "transaction/proof.h"
#include "transaction/step.h"

struct access_search;
struct identity;

/* Written by access.c and access_destination.c and steps/access.c. */
struct access {
    bool resolving, resolved; /* the host; resolved: it is not tried again */
    bool rechecking;
    bool deferred; /* a connection of a transparent listener: the name that its TLS asks for, which
                      INTERCEPT reads, decides */
    bool settled;  /* it has decided */
    bool tunnel;   /* neither the cache nor a service takes part */
    const struct access_settings *section; /* that decided; NULL: none */
    const struct access_settings *logged;  /* the first with log_only that would have decided */
    struct slice url;                      /* that was decided about */
    struct slice host;                     /* its host */
    uint16_t port;                         /* its port */
    struct slice name;                     /* that the TLS of a CONNECT asks for; empty: none */
    struct access_search *search; /* for the addresses of the host; NULL: they were not sought */
    struct proof *proof;          /* NULL: no credentials were looked at */
    struct access_refusal
        refusal; /* of a CONNECT, which INTERCEPT shows inside of the connection */
};

/* The client is proven to be this user. The caller's reference becomes the transaction's. */
void access_set_identity(struct transaction *transaction, struct identity **identityp);
/* The class of the section that decided; empty: none did. Of a page inside of a connection, the one
 * that decided about the connection. */
struct slice access_rule_name(const struct transaction *transaction);
/* Does the request bypass the cache and all services? */
bool access_is_tunnel(const struct transaction *transaction);
/* NULL: the request is let in, or the client has its answer. */
const struct access_refusal *access_refusal_to_show(const struct transaction *transaction);
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
/* As access_note, of a section that is in transaction->access and allows it at once. */
void access_note_allowed(struct transaction *transaction);
/* As access_note, for a further decision: what bypasses the cache and services goes on doing so. */
void access_note_again(struct transaction *transaction, struct access_question *question,
                       const struct access_decision *decision);
/* As access_note_again. `name`: that the TLS of the connection asks for. Clients may write any name
 * there: where the CONNECT names another host, the connection is a tunnel only if sections say so
 * about both. */
void access_note_name(struct transaction *transaction, struct access_question *question,
                      const struct access_decision *decision, struct slice name);

/* Ends what is under way. It may be called again. */
void access_end(struct transaction *transaction);
/* Releases the identity. */
void access_release(struct transaction *transaction);

#endif
