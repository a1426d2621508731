/*
 * A proof: what the credentials of a request show about who it is from. The step ACCESS lets the
 * authenticators of the access sections look at them, one after the other.
 *
 *     struct proof *proof = proof_begin(transaction, wanted, value);
 *     while (!proof_is_over(transaction, proof))
 *         return STEP_WAIT;                       the transaction's task runs when there is news
 *     if (proof->state == CHECK_PROVEN) ...       transaction->identity is set
 *     proof_end(proof);
 *
 * The credentials are Proxy-Authorization on forward listeners, Authorization on reverse ones, and
 * the certificate of the client's connection.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_PROOF_H
#define RETORT_TRANSACTION_PROOF_H

#include "identity/credentials_check.h"

struct transaction;

/* Authenticators of the settings, a bit for each: there are at most 64 (load_identity.c). */
typedef uint64_t proof_set;

struct proof {
    proof_set left; /* that have not been asked */
    bool checking;  /* `check` is under way, or over and not looked at */
    bool refused;   /* there were credentials, and they were not good */
    struct slice authorization;
    /* The answer so far: of several that did not prove the user, the one that says most. REFUSED as
     * long as nothing has been asked. */
    enum check_state state;
    struct slice challenge; /* CHECK_CHALLENGE */
    struct slice answer;    /* CHECK_PROVEN: for the response; empty: none */
    unsigned retry_after;   /* CHECK_SLOWED: seconds */
    const char *reason;     /* a static sentence; NULL: none */
    struct credentials_check check;
};

struct proof *proof_begin(struct transaction *transaction, proof_set wanted,
                          struct slice authorization);
/* False: wait. */
bool proof_is_over(struct transaction *transaction, struct proof *proof);
/* Ends what is under way, and wipes the credentials. It may be called again. */
void proof_end(struct proof *proof);

#endif
