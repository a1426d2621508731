/*
 * A proof: what the credentials of a request show about who it is from. The part identity has the authenticators, which
 * look at them; the step ACCESS asks them. Without the part there are no authenticators, so nobody calls this.
 *
 *     const struct proof_class *class = settings->proofs;         NULL: the settings have no authenticator
 *     if (!class->begin(transaction, wanted, &proof))
 *         return fail_with(transaction, 400, "...");
 *     while (proof != NULL && !proof->class->is_over(transaction, proof))
 *         return STEP_WAIT;                       the transaction's task runs when there is news
 *     ... transaction->identity is set if the credentials were good
 *     proof->class->end(proof);
 *
 * The credentials are Proxy-Authorization on forward listeners, Authorization on reverse ones, and
 * the certificate of the client's connection.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_PROOF_H
#define RETORT_TRANSACTION_PROOF_H

#include "base/slice.h"
#include "transaction/step.h"

struct access_settings;
struct transaction;

/* Authenticators of the settings, a bit for each: there are at most 64 (parts/identity/settings.c). */
typedef uint64_t proof_set;

/* Begins the struct of who looks at the credentials. */
struct proof {
    const struct proof_class *class;
    struct slice answer; /* of a good proof: for the response; empty: none */
};

struct proof_class {
    /* Lets those of `wanted` look at the credentials that are theirs. False: the credentials are in several fields, are
     * empty, or are too long. */
    bool (*begin)(struct transaction *transaction, proof_set wanted, struct proof **proof);
    /* False: wait. */
    bool (*is_over)(struct transaction *transaction, struct proof *proof);
    /* The section wants a user, and nobody is proved: tells the client what to send, or why that is of no use now. `proof`
     * NULL: no credentials were looked at. */
    enum step (*ask)(struct transaction *transaction, const struct proof *proof,
                     const struct access_settings *section);
    /* Ends what is under way, and wipes the credentials. It may be called again. */
    void (*end)(struct proof *proof);
};

#endif
