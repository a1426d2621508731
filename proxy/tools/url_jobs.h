/*
 * The same work for many URLs, several at a time, with a bar of progress at a terminal.
 *
 *     struct url_jobs jobs = {.jobs = 4, .rate = 100, .run = fetch, .context = &preload};
 *     url_jobs_add(&jobs, "http://a.org/b");
 *     url_jobs_add(&jobs, "@urls.txt");                    one a line; # begins a comment
 *     url_jobs_run(&jobs);
 *     printf("%zu did not work\n", jobs.failed);
 *     url_jobs_release(&jobs);
 *
 * `run` is called in threads, for a URL each, and prints with url_jobs_say.
 */
#ifndef RETORT_TOOLS_URL_JOBS_H
#define RETORT_TOOLS_URL_JOBS_H

#include "tools/terminal.h"

#include <jansson.h>
#include <pthread.h>

enum { URL_JOBS_MAX = 256, URL_JOBS_RATE = 100, URL_JOBS_RATE_MAX = 1000000 };

struct url_jobs {
    unsigned jobs; /* at a time */
    unsigned rate; /* a second at most; 0: no limit */
    bool (*run)(struct url_jobs *jobs, const char *url);
    void *context;
    size_t failed; /* URLs for which run returned false, and unreadable lists */
    /* Inside. */
    char **urls;
    size_t count, capacity, next;
    uint64_t next_due; /* nanoseconds of the monotonic clock */
    pthread_mutex_t lock;
    struct progress progress;
};

/* A URL, or "@FILE". */
void url_jobs_add(struct url_jobs *jobs, const char *word);
/* Returns when all URLs are done. */
void url_jobs_run(struct url_jobs *jobs);
void url_jobs_say(struct url_jobs *jobs, FILE *out, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Prints the object with "url" in front, in a line. Takes the reference. */
void url_jobs_say_json(struct url_jobs *jobs, const char *url, json_t *about);
void url_jobs_release(struct url_jobs *jobs);

/*
 * A request to a listener of the proxy, as clients make them, to fill the cache: `run` of url_jobs, with
 * a struct preload as its context. A line shows its status; failures are on stderr. A request without a
 * whole answer, or with a status of 400 and more, has failed.
 */

struct preload {
    const char *via;            /* ADDRESS:PORT */
    const char *const *headers; /* lines for each request */
    unsigned header_count;
    bool again; /* ask the origin even if a stored response is fresh */
    bool json;
};

bool preload_fetch(struct url_jobs *jobs, const char *url);

#endif
