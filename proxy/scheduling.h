/*
 * Scheduling: the calling thread asks the kernel for short time slices.
 *
 *     scheduling_take_short_slices();      at the start of a worker
 *
 * A worker computes for some microseconds, then it waits. Who computes for long beside it on the same
 * core, such as a helper at nice 19, keeps the core until the end of a slice, although the worker has
 * the higher priority: since Linux 6.6 a thread that wakes up does not end the slice of another one.
 * Since Linux 6.12 it does if its own slices are shorter. Shorter slices do not make the worker's share
 * of the core larger.
 *
 * Threads: each for itself; threads that it starts later inherit it. Errors: none; a kernel that is older
 * or does not permit it leaves the thread as it is.
 */
#ifndef RETORT_SCHEDULING_H
#define RETORT_SCHEDULING_H

void scheduling_take_short_slices(void);

#endif
