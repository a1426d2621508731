/*
 * Requests to a listener of the proxy, as clients make them, to fill the cache.
 *
 *     struct preload preload = {.via = "127.0.0.1:3128"};
 *     struct url_jobs jobs = {.jobs = 1, .rate = 100, .run = preload_fetch, .context = &preload};
 *
 * A line for each shows its status; failures are on stderr. A request without a whole answer, or
 * with a status of 400 and more, has failed.
 *
 * Threads: those of url_jobs; the struct does not change.
 */
#ifndef RETORT_TOOLS_PRELOAD_H
#define RETORT_TOOLS_PRELOAD_H

#include "tools/url_jobs.h"

struct preload {
    const char *via;            /* ADDRESS:PORT */
    const char *const *headers; /* lines for each request */
    unsigned header_count;
    bool again; /* ask the origin even if a stored response is fresh */
    bool json;
};

bool preload_fetch(struct url_jobs *jobs, const char *url);

#endif
