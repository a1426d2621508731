/*
 * Which exchanges are meant.
 *
 *     struct icap_exchange_filter filter = {0};
 *     if (!icap_exchange_filter_set(&filter, "host", "www.example.com", error)) ...
 *     if (icap_exchange_filter_fits(&filter, &exchange) && icap_exchange_filter_takes(...)) ...
 *     icap_exchange_filter_release(&filter);
 *
 * All that were set must hold: service, point, host, prefix and regex (of the URL), status (of the
 * HTTP response that went to the service), verdict, and sample: one of so many.
 *
 * Threads: `fits` only reads; `takes` counts, from any thread.
 */
#ifndef RETORT_ICAP_EXCHANGE_FILTER_H
#define RETORT_ICAP_EXCHANGE_FILTER_H

#include "icap/exchange.h"
#include "settings/regex.h"

enum { ICAP_FILTER_ERROR = 300 };

struct icap_exchange_filter {
    char *service, *point, *host, *prefix, *regex, *verdict; /* NULL: any */
    struct regexes regexes;
    uint64_t status, sample; /* 0: any */
    _Atomic uint64_t seen;
};

/* The names that can be set; ends with NULL. */
extern const char *const icap_exchange_filter_names[];

bool icap_exchange_filter_set(struct icap_exchange_filter *filter, const char *name,
                              const char *value, char error[ICAP_FILTER_ERROR]);
/* What is known when an exchange begins: all but verdict and sample. */
bool icap_exchange_filter_fits(struct icap_exchange_filter *filter,
                               const struct icap_exchange *exchange);
/* Of those that fit: is it one of the sample? */
bool icap_exchange_filter_takes(struct icap_exchange_filter *filter);
bool icap_exchange_filter_fits_verdict(const struct icap_exchange_filter *filter,
                                       const struct icap_exchange *exchange);
void icap_exchange_filter_release(struct icap_exchange_filter *filter);

#endif
