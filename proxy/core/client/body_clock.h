/*
 * How long a client may still take to send more of a request's body: client.body_timeout from one
 * piece to the next, and client.min_rate over all of the time in which somebody waited for it.
 *
 *     uint64_t left = body_clock_wait(&clock, settings, loop->now_nanoseconds);
 *     if (left == 0) ...                                     the client is too slow
 *     body_clock_got(&clock, loop->now_nanoseconds);         some bytes have come
 *
 * The struct begins as {0}. Threads: the worker's. Times: milliseconds, but for `now`.
 */
#ifndef RETORT_CLIENT_BODY_CLOCK_H
#define RETORT_CLIENT_BODY_CLOCK_H

#include "settings/settings.h"

struct body_clock {
    uint64_t got;         /* bytes, as client.min_rate counts them */
    uint64_t waits_since; /* nanoseconds; 0: nobody waits for the client to send more of it */
    uint64_t waited;      /* before that, nanoseconds */
    uint64_t shut_seen;   /* of what body_clock_forgive was told, nanoseconds */
    uint64_t forgiven;    /* nanoseconds, in all */
    bool by_rate;         /* the time that is left comes from client.min_rate */
};

/* How many milliseconds so many bytes may take; client.min_rate is not 0. */
static inline uint64_t client_slowest_time(const struct settings *settings, uint64_t bytes) {
    return settings->client.min_rate_after + bytes * 1000 / settings->client.min_rate;
}

/* Somebody waits for more. Returns how long the client has; 0: no time at all. */
uint64_t body_clock_wait(struct body_clock *clock, const struct settings *settings, uint64_t now);
void body_clock_got(struct body_clock *clock, uint64_t now);
/* The client could not send for `shut` nanoseconds in all, since a time before this body. What of that
 * lies in the wait does not count, up to ten times client.body_timeout for one body. To be called at
 * the beginning of a wait and at its end. Returns how many milliseconds were taken off. */
uint64_t body_clock_forgive(struct body_clock *clock, const struct settings *settings,
                            uint64_t shut, uint64_t now);

#endif
