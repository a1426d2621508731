/*
 * The reasons why a job is refused. A pool counts them, its client is told them, and
 * `retortctl helpers` shows them.
 *
 *     counts->refusals[REFUSAL_SHARE]++;
 *     refusal_text(REFUSAL_SHARE)       "share", as in JSON
 *     refusal_reason(REFUSAL_SHARE)     a sentence
 */
#ifndef RETORT_HELPERD_REFUSAL_H
#define RETORT_HELPERD_REFUSAL_H

enum refusal {
    REFUSAL_NONE,
    REFUSAL_QUEUE_FULL, /* the queue is full, and no client has more in it than this one */
    REFUSAL_SHARE,      /* it had to give its place to a client that has less in the queue */
    REFUSAL_TOO_LATE,   /* it could not be done before its deadline */
    REFUSAL_BREAKER,
    REFUSAL_STOPPING,
    REFUSAL_COUNT
};

const char *refusal_text(enum refusal refusal);
const char *refusal_reason(enum refusal refusal);

#endif
