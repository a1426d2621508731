/*
 * Filters for exchanges.
 *
 *     struct record_filter filter = {0};
 *     if (!record_filter_set(&filter, "host", "www.example.com", error)) ...
 *     if (record_filter_fits(&filter, &recorded) && record_filter_takes(...)) ...
 *     record_filter_release(&filter);
 *
 * An exchange must match all filters that are set: service, point, host, prefix and regex (of the
 * URL), status (of the HTTP response that went to the service), verdict, and sample (one of N).
 *
 * Threads: `fits` only reads; `takes` counts, from any thread.
 */
#ifndef RETORT_MATCH_RECORD_FILTER_H
#define RETORT_MATCH_RECORD_FILTER_H

#include "match/regex.h"
#include "record/recorded_exchange.h"

enum { RECORD_FILTER_ERROR = 300 };

struct record_filter {
    char *service, *point, *host, *prefix, *regex, *verdict; /* NULL: any */
    struct regexes regexes;
    uint64_t status, sample; /* 0: any */
    _Atomic uint64_t seen;
};

/* The names of all filters; ends with NULL. */
extern const char *const record_filter_names[];

bool record_filter_set(struct record_filter *filter, const char *name, const char *value,
                       char error[RECORD_FILTER_ERROR]);
/* Checks all filters except verdict and sample, which are not known when an exchange begins. */
bool record_filter_fits(struct record_filter *filter, const struct recorded_exchange *recorded);
/* Counts an exchange that fits, and returns whether it belongs to the sample. */
bool record_filter_takes(struct record_filter *filter);
bool record_filter_fits_verdict(const struct record_filter *filter,
                                const struct recorded_exchange *recorded);
void record_filter_release(struct record_filter *filter);

#endif
