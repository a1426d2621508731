#include "adapt/foreign_call.h"

#include "base/clocks.h"

#include <time.h>
#include <unistd.h>

bool foreign_call_look(struct foreign_call *call, struct foreign_call_seen *seen) {
    uint64_t now = clocks_microseconds(CLOCK_MONOTONIC);
    uint64_t since = atomic_load_explicit(&call->since, memory_order_acquire);
    seen->service = atomic_load_explicit(&call->service, memory_order_relaxed);
    seen->function = atomic_load_explicit(&call->function, memory_order_relaxed);
    seen->milliseconds = now > since ? (now - since) / 1000 : 0;
    return since != 0;
}

void foreign_call_forsake(struct foreign_call *call) {
    atomic_store(&call->forsaken, true);
}

void foreign_call_stay(struct foreign_call *call) {
    atomic_store(&call->since, clocks_microseconds(CLOCK_MONOTONIC));
    for (;;)
        pause();
}
