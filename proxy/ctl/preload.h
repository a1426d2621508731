/*
 * Requests to a listener of the proxy, as clients make them, for what they bring into the cache.
 *
 *     struct preload preload = {.via = "127.0.0.1:3128", .rate = PRELOAD_RATE};
 *     preload_word(&preload, "http://a.org/b");
 *     preload_word(&preload, "@urls.txt");                 one a line; # begins a comment
 *     printf("%u did not work\n", preload.failed);
 *
 * One after the other, each begun no sooner than the rate allows. A line for each says its status;
 * what went wrong stands on stderr.
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
    bool again;        /* the origin is to be asked, whatever is stored */
    unsigned rate;     /* requests a second at most; 0: no limit */
    unsigned failed;   /* no answer, a status of 400 and more, or a list that can't be read */
    uint64_t next_due; /* nanoseconds of the monotonic clock */
};

/* False: that is no rate. */
bool preload_read_rate(struct preload *preload, const char *text);
/* A URL, or "@FILE". */
void preload_word(struct preload *preload, const char *word);

#endif
