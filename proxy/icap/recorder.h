/*
 * A recorder: which exchanges with ICAP services are recorded, and those that wait to be fetched.
 * All workers have the same one; whoever asked for the recording takes what they put in.
 *
 *     struct icap_recorder *recorder = icap_recorder_new(&filter, &limits, masked);
 *     ... every worker's net_context gets a reference; icap/recording.h uses it ...
 *     bytes = icap_recorder_take(recorder, &length);       records; again and again
 *     icap_recorder_stop(recorder, "stopped");
 *     bytes = icap_recorder_take(recorder, &length);       what is left, at last the END
 *     icap_recorder_release(&recorder);
 *
 * It never makes anybody wait: an exchange for which there is no room within `memory` is dropped as
 * a whole, and counted. A recording ends by itself when it has so many exchanges or so many seconds
 * have passed, or when nothing was taken for ICAP_RECORDER_PATIENCE; then what waits is forgotten,
 * however it ended. Workers let go of it when they next look at it and find it over and empty.
 *
 * Threads: all of it from any thread; a mutex guards the queue.
 */
#ifndef RETORT_ICAP_RECORDER_H
#define RETORT_ICAP_RECORDER_H

#include "icap/exchange_filter.h"

struct icap_recorder;

enum { ICAP_RECORDER_PATIENCE = 5 /* seconds */, ICAP_RECORDER_ERROR = ICAP_FILTER_ERROR };

struct icap_recorder_limits {
    uint64_t body;      /* bytes kept of each body */
    uint64_t memory;    /* bytes that wait, those of exchanges under way too */
    uint64_t exchanges; /* then it ends */
    uint64_t seconds;   /* likewise */
};

/* NOT_WANTED: its verdict is another, or the recording is over. */
enum icap_keeping { ICAP_KEPT, ICAP_NOT_WANTED, ICAP_DROPPED };

/* With defaults; and the most that each may be. */
#define ICAP_RECORDER_LIMITS ((struct icap_recorder_limits){1 << 20, 64 << 20, 1000, 60})
#define ICAP_RECORDER_MOST                                                                         \
    ((struct icap_recorder_limits){ICAP_RECORD_BODY_MAX, (uint64_t)1 << 30, 1000000, 86400})

/* Takes over what is in the filter. */
struct icap_recorder *icap_recorder_new(struct icap_exchange_filter *filter,
                                        const struct icap_recorder_limits *limits, bool masked);
struct icap_recorder *icap_recorder_reference(struct icap_recorder *recorder);
void icap_recorder_release(struct icap_recorder **recorderp);
/* Tells recordings apart. */
uint64_t icap_recorder_number(const struct icap_recorder *recorder);

/* For whoever asked: whole records, some megabytes at most; NULL: none now. The caller frees them.
 * Behind the END there is nothing more. */
char *icap_recorder_take(struct icap_recorder *recorder, size_t *length);
void icap_recorder_stop(struct icap_recorder *recorder, const char *reason);

/* For the workers. */
/* Has it forget what nobody takes any more. */
bool icap_recorder_is_over(struct icap_recorder *recorder);
/* Nothing waits, and no exchange is under way. */
bool icap_recorder_is_empty(const struct icap_recorder *recorder);
size_t icap_recorder_body_most(const struct icap_recorder *recorder);
bool icap_recorder_masks(const struct icap_recorder *recorder);
/* Counts the exchange as under way until one of the three ends. */
bool icap_recorder_begin(struct icap_recorder *recorder, const struct icap_exchange *exchange);
bool icap_recorder_reserve(struct icap_recorder *recorder, size_t bytes);
void icap_recorder_unreserve(struct icap_recorder *recorder, size_t bytes);
enum icap_keeping icap_recorder_keep(struct icap_recorder *recorder,
                                     const struct icap_exchange *exchange);
void icap_recorder_drop(struct icap_recorder *recorder);

#endif
