/*
 * A call of foreign code: the function of a module that a worker runs, as other threads see it. Nobody can
 * end a thread that does not come back from there. But others can name the function, and the process can
 * end without the worker.
 *
 *     foreign_call_enter(&host->foreign, name, "push", microseconds);     the worker, around each call
 *     ... the function ...
 *     foreign_call_leave(&host->foreign);
 *
 *     if (foreign_call_look(&host->foreign, &seen)) ...      another thread names it
 *     foreign_call_forsake(&host->foreign);                  and goes on without the worker:
 *     if (foreign_call_look(...)) ...             it is in such a call, and never comes back from it
 *
 * A worker that is forsaken and comes back from its call waits there for the end of the process. So who has
 * forsaken it may use what is the worker's.
 *
 * Threads: foreign_call_enter and foreign_call_leave by the worker; the others by one thread, which waits
 * a moment between foreign_call_forsake and its look, until the worker surely has seen the order.
 */
#ifndef RETORT_ADAPT_FOREIGN_CALL_H
#define RETORT_ADAPT_FOREIGN_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct foreign_call {
    _Atomic(const char *) service; /* its name, which is kept for good */
    _Atomic(const char *) function;
    _Atomic uint64_t since; /* microseconds of the monotonic clock; 0: none is called */
    _Atomic bool forsaken;
};

struct foreign_call_seen {
    const char *service, *function;
    uint64_t milliseconds; /* that it has taken */
};

/* False: none is called. */
bool foreign_call_look(struct foreign_call *call, struct foreign_call_seen *seen);
void foreign_call_forsake(struct foreign_call *call);
/* Inside: the worker's end. */
_Noreturn void foreign_call_stay(struct foreign_call *call);

static inline void foreign_call_enter(struct foreign_call *call, const char *service,
                                      const char *function, uint64_t now) {
    atomic_store_explicit(&call->service, service, memory_order_relaxed);
    atomic_store_explicit(&call->function, function, memory_order_relaxed);
    atomic_store_explicit(&call->since, now, memory_order_release);
}

static inline void foreign_call_leave(struct foreign_call *call) {
    atomic_store_explicit(&call->since, 0, memory_order_release);
    if (__builtin_expect(atomic_load_explicit(&call->forsaken, memory_order_acquire), 0))
        foreign_call_stay(call);
}

#endif
