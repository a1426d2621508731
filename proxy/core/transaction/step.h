/*
 * The steps of a transaction, in their order, which is the core's. A step is a row of data that stands in the file of
 * its functions (transaction/steps/, or the folder of a part):
 *
 *     static bool reqmod_is_needed(const struct settings *settings) {
 *         return settings->asks_at[ADAPT_REQMOD_PRECACHE];
 *     }
 *
 *     const struct step_row reqmod_step = {
 *         .name = "REQMOD",
 *         .step = STEP_REQMOD,
 *         .run = reqmod_run,
 *         .is_needed = reqmod_is_needed,
 *         .begins = true,
 *         .end = reqmod_end,
 *     };
 *
 * When settings come into use, steps_compile lists the rows that these settings need. The runner
 * (transaction.c) goes through that list and asks nobody else: it calls `run` of a step, and what
 * that returns says where to go:
 *
 *     STEP_NEXT        the next step of the list that is wanted
 *     STEP_WAIT        the same step again, when transaction->task runs
 *     another one      which lies ahead: this step, or the first one behind it that is wanted.
 *                      STEP_ANSWER is only a place: where a response is that the client may get
 *
 * No step is called from inside a step. What begins last ends first: `let_go` and `end` are called
 * from the end of the list to its beginning.
 *
 * Threads: the worker's; a list is not changed once its settings are in use.
 */
#ifndef RETORT_TRANSACTION_STEP_H
#define RETORT_TRANSACTION_STEP_H

#include <stdbool.h>
#include <stdint.h>

enum step {
    STEP_RECEIVE,
    STEP_ADMIT,
    STEP_ACCESS,
    STEP_LIMIT,
    STEP_PURGE,
    STEP_COLLECT,
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
    STEP_TUNNEL,
    STEP_ANSWER,
    STEP_VARIANT,
    STEP_RESPMOD_POSTCACHE,
    STEP_DELIVER,
    STEP_LOG,
    STEP_DONE,
    STEP_WAIT,
    STEP_NEXT,
};

struct adapt_chain;
struct settings;
struct transaction;

struct step_row {
    const char *name;
    enum step step;
    enum step (*run)(struct transaction *transaction); /* NULL: the end */
    /* Can transactions of these settings come here? NULL: yes. */
    bool (*is_needed)(const struct settings *settings);
    /* Is it for this transaction? Asked once, when the transaction comes here. NULL: yes. */
    bool (*is_wanted)(struct transaction *transaction);
    bool begins; /* something that `let_go` and `end` end. A step that waits does so in any case */
    /* The client goes: nothing of its exchange may be read behind this. NULL: nothing is. */
    void (*let_go)(struct transaction *transaction);
    /* Ends what the step has begun, as far as it is there. NULL: it begins nothing. */
    void (*end)(struct transaction *transaction);
    /* The services that it asks; NULL: none, or not yet. */
    const struct adapt_chain *(*chain)(const struct transaction *transaction);
    /* Of STEP_INTERCEPT: does it show why ACCESS refuses this CONNECT (access->refusal)? If not, the answer is in clear
     * text. */
    bool (*shows_refusal)(struct transaction *transaction);
};

enum { STEP_CHAINS = 5 }; /* steps that ask services */

struct step_list {
    const struct step_row *rows[STEP_DONE + 1]; /* the last one is that of STEP_DONE */
    unsigned count;                             /* without that */
    uint8_t at[STEP_DONE + 1]; /* for each step: its row, or the first one behind it */
    uint32_t let_go, end;      /* a bit for each row that has such a function */
    const struct step_row *chains[STEP_CHAINS];
    unsigned chain_count;
};

/* The rows of the core, each in the file of its step. A part has a list of its own (part.h). */
extern const struct step_row receive_step, admit_step, lookup_step, fetch_step, store_step,
    tunnel_step, deliver_step, log_step;

/* Is the step in the list? */
static inline bool step_is_listed(const struct step_list *list, enum step step) {
    return list->rows[list->at[step]]->step == step;
}

/* Lists the steps that the settings need. The settings own the list and free it. */
void steps_compile(struct settings *settings);

const char *step_name(enum step step);

#endif
