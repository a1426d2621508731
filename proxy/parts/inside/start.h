/*
 * A start of a module in this process (runs = worker or thread). A module that does not come back from
 * it, or from its constructors, must not keep the proxy from ending, and nobody can end a thread. So it
 * starts in a thread of its own, which is left behind when the proxy ends.
 *
 *     const struct inside_start_order order = {run, leave, name, start_timeout};
 *     if (!inside_start_run(&order, context)) ...       it is left behind: the context is its thread's
 *
 * Who waits for it waits as long as it takes; after `patience` the log names the service, once.
 * inside_runners_await knows threads that are left behind.
 *
 * Threads: any; `run` is called in another one, and `leave` too. Errors: where no thread can be started,
 * `run` is called by the caller.
 */
#ifndef RETORT_INSIDE_START_H
#define RETORT_INSIDE_START_H

#include <stdbool.h>
#include <stdint.h>

struct inside_start_order {
    void (*run)(void *context);
    void (*leave)(void *context); /* after `run`, where nobody waits for it any more */
    const char *name;             /* of the service */
    uint64_t patience;            /* milliseconds */
};

bool inside_start_run(const struct inside_start_order *order, void *context);

#endif
