/*
 * ACCESS: finds out who the client is and where the request would go, and lets the access sections
 * decide (access/rules.h). The step runs only while there are such sections, or while others ask
 * for the user or the address (settings->any_access).
 *
 * RECHECK decides again about a request that a service or a rewrite section has changed since. It
 * can only refuse what ACCESS has let in: it never asks the client for credentials and never
 * redirects.
 *
 *     return access_recheck(transaction);                   in place of: return STEP_LOOKUP
 *
 * FETCH, TUNNEL and BUMP let each address be judged before they connect to it, because a name may
 * lead elsewhere by then:
 *
 *     target.permit = access_permit(transaction);           NULL: no section asks for the address
 *     target.permit_arg = transaction;
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_STEPS_ACCESS_H
#define RETORT_TRANSACTION_STEPS_ACCESS_H

#include "access/rules.h"
#include "net/dial.h"
#include "transaction/proof.h"
#include "transaction/step.h"

struct identity;
struct access_search;

/* Written by access.c. */
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
};

/* The client is proven to be this user. The caller's reference becomes the transaction's. */
void access_set_identity(struct transaction *transaction, struct identity **identityp);
/* The step that follows when the request is as it will be looked up: RECHECK, or LOOKUP for a
 * request that nobody has changed since it was decided about. */
enum step access_recheck(struct transaction *transaction);
/* Decides about the request that services behind the cache have made for the origin. NULL: it may
 * go there; else a reason for people. */
const char *access_denial(struct transaction *transaction);
/* What becomes of a connection whose TLS asks for `sni`. False: it is denied. */
bool access_allows_name(struct transaction *transaction, struct slice sni);
/* Judges an address that the request is about to be sent to; NULL: no section asks for it. Its
 * argument is the transaction. */
dial_permit_fn *access_permit(struct transaction *transaction);
/* The class of the section that decided; empty: none did. */
struct slice access_rule_name(const struct transaction *transaction);
/* Does the request bypass the cache and all services? */
bool access_is_tunnel(const struct transaction *transaction);
/* Ends what is under way. It may be called again. */
void access_end(struct transaction *transaction);
/* Releases the identity. */
void access_release(struct transaction *transaction);

#endif
