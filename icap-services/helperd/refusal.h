/*
 * Why a job is refused: counted, told to whoever brought it, and shown by `retortctl helpers`.
 *
 *     counts->refusals[REFUSAL_SHARE]++;
 *     refusal_text(REFUSAL_SHARE)       "share", as in JSON
 *     refusal_reason(REFUSAL_SHARE)     a sentence
 */
#ifndef RETORT_HELPERD_REFUSAL_H
#define RETORT_HELPERD_REFUSAL_H

enum refusal {
    REFUSAL_NONE,
    REFUSAL_QUEUE_FULL, /* and nobody has more of it than this client */
    REFUSAL_SHARE,      /* it had to give its place to a client that has less in the queue */
    REFUSAL_TOO_LATE,   /* it could not be done before its deadline */
    REFUSAL_BREAKER,
    REFUSAL_STOPPING,
    REFUSAL_COUNT
};

const char *refusal_text(enum refusal refusal);
const char *refusal_reason(enum refusal refusal);

#endif
