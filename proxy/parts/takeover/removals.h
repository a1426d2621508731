/*
 * Tells a process that takes over what unsafe requests have removed here (transaction/invalidate.h), because
 * it may have stored that, or read it from the disks.
 *
 *     removals_note(removals);                       from now on removals are noted
 *     if (!removals_tell(removals, fd)) ...          they are told, and from now on each one at once
 *     removals_forget(removals);                     nobody takes over after all
 *
 * Threads: these three from one; the worker's for `base`; removals_pass_on from any.
 */
#ifndef RETORT_TAKEOVER_REMOVALS_H
#define RETORT_TAKEOVER_REMOVALS_H

#include "base/threads.h"
#include "transaction/invalidate.h"

enum { REMOVALS_MAX = 10000 };

enum removals_successor {
    SUCCESSOR_NONE,
    SUCCESSOR_READS, /* the disks, and does not serve yet: removals are noted */
    SUCCESSOR_SERVES,
};

struct removals {
    unsigned magic;
#define REMOVALS_MAGIC 0x4e307a15u
    struct removal_teller base; /* each worker's host->removals */
    struct thread_queue queue;  /* its lock is for what follows, too */
    unsigned count;             /* that wait in the queue */
    _Atomic int successor;      /* enum removals_successor; changed under the lock */
    struct list_link noted;
    unsigned noted_count;
    bool noted_all;          /* there was room for each */
    pthread_mutex_t telling; /* for fd; taken alone */
    int fd;                  /* where the successor hears; -1: nowhere */
};

void removals_init(struct removals *removals);
/* Ends the thread, before the mailboxes of the workers end. What waits is dropped. */
void removals_stop(struct removals *removals);
/* The workers have ended. */
void removals_release(struct removals *removals);
/* Another process is about to take over: what is removed is noted, at most REMOVALS_MAX names. */
void removals_note(struct removals *removals);
/* It is about to serve, and hears at `fd`, which is the callee's then; -1: it does not hear. Returns after
 * it has been told what was noted. False: it could not be told. */
bool removals_tell(struct removals *removals, int fd);
/* It does not take over. */
void removals_forget(struct removals *removals);
/* For a name that another process has told to this one. Waits until it is told on. */
void removals_pass_on(struct removals *removals, struct slice url);

#endif
