/*
 * The outcome of a transaction, as its line in the access log says it: how the cache took part, the
 * status that the client got, and what went wrong.
 *
 *     slice_put(at, cache_result_name(RESULT_HIT));          "HIT"
 *     slice_put(at, cache_result_squid_name(RESULT_HIT));    "TCP_MEM_HIT"
 *
 * Threads: values.
 */
#ifndef RETORT_TRANSACTION_OUTCOME_H
#define RETORT_TRANSACTION_OUTCOME_H

#include "base/slice.h"

enum cache_result {
    RESULT_NONE,
    RESULT_HIT,
    RESULT_STALE, /* a hit on a stale object that the request allows */
    RESULT_MISS,
    RESULT_REVALIDATED, /* the origin confirmed what is stored */
    RESULT_REFRESHED,   /* stale, and the origin sent something new */
    RESULT_PASS,        /* not a matter for the cache */
    RESULT_TUNNEL,
    RESULT_BUMP,    /* the requests inside the TLS connection have lines of their own */
    RESULT_SERVICE, /* an adaptation service answered */
    RESULT_DENIED,
    RESULT_ERROR,
};

/* Written by outcome.h. */
struct outcome {
    enum cache_result result;
    unsigned status;   /* of the response, as the client got it */
    const char *error; /* for the log and the error page; NULL: none */
    const char *step;  /* that decided it; NULL: DELIVER */
    const char
        *limit; /* the limit section that has refused the request or broken it off; NULL: none */
};

static inline void outcome_set_result(struct outcome *outcome, enum cache_result result) {
    outcome->result = result;
}

static inline void outcome_set_status(struct outcome *outcome, unsigned status) {
    outcome->status = status;
}

/* The answer is a page of the proxy's own, which that step has made. */
static inline void outcome_set_page(struct outcome *outcome, enum cache_result result,
                                    const char *step) {
    outcome->result = result;
    outcome->step = step;
}

static inline void outcome_set_error(struct outcome *outcome, const char *error) {
    outcome->error = error;
}

/* Refuses the request, or breaks it off: the limit section of that name, which lives as long as the settings. */
static inline void outcome_set_limit(struct outcome *outcome, const char *limit) {
    outcome->limit = limit;
}

struct slice cache_result_name(enum cache_result result);
/* Squid's name for the result, which log analysers for Squid understand. */
struct slice cache_result_squid_name(enum cache_result result);

#endif
