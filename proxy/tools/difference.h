/*
 * The differences between an answer of a service and the recorded one.
 *
 *     struct difference difference = {.recorded = &recorded, .number = 7, ...};
 *     difference_verdict(&difference, "modified", NULL);
 *     difference_head(&difference, head);                       as it came; NULL: none did
 *     difference_body(&difference, bytes, length);              again and again
 *     difference_body_end(&difference);
 *     if (difference.found != 0) ...
 *
 * Each difference is written when it is found: as a line on the standard output, or as an object in
 * a JSON array. 200 and 206 count as the same verdict, because only the resulting message matters.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_TOOLS_DIFFERENCE_H
#define RETORT_TOOLS_DIFFERENCE_H

#include "http/head.h"
#include "record/recorded_exchange.h"

#include <jansson.h>

enum { DIFFERENCE_VERDICT = 1, DIFFERENCE_HEAD = 2, DIFFERENCE_BODY = 4 };

struct XXH3_state_s;

struct difference {
    const struct recorded_exchange *recorded; /* the exchange as it was recorded */
    uint64_t number;                          /* number of the exchange in its file */
    json_t *json;                             /* the array for differences; NULL: lines on the
                                               * standard output */
    const char *const *ignored;               /* names of fields that may differ, besides the
                                               * usual ones */
    unsigned ignored_count;
    unsigned found; /* differences of the three kinds */
    /* state of the body */
    uint64_t length, differs_at;
    bool differs;
    struct XXH3_state_s *sum;
};

/* `error` is set for a failure, else NULL. */
void difference_verdict(struct difference *difference, const char *verdict, const char *error);
void difference_head(struct difference *difference, const struct http_head *head);
void difference_body(struct difference *difference, const char *bytes, size_t length);
void difference_body_end(struct difference *difference);
/* Writes a sentence about the exchange. */
void difference_remark(struct difference *difference, const char *remark);
void difference_release(struct difference *difference);

#endif
