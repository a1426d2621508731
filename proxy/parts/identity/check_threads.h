/*
 * Threads for checks that take long or may block: a good hash of a password takes a large part of a
 * second, and the loop of a worker must not stand still meanwhile.
 *
 *     struct compare {
 *         struct check_job job;
 *         struct credentials_check *check;         NULL: nobody waits any more
 *         ...
 *     };
 *     compare->job = (struct check_job){.run = compare_run, .done = compare_done};
 *     if (!check_threads_post(threads, &compare->job, net->mailbox, client))
 *         credentials_check_fail(check, "...");    too many wait; the job is still the caller's
 *
 * `run` is called in a thread. Then `done` is called in the worker of the mailbox, and owns the
 * job; also for a job that was not run because the threads are stopped (job->ran is false). A job
 * that was posted can't be taken back: it has what it needs itself, and a check that ends only says
 * so to its job.
 *
 * One client gets at most a quarter of the places in the queue.
 *
 * Threads: any. Lock: the threads' own, never held while a job runs.
 */
#ifndef RETORT_IDENTITY_CHECK_THREADS_H
#define RETORT_IDENTITY_CHECK_THREADS_H

#include "event/mailbox.h"
#include "net/address.h"

struct check_threads;

struct check_job {
    void (*run)(struct check_job *job);
    void (*done)(struct check_job *job);
    bool ran;
    /* The threads' own. */
    struct message message;
    struct mailbox *mailbox;
    struct list_link link;
    size_t client_length;
    char client[ADDRESS_NETWORK_KEY];
};

/* `count`: how many threads there are at most; they are started when they are needed. */
struct check_threads *check_threads_new(unsigned count, unsigned queue_max);
void check_threads_set_queue(struct check_threads *threads, unsigned queue_max);
/* Ends the threads, after the jobs that run now. */
void check_threads_stop(struct check_threads *threads);
void check_threads_free(struct check_threads **threadsp);

/* False: the queue is full, the client has its share of it, or the threads are stopped. `client`: a
 * key of address_network_key. */
bool check_threads_post(struct check_threads *threads, struct check_job *job,
                        struct mailbox *mailbox, struct slice client);

#endif
