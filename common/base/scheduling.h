/*
 * Scheduling: how long the time slices are that a thread asks the kernel for.
 *
 *     scheduling_take_short_slices();      at the start of a worker
 *     scheduling_take_long_slices(pid, nice > 0);      for a helper; 0: this thread
 *
 * A worker computes for some microseconds, then it waits. Who computes for long beside it on the same
 * core, such as a helper at nice 19, keeps the core until the end of a slice, although the worker has
 * the higher priority: since Linux 6.6 a thread that wakes up does not end the slice of another one.
 * Since Linux 6.12 it does if its own slices are shorter.
 *
 * But a thread whose slice has been due for long goes before one that wakes up. At nice 19 a slice of
 * the usual length is due after a tenth of a second, and then takes the core for up to four milliseconds.
 * So who is nice takes long slices, which are seldom due. Linux 6.17 is the first that ends a
 * long slice when a thread with shorter ones waits; nobody gets long slices on older ones.
 *
 * The length of slices does not change how much of the core a thread gets.
 *
 * Threads: each for itself; threads and processes that it starts later inherit it. Errors: none; a kernel
 * that is older or does not permit it leaves the thread as it is.
 */
#ifndef RETORT_BASE_SCHEDULING_H
#define RETORT_BASE_SCHEDULING_H

#include <stdbool.h>
#include <sys/types.h>

/* Of the calling thread. */
void scheduling_take_short_slices(void);
/* Not `wanted`: the usual slices. For a thread that is to have the policy SCHED_IDLE, before it has it: the
 * kernel keeps the length of slices then, but does not change it. */
void scheduling_take_long_slices(pid_t thread, bool wanted);

#endif
