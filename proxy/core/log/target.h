/*
 * A place for lines of logs, which may be slow or away: a file, a syslog server, journald, a
 * program. Workers hand over whole lines and never wait, also when a disk hangs; a thread of the
 * target sends them. Lines that find no room in its queue, or can't be sent, are lost and counted.
 *
 *     struct log_target *target = log_target_open(&demand);
 *     struct log_chunk *lines = log_chunk_new(65536);
 *     ... fill lines->bytes, lines->length ...
 *     if (!log_target_post(target, &lines)) ...          the queue is full: these lines are lost
 *     lost += log_target_take_lost(target);              that it had taken and could not send
 *     log_target_close(&target);
 *     log_targets_await();                               after a reload: files are opened again
 *     log_targets_finish();                              at the end of the process
 *
 * All who open the same place with the same demand share one target. After the last close the
 * thread sends what is left, for LOG_TARGET_PATIENCE at most, and ends by itself.
 *
 * A further open of a file that is open looks whether its path names another file now. Lines from
 * before go to the file that there was, and lines from after to the new one.
 *
 * Threads: all of it from any thread; a mutex guards the list of targets, and one each queue.
 */
#ifndef RETORT_LOG_TARGET_H
#define RETORT_LOG_TARGET_H

#include "base/list.h"
#include "log/place.h"
#include "tls/trust.h"

#include <stddef.h>
#include <stdint.h>

enum { LOG_TARGET_PATIENCE = 2 /* seconds */ };

struct log_target;

/* Lines on their way: whole ones. */
struct log_chunk {
    struct list_link link; /* the target's */
    size_t length;
    char bytes[];
};

struct log_demand {
    const char *path; /* as configured */
    struct log_place place;
    size_t queue;                           /* bytes that may wait */
    unsigned facility, severity;            /* of syslog (RFC 5424 §6.2.1) */
    const char *kind;                       /* "access_log", "icap_log": a constant */
    const struct tls_trust_settings *trust; /* for places with TLS */
};

struct log_target *log_target_open(const struct log_demand *demand);
/* Room for `capacity` bytes, and none in it. To be freed, unless a target has taken it. */
struct log_chunk *log_chunk_new(size_t capacity);
/* Takes the chunk, also one that is longer than the queue when nothing else waits. False: there is no
 * room, and the chunk is still the caller's. */
bool log_target_post(struct log_target *target, struct log_chunk **chunkp);
/* Since the last call, with those of targets that have ended. */
uint64_t log_target_take_lost(struct log_target *target);
void log_target_close(struct log_target **targetp);
/* Until files that are to be opened again have been, for LOG_TARGET_PATIENCE at most. */
void log_targets_await(void);
/* Also those that are still open: nobody posts to them any more. */
void log_targets_finish(void);

#endif
