#include "inside/remote.h"

#include <errno.h>
#include <poll.h>

/* What a service waits for: one or two descriptors and a deadline, which it names in its exchange. */

void inside_wait_stop(struct inside_call *call) {
    if (!call->watched)
        return;
    loop_remove_copy(call->net->loop, &call->event);
    loop_remove_copy(call->net->loop, &call->also);
    call->watched = false;
    timer_set(&call->net->loop->timers, &call->wait_timer, TIMER_NEVER);
}

/* While the reader of the body takes its time, the service is not late. */
static void wait_over(struct inside_call *call) {
    call->told = call->exchange.wait;
    call->overdue = service_now() >= call->told.deadline;
    call->waited += inside_clock_since(call->began_waiting);
    inside_wait_stop(call);
    if (call->base.verdict != ADAPTER_PENDING)
        timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    uint64_t began = inside_clock();
    call->instance->ops->ready(call->state);
    inside_clocked(call, "ready", began);
    inside_call_go_on(call);
}

static void wait_on_event(struct event *event, uint32_t events) {
    struct inside_call *call = CONTAINER_OF(event, struct inside_call, event);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    (void)events;
    wait_over(call);
}

static void wait_on_also(struct event *event, uint32_t events) {
    struct inside_call *call = CONTAINER_OF(event, struct inside_call, also);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    (void)events;
    wait_over(call);
}

static uint32_t epoll_events(short events) {
    return (events & POLLIN ? (uint32_t)EPOLLIN : 0) | (events & POLLOUT ? (uint32_t)EPOLLOUT : 0);
}

/* One that goes on waiting for the same past its own deadline would do so for ever. */
static bool is_over_already(const struct inside_call *call) {
    const struct service_wait *wait = &call->exchange.wait;
    return call->overdue && wait->fd == call->told.fd && wait->deadline == call->told.deadline;
}

/* Watches copies: several messages may wait for one descriptor, and a service that names one which is
 * not its own, or which it has closed, does not touch what others watch. A descriptor that no loop can
 * watch is asked about at the deadline. False: there are no descriptors left for the copy now. */
static bool watch_copy(struct loop *loop, struct event *event, const struct service_wait *wait,
                       void (*on_event)(struct event *event, uint32_t events)) {
    return loop_add_copy(loop, event, wait->fd, epoll_events(wait->events), on_event) ||
           wait->fd < 0 || errno == EPERM || errno == EBADF;
}

/* Also when they are watched already: anew. */
static void watch_copies(struct inside_call *call) {
    enum { AGAIN = 100 }; /* milliseconds, while there are no descriptors left */
    const struct service_exchange *exchange = &call->exchange;
    struct loop *loop = call->net->loop;
    uint64_t until = exchange->wait.deadline > 0 ? (uint64_t)exchange->wait.deadline : 0;
    uint64_t again = (uint64_t)service_now() + AGAIN;
    inside_wait_stop(call);
    call->watched = true;
    bool watches = watch_copy(loop, &call->event, &exchange->wait, wait_on_event);
    watches &= watch_copy(loop, &call->also, &exchange->also, wait_on_also);
    timer_set(&loop->timers, &call->wait_timer, watches || until < again ? until : again);
}

/* Without the loop: asks the descriptors themselves. */
static bool wait_is_over(const struct inside_call *call) {
    const struct service_wait *wait = &call->exchange.wait, *also = &call->exchange.also;
    struct pollfd polls[] = {{wait->fd, wait->events, 0}, {also->fd, also->events, 0}};
    return service_now() >= wait->deadline || poll(polls, 2, 0) > 0;
}

static void wait_on_timeout(struct timer *timer) {
    struct inside_call *call = CONTAINER_OF(timer, struct inside_call, wait_timer);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    if (wait_is_over(call))
        wait_over(call);
    else
        watch_copies(call);
}

static bool wait_watch(struct inside_call *call) {
    const struct service_wait *wait = &call->exchange.wait;
    if (call->link != NULL)
        return inside_remote_must_go_on(call);
    if (wait->fd < 0 || call->instance->ops->ready == NULL || is_over_already(call))
        return false;
    if (call->watched)
        return true;
    call->began_waiting = inside_clock();
    watch_copies(call);
    return true;
}

static uint64_t wait_patience(const struct inside_call *call) {
    const struct service_settings *settings = call->service->base.settings;
    bool pending = call->base.verdict == ADAPTER_PENDING;
    return pending && settings->first_byte_timeout > 0 ? settings->first_byte_timeout
                                                       : settings->timeout;
}

/* One that is ready again and again, and does nothing, has no more time than one that is silent. */
static bool limit_service(struct inside_call *call) {
    uint64_t patience = wait_patience(call), waited = call->waited / 1000;
    if (waited >= patience) {
        inside_call_fail(call, &call->service->base.account.error_timeout,
                         "it did not answer in time");
        return false;
    }
    if (call->timer.deadline == TIMER_NEVER)
        loop_timer_after(call->net->loop, &call->timer, patience - waited);
    return true;
}

bool inside_wait(struct inside_call *call) {
    if (wait_watch(call))
        return limit_service(call);
    timer_set(&call->net->loop->timers, &call->timer, TIMER_NEVER);
    bool starved = call->mode != INSIDE_ANSWERED && !call->input_ended &&
                   inside_feed_waiting(call).length == 0;
    if (starved)
        return true; /* the source of the body wakes the task */
    inside_call_fail(call, &call->service->base.account.error_server,
                     "the service neither goes on nor waits for anything; please report this bug "
                     "of the service");
    return false;
}

void inside_wait_init(struct inside_call *call) {
    event_init(&call->event);
    event_init(&call->also);
    timer_init(&call->wait_timer, wait_on_timeout);
}
