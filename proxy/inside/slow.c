#include "inside/call.h"

/* Which calls of a service held their worker up. To read the fine clock before and after each call
 * would cost a service more than to be called. So the coarse clock is read, which moves every few
 * milliseconds: a call within one of its ticks was quick. Where it has moved, and the call may have
 * been slow, the thread reads the fine clock for a second. Before that a call counts by the
 * middle of what it may have taken. No call began before the loop's turn, so a coarse clock that is late
 * makes no call look slow. */

enum { WATCHFUL_FOR = 1000000 }; /* microseconds */

_Thread_local bool inside_watchful;
static _Thread_local uint64_t watchful_until;

uint64_t inside_clock_fine(void) {
    return clocks_microseconds(CLOCK_MONOTONIC);
}

/* Microseconds by which the coarse clock may be late. */
static uint64_t coarse_tick(void) {
    struct timespec tick;
    clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
    return (uint64_t)tick.tv_sec * 1000000 + (uint64_t)tick.tv_nsec / 1000;
}

static void tell_slow(struct inside_call *call, const char *what, uint64_t took) {
    call->service->base.account.slow++;
    inside_instance_tell_slow(call->instance, what, took);
}

void inside_clock_moved(struct inside_call *call, const char *what, uint64_t began) {
    uint64_t turn = call->net->loop->now_nanoseconds / 1000, now = inside_clock_fine();
    uint64_t most = now - (began > turn ? began : turn);
    bool exact = inside_watchful;
    inside_watchful = most > INSIDE_SLOW || now < watchful_until;
    if (most <= INSIDE_SLOW)
        return;
    watchful_until = now + WATCHFUL_FOR;
    uint64_t took = exact ? most : most - coarse_tick() / 2;
    if (took > INSIDE_SLOW)
        tell_slow(call, what, took);
}
