/*
 * A place for lines of logs that may be slow or away: a syslog server, journald, a program. Workers
 * hand over whole lines and never wait; a thread of the target sends them. Lines that find no room
 * in its queue, or can't be sent, are lost and counted.
 *
 *     struct log_target *target = log_target_open(&demand);
 *     if (!log_target_post(target, lines, length)) ... the queue is full: these lines are lost ...
 *     lost += log_target_take_lost(target);              that it had taken and could not send
 *     log_target_close(&target);
 *     log_targets_finish();                              at the end of the process
 *
 * All who open the same place with the same demand share one target. After the last close the
 * thread sends what is left, for LOG_TARGET_PATIENCE at most, and ends by itself.
 *
 * Threads: all of it from any thread; a mutex guards the list of targets, and one each queue.
 */
#ifndef RETORT_LOG_TARGET_H
#define RETORT_LOG_TARGET_H

#include "log/place.h"

#include <stddef.h>
#include <stdint.h>

enum { LOG_TARGET_PATIENCE = 2 /* seconds */ };

struct log_target;

struct log_demand {
    struct log_place place;
    size_t queue;                /* bytes that may wait */
    unsigned facility, severity; /* of syslog (RFC 5424 §6.2.1) */
    const char *kind;            /* "access_log", "icap_log": a constant */
};

struct log_target *log_target_open(const struct log_demand *demand);
/* The bytes are whole lines; they are copied. False: there is no room for them. */
bool log_target_post(struct log_target *target, const char *bytes, size_t length);
uint64_t log_target_take_lost(struct log_target *target);
void log_target_close(struct log_target **targetp);
void log_targets_finish(void);

#endif
