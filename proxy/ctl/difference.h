/*
 * In what an answer of a service differs from the one that was recorded.
 *
 *     struct difference difference = {.exchange = &exchange, .number = 7, ...};
 *     difference_verdict(&difference, "modified", NULL);
 *     difference_head(&difference, head);                       as it came; NULL: none did
 *     difference_body(&difference, bytes, length);              again and again
 *     difference_body_end(&difference);
 *     if (difference.found != 0) ...
 *
 * Each is told as it is found: a line on the standard output, or an object in a JSON array. 200 and
 * 206 are the same verdict: what counts is the message that comes of it.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_CTL_DIFFERENCE_H
#define RETORT_CTL_DIFFERENCE_H

#include "http/head.h"
#include "record/recorded_exchange.h"

#include <jansson.h>

enum { DIFFERENCE_VERDICT = 1, DIFFERENCE_HEAD = 2, DIFFERENCE_BODY = 4 };

struct XXH3_state_s;

struct difference {
    const struct recorded_exchange *exchange; /* as it was recorded */
    uint64_t number;                          /* of it, in its file */
    json_t *told;                             /* where to tell it; NULL: the standard output */
    const char *const *ignored;               /* names of fields, besides the usual ones */
    unsigned ignored_count;
    unsigned found; /* of the three kinds */
    /* of the body */
    uint64_t length, differs_at;
    bool differs;
    struct XXH3_state_s *sum;
};

/* `error` of a failure, else NULL. */
void difference_verdict(struct difference *difference, const char *verdict, const char *error);
void difference_head(struct difference *difference, const struct http_head *head);
void difference_body(struct difference *difference, const char *bytes, size_t length);
void difference_body_end(struct difference *difference);
/* A sentence about the exchange. */
void difference_remark(struct difference *difference, const char *remark);
void difference_release(struct difference *difference);

#endif
