/*
 * The proof of who the origin of an intercepted connection is: what is remembered of it, or a
 * connection to it whose certificate is verified. The step BUMP needs it before it shows the client a
 * certificate for that name.
 *
 *     origin_proof_begin(&proof, transaction, &facts);
 *     switch (origin_proof_go_on(&proof)) {              again whenever the transaction's task runs
 *     case ORIGIN_PROOF_GOOD: ... proof.issuer, proof.not_after ...
 *     case ORIGIN_PROOF_FAILED: ... a page with proof.status and proof.sentence ...
 *     case ORIGIN_PROOF_ASKS_CERTIFICATE: ... only the client has the key: splice ...
 *     default: return STEP_WAIT;
 *     }
 *     origin_proof_end(&proof);                          at any time
 *
 * The connection goes the way that FETCH will take for the requests inside, through parent proxies
 * too, and is kept for them. How a verification has ended is remembered (intercept/server_identity.h),
 * and other transactions that need the same one wait for it.
 *
 * Units: not_after in seconds since 1970. Threads: the worker's. Memory: the transaction's arena. The
 * facts live as long as the proof.
 */
#ifndef RETORT_INTERCEPT_ORIGIN_PROOF_H
#define RETORT_INTERCEPT_ORIGIN_PROOF_H

#include "client/intercepted.h"
#include "intercept/server_identity.h"
#include "net/dial.h"
#include "origin/slot.h"

struct transaction;

enum origin_proof_state {
    ORIGIN_PROOF_ASKING,   /* another transaction verifies the same origin just now */
    ORIGIN_PROOF_QUEUED,   /* the parent proxies that lead there have no connection free */
    ORIGIN_PROOF_CHECKING, /* a connection verifies its certificate */
    /* The end. */
    ORIGIN_PROOF_GOOD,
    ORIGIN_PROOF_FAILED,
    ORIGIN_PROOF_ASKS_CERTIFICATE, /* it wants one of the client, and the settings leave it that */
};

/* Written by origin_proof.c. */
struct origin_proof {
    struct transaction *transaction;
    const struct intercepted_facts *facts; /* name, port and place of the origin */
    enum origin_proof_state state;
    struct server_identity_turn turn;     /* to verify the origin */
    const struct parent_settings *parent; /* that leads to the origin; NULL: none */
    struct origin_slot *slot;             /* at a parent proxy; NULL: none */
    struct tls_client *parent_tls;        /* counted; NULL: clear text with it */
    struct tls_client *origin;            /* counted; NULL: the origin is not asked */
    struct dial dial;                     /* to it */
    struct slice key;                     /* of the pool for connections to it */
    /* What has come of it. */
    int64_t not_after;         /* of the origin's certificate; 0: not known */
    struct slice issuer;       /* likewise; empty: not known */
    struct slice verification; /* "ok", or why it is not trusted; empty: it was not seen */
    bool refusable;            /* it is not trusted, and the client's certificate shows that */
    unsigned status;           /* of the page, when it has failed */
    const char *reason;        /* for the log */
    struct slice sentence;     /* for the page */
};

/* All bytes of the proof are zero. */
void origin_proof_begin(struct origin_proof *proof, struct transaction *transaction,
                        const struct intercepted_facts *facts);
/* One of the first three states: the task of the transaction runs when there is more to say. */
enum origin_proof_state origin_proof_go_on(struct origin_proof *proof);
/* The origin has failed to show a good certificate to a request inside: the next connection has it
 * verified anew. */
void origin_proof_forget(struct transaction *transaction);
/* Ends what is under way. It may be called again. */
void origin_proof_end(struct origin_proof *proof);

#endif
