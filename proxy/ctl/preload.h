/*
 * Requests to a listener of the proxy, as clients make them, to fill the cache.
 *
 *     struct preload preload = {.via = "127.0.0.1:3128", .rate = PRELOAD_RATE};
 *     preload_word(&preload, "http://a.org/b");
 *     preload_word(&preload, "@urls.txt");                 one a line; # begins a comment
 *     printf("%u did not work\n", preload.failed);
 *
 * Requests are made one after the other, not faster than the rate allows. A line for each shows its
 * status; failures are on stderr.
 *
 * Threads: values. Blocks.
 */
#ifndef RETORT_CTL_PRELOAD_H
#define RETORT_CTL_PRELOAD_H

#include <stdbool.h>
#include <stdint.h>

enum { PRELOAD_RATE = 100 };

struct preload {
    const char *via;            /* ADDRESS:PORT */
    const char *const *headers; /* lines for each request */
    unsigned header_count;
    bool again;        /* ask the origin even if a stored response is fresh */
    unsigned rate;     /* requests a second at most; 0: no limit */
    unsigned failed;   /* requests without an answer or with a status of 400 and more, and
                        * unreadable lists */
    uint64_t next_due; /* nanoseconds of the monotonic clock */
};

/* Returns false when the text is not a rate. */
bool preload_read_rate(struct preload *preload, const char *text);
/* A URL, or "@FILE". */
void preload_word(struct preload *preload, const char *word);

#endif
