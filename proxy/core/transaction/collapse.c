#include "transaction/collapse.h"

#include "event/loop.h"

enum shared_fetch_role collapse_join(struct collapse *collapse, struct shared_fetches *fetches,
                                     const struct cache_name *name, struct loop *loop) {
    enum shared_fetch_role role =
        shared_fetch_join(fetches, name, loop_seconds(loop), &collapse->fetch);
    collapse->loop = loop;
    collapse->leads = role == SHARED_FETCH_LEADS;
    return role;
}

static void collapse_on_timeout(struct timer *timer) {
    struct collapse *collapse = CONTAINER_OF(timer, struct collapse, timer);
    collapse->expired = true;
    loop_defer(collapse->loop, collapse->waker);
}

void collapse_follow(struct collapse *collapse, struct mailbox *mailbox, struct task *waker,
                     uint64_t until) {
    collapse->expired = false;
    collapse->waker = waker;
    timer_init(&collapse->timer, collapse_on_timeout);
    timer_set(&collapse->loop->timers, &collapse->timer, until);
    if (!shared_fetch_wait(collapse->fetch, &collapse->waiter, mailbox, waker))
        loop_defer(collapse->loop, waker);
}

bool collapse_has_ended(struct collapse *collapse, enum shared_fetch_outcome *outcome) {
    *outcome = shared_fetch_outcome(collapse->fetch);
    if (*outcome == SHARED_FETCH_RUNNING && !collapse->expired)
        return false;
    shared_fetch_leave(&collapse->fetch, &collapse->waiter);
    timer_cancel(&collapse->loop->timers, &collapse->timer);
    return true;
}

void collapse_finish(struct collapse *collapse, enum shared_fetch_outcome outcome) {
    if (!collapse->leads)
        return;
    collapse->leads = false;
    shared_fetch_finish(&collapse->fetch, outcome, loop_seconds(collapse->loop), collapse->loop);
}

void collapse_end(struct collapse *collapse) {
    collapse_finish(collapse, SHARED_FETCH_ABANDONED);
    if (collapse->fetch == NULL)
        return;
    shared_fetch_leave(&collapse->fetch, &collapse->waiter);
    timer_cancel(&collapse->loop->timers, &collapse->timer);
}
