/*
 * The steps of a transaction, in their order, each in a file of its own (transaction/steps/).
 *
 *     enum step next = step_receive(transaction);       what transaction.c does with its table
 *     if (next != STEP_WAIT)
 *         log_debug("%s", step_name(next));
 *
 * A step returns the step that follows, which lies ahead, or STEP_WAIT: then it runs again when
 * transaction->task does.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_TRANSACTION_STEP_H
#define RETORT_TRANSACTION_STEP_H

enum step {
    STEP_RECEIVE,
    STEP_ADMIT,
    STEP_ACCESS,
    STEP_LIMIT,
    STEP_PURGE,
    STEP_DESTINATION,
    STEP_INTERCEPT,
    STEP_REWRITE,
    STEP_REQMOD,
    STEP_RECHECK,
    STEP_LOOKUP,
    STEP_REQMOD_POSTCACHE,
    STEP_BUMP,
    STEP_FETCH,
    STEP_RESPMOD,
    STEP_STORE,
    STEP_VARIANT,
    STEP_RESPMOD_POSTCACHE,
    STEP_TUNNEL,
    STEP_DELIVER,
    STEP_LOG,
    STEP_DONE,
    STEP_WAIT, /* not a step: the same one again, later */
};

struct transaction;

const char *step_name(enum step step);

/* The steps. */
enum step step_receive(struct transaction *transaction);
enum step step_admit(struct transaction *transaction);
enum step step_access(struct transaction *transaction);
enum step step_limit(struct transaction *transaction);
enum step step_purge(struct transaction *transaction);
enum step step_destination(struct transaction *transaction);
enum step step_intercept(struct transaction *transaction);
enum step step_rewrite(struct transaction *transaction);
enum step step_reqmod(struct transaction *transaction);
enum step step_recheck(struct transaction *transaction);
enum step step_lookup(struct transaction *transaction);
enum step step_reqmod_postcache(struct transaction *transaction);
enum step step_bump(struct transaction *transaction);
enum step step_fetch(struct transaction *transaction);
enum step step_respmod(struct transaction *transaction);
enum step step_store(struct transaction *transaction);
enum step step_variant(struct transaction *transaction);
enum step step_respmod_postcache(struct transaction *transaction);
enum step step_tunnel(struct transaction *transaction);
enum step step_deliver(struct transaction *transaction);
enum step step_log(struct transaction *transaction);

#endif
