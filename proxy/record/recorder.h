/*
 * A recorder: which exchanges with ICAP services are recorded, and those that wait to be fetched.
 * All workers have the same one; whoever asked for the recording takes what they put in.
 *
 *     struct recorder *recorder = recorder_new(&filter, &limits, masked);
 *     ... every worker's net_context gets a reference; icap/recording.h uses it ...
 *     bytes = recorder_take(recorder, &length);       records; again and again
 *     recorder_stop(recorder, "stopped");
 *     bytes = recorder_take(recorder, &length);       what is left, at last the END
 *     recorder_release(&recorder);
 *
 * It never makes anybody wait: an exchange for which there is no room within `memory` is dropped as
 * a whole, and counted. A recording ends by itself when it has so many exchanges or so many seconds
 * have passed, or when nothing was taken for RECORDER_PATIENCE; then what waits is forgotten,
 * however it ended. Workers let go of it when they next look at it and find it over and empty.
 *
 * Threads: all of it from any thread; a mutex guards the queue.
 */
#ifndef RETORT_RECORD_RECORDER_H
#define RETORT_RECORD_RECORDER_H

#include "record/filter.h"

struct recorder;

enum { RECORDER_PATIENCE = 5 /* seconds */, RECORDER_ERROR = RECORD_FILTER_ERROR };

struct recorder_limits {
    uint64_t body;      /* bytes kept of each body */
    uint64_t memory;    /* bytes that wait, those of exchanges under way too */
    uint64_t exchanges; /* then it ends */
    uint64_t seconds;   /* likewise */
};

/* NOT_WANTED: its verdict is another, or the recording is over. */
enum icap_keeping { ICAP_KEPT, ICAP_NOT_WANTED, ICAP_DROPPED };

/* With defaults; and the most that each may be. */
#define RECORDER_LIMITS ((struct recorder_limits){1 << 20, 64 << 20, 1000, 60})
#define RECORDER_MOST                                                                              \
    ((struct recorder_limits){RECORDED_BODY_MAX, (uint64_t)1 << 30, 1000000, 86400})

/* Takes over what is in the filter. */
struct recorder *recorder_new(struct record_filter *filter, const struct recorder_limits *limits,
                              bool masked);
struct recorder *recorder_reference(struct recorder *recorder);
void recorder_release(struct recorder **recorderp);
/* Tells recordings apart. */
uint64_t recorder_number(const struct recorder *recorder);

/* For whoever asked: whole records, some megabytes at most; NULL: none now. The caller frees them.
 * Behind the END there is nothing more. */
char *recorder_take(struct recorder *recorder, size_t *length);
void recorder_stop(struct recorder *recorder, const char *reason);

/* For the workers. */
/* Has it forget what nobody takes any more. */
bool recorder_is_over(struct recorder *recorder);
/* Nothing waits, and no exchange is under way. */
bool recorder_is_empty(const struct recorder *recorder);
size_t recorder_body_most(const struct recorder *recorder);
bool recorder_masks(const struct recorder *recorder);
/* Counts the exchange as under way until one of the three ends. */
bool recorder_begin(struct recorder *recorder, const struct recorded_exchange *exchange);
bool recorder_reserve(struct recorder *recorder, size_t bytes);
void recorder_unreserve(struct recorder *recorder, size_t bytes);
enum icap_keeping recorder_keep(struct recorder *recorder,
                                const struct recorded_exchange *exchange);
void recorder_drop(struct recorder *recorder);

#endif
