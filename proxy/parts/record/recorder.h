/*
 * A recorder: the choice of ICAP exchanges to record, and the queue of recorded exchanges. All
 * workers share one recorder; the client that started the recording fetches the exchanges.
 *
 *     struct recorder *recorder = recorder_new(&filter, &limits, masked);
 *     ... every worker gets a reference (record/record.h) ...
 *     bytes = recorder_take(recorder, &length);       records; again and again
 *     recorder_stop(recorder, "stopped");
 *     bytes = recorder_take(recorder, &length);       what is left, at last the END
 *     recorder_release(&recorder);
 *
 * The recorder never makes a worker wait. An exchange that does not fit into `memory` is dropped as
 * a whole and counted. A recording ends after the given number of exchanges or seconds, or when
 * nothing was fetched for RECORDER_PATIENCE; exchanges that still wait are then dropped. Workers
 * release the recorder when they find that it has ended and is empty. A recorder for a sink
 * (recorder_for) holds only exchanges in progress.
 *
 * Threads: all of it from any thread; a mutex guards the queue.
 */
#ifndef RETORT_RECORD_RECORDER_H
#define RETORT_RECORD_RECORDER_H

#include "match/record_filter.h"

struct recorder;

enum { RECORDER_PATIENCE = 5 /* seconds */, RECORDER_ERROR = RECORD_FILTER_ERROR };

struct recorder_limits {
    uint64_t body;      /* recorded bytes of each body */
    uint64_t memory;    /* bytes of waiting exchanges, with those in progress */
    uint64_t exchanges; /* the recording ends after so many exchanges */
    uint64_t seconds;   /* likewise */
};

/* NOT_WANTED: the verdict does not match, or the recording has ended. */
enum icap_keeping { ICAP_KEPT, ICAP_NOT_WANTED, ICAP_DROPPED };

/* The defaults and the largest value of each limit. */
#define RECORDER_LIMITS ((struct recorder_limits){1 << 20, 64 << 20, 1000, 60})
#define RECORDER_MOST                                                                              \
    ((struct recorder_limits){RECORDED_BODY_MAX, (uint64_t)1 << 30, 1000000, 86400})

/* Who gets exchanges in place of a client that fetches them: a store that knows by the transaction's
 * id what it wants, and whether secrets in it are to be masked. Called from the workers' threads. */
struct recorder_sink {
    bool (*is_over)(void *arg); /* it wants no more */
    bool (*wants)(void *arg, struct slice id, bool *masked);
    void (*keep)(void *arg, struct slice id, char *record,
                 size_t length);              /* takes the bytes over */
    void (*lose)(void *arg, struct slice id); /* one that it wanted found no memory */
    void *arg;
};

/* Takes over the content of the filter. */
struct recorder *recorder_new(struct record_filter *filter, const struct recorder_limits *limits,
                              bool masked);
/* What the sink wants; it outlives the workers. Of the limits, body, memory and seconds count. */
struct recorder *recorder_for(const struct recorder_sink *sink,
                              const struct recorder_limits *limits);
struct recorder *recorder_reference(struct recorder *recorder);
void recorder_release(struct recorder **recorderp);
/* The number identifies a recording. */
uint64_t recorder_number(const struct recorder *recorder);

/* For the client that started the recording: returns whole records, at most a few megabytes, or
 * NULL when there are none now. The caller frees them. Nothing follows the END. */
char *recorder_take(struct recorder *recorder, size_t *length);
void recorder_stop(struct recorder *recorder, const char *reason);

/* For the workers. */
/* Drops exchanges that no client fetches any more. */
bool recorder_is_over(struct recorder *recorder);
/* True when nothing waits and no exchange is in progress. */
bool recorder_is_empty(const struct recorder *recorder);
size_t recorder_body_most(const struct recorder *recorder);
/* For the client that fetches. */
bool recorder_masks(const struct recorder *recorder);
/* Sets recorded->masked: whether secrets in this exchange are to be masked. Counts the exchange as in
 * progress until one of the three calls ends it. */
bool recorder_begin(struct recorder *recorder, struct recorded_exchange *recorded);
bool recorder_reserve(struct recorder *recorder, size_t bytes);
void recorder_unreserve(struct recorder *recorder, size_t bytes);
enum icap_keeping recorder_keep(struct recorder *recorder,
                                const struct recorded_exchange *recorded);
void recorder_drop(struct recorder *recorder, struct slice id);

#endif
