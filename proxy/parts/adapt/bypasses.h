/*
 * The messages that passed a service without it because it failed and has `bypass`: how many, and
 * since when. The log tells of the first one, and then once a minute how many more there were,
 * until a minute passes without one.
 *
 *     struct bypasses *bypasses = bypasses_new("gray");        of all workers
 *     struct bypass_log log;
 *     bypass_log_init(&log, bypasses, loop);                   one in each worker
 *     bypass_log_note(&log, "it closed the connection");
 *     bypass_log_release(&log);
 *
 * The worker that has the first message writes the lines. When it goes it writes what is left.
 *
 * Threads: struct bypasses any, without a lock; a bypass_log is its worker's. Ownership of struct
 * bypasses: references.
 */
#ifndef RETORT_ADAPT_BYPASSES_H
#define RETORT_ADAPT_BYPASSES_H

#include "event/loop.h"

#include <stdatomic.h>

enum { BYPASS_LOG_EVERY = 60000, BYPASS_LOG_REASON = 200 };

struct bypasses {
    unsigned magic;
#define BYPASSES_MAGIC 0x1ca90adau
    _Atomic unsigned references;
    char *service;
    _Atomic uint64_t count;  /* since the start */
    _Atomic uint64_t before; /* those before `since` */
    _Atomic int64_t since;   /* seconds since 1970; 0: no message is bypassed now */
    _Atomic bool logged;     /* some worker's bypass_log is active */
};

struct bypasses *bypasses_new(const char *service);
struct bypasses *bypasses_reference(struct bypasses *bypasses);
void bypasses_release(struct bypasses **bypassesp);

/* The number of messages since `since`. */
static inline uint64_t bypasses_count(const struct bypasses *bypasses) {
    return atomic_load(&bypasses->count) - atomic_load(&bypasses->before);
}

struct bypass_log {
    struct bypasses *bypasses; /* referenced */
    struct loop *loop;
    struct timer timer;
    bool active;                    /* it writes the lines now */
    uint64_t logged;                /* of `count` */
    char reason[BYPASS_LOG_REASON]; /* of the latest here */
};

void bypass_log_init(struct bypass_log *log, struct bypasses *bypasses, struct loop *loop);
/* One more message has passed without the service, for that reason. */
void bypass_log_note(struct bypass_log *log, const char *reason);
void bypass_log_release(struct bypass_log *log);

#endif
