#include "service/driver.h"

#include "base/assert.h"

#include <errno.h>
#include <poll.h>

const char *const driver_call_names[] = {
    [DRIVER_BEGIN] = "begin",   [DRIVER_ASK_PREVIEW] = "preview", [DRIVER_PUSH] = "push",
    [DRIVER_FINISH] = "finish", [DRIVER_ASK_VERDICT] = "verdict", [DRIVER_PULL] = "pull",
    [DRIVER_IDLE] = "idle",     [DRIVER_READY] = "ready",         [DRIVER_END] = "end",
};

void driver_init(struct driver *driver, const struct service_ops *ops,
                 const struct driver_hooks *hooks, struct arena *arena,
                 const struct service_host *host) {
    struct service_exchange *exchange = &driver->exchange;
    driver->magic = DRIVER_MAGIC;
    driver->ops = ops;
    driver->hooks = hooks;
    driver->in = SLICE("");
    exchange->magic = SERVICE_EXCHANGE_MAGIC;
    exchange->arena = arena;
    exchange->host = host;
    exchange->body_length = SERVICE_LENGTH_UNKNOWN;
    service_wait_none(exchange);
}

static inline void driver_enter(struct driver *driver, enum driver_call call) {
    if (driver->hooks != NULL)
        driver->hooks->before(driver, call);
}

static inline void driver_leave(struct driver *driver, enum driver_call call) {
    if (driver->hooks != NULL)
        driver->hooks->after(driver, call);
}

void driver_fail(struct driver *driver, enum driver_failure failure) {
    driver->mode = DRIVER_OVER;
    driver->failure = failure;
}

static void driver_fail_by(struct driver *driver, enum driver_failure failure, uint64_t odd) {
    driver->odd = odd;
    driver_fail(driver, failure);
}

const char *driver_failure_text(enum driver_failure failure) {
#define BUG "; please report this bug of the service"
    static const char *const texts[DRIVER_FAILURES] = {
        [DRIVER_ABORTED] = "the service can't complete the body",
        [DRIVER_STUCK] = "the service neither goes on nor waits for anything" BUG,
        [DRIVER_GREEDY] = "the service took more of the body than there was" BUG,
        [DRIVER_OVERFULL] =
            "the service gave more than there was room for, or an unknown answer" BUG,
        [DRIVER_UNKNOWN] = "the service gave an unknown verdict" BUG,
        [DRIVER_FUNCTIONS] = "the service has no functions for what it wants to do with the body",
        [DRIVER_RESPONSE] = "the service answered a response" BUG,
        [DRIVER_PASSES] = "the service passed on the body of a request as its own answer",
        [DRIVER_MISMADE] = "the service made a head with bytes that HTTP does not allow there",
        [DRIVER_TOO_LONG] = "the service made a head with more than 128 fields or 128 KB",
        [DRIVER_UNREADABLE] = "its runner could not read the head of the message",
        [DRIVER_BROKE_OFF] = "its body broke off",
    };
#undef BUG
    return texts[failure];
}

/* Verdicts */

static bool driver_can_adapt(const struct driver *driver) {
    const struct service_ops *ops = driver->ops;
    return ops->push != NULL && ops->finish != NULL && ops->pull != NULL;
}

/* What the service has of the body comes back from it. */
static void driver_skipped(struct driver *driver) {
    driver->verdict = SERVICE_SKIP;
    driver->mode = driver->pushed ? DRIVER_ADAPTED : DRIVER_PASSED;
}

/* The length of another body is the service's to say. */
static void driver_write_length(struct service_exchange *exchange) {
    http_head_remove(exchange->head, HTTP_CONTENT_LENGTH);
    if (exchange->body_length != SERVICE_LENGTH_UNKNOWN)
        http_head_add(
            exchange->head, SLICE("Content-Length"),
            arena_printf(exchange->arena, "%llu", (unsigned long long)exchange->body_length));
}

static void driver_answered(struct driver *driver) {
    if (driver->exchange.point != SERVICE_REQUEST)
        driver_fail(driver, DRIVER_RESPONSE);
    else if (driver->exchange.body_length == 0)
        driver->mode = DRIVER_COMPLETE;
    else if (driver->ops->pull == NULL)
        driver_fail(driver, DRIVER_FUNCTIONS);
    else
        driver->mode = DRIVER_ANSWERED;
}

static void driver_adapted(struct driver *driver) {
    struct service_exchange *exchange = &driver->exchange;
    if (exchange->answer != NULL) {
        driver_answered(driver);
    } else if (!exchange->has_body || exchange->keeps_body) {
        driver->mode = DRIVER_PASSED;
    } else if (!driver_can_adapt(driver)) {
        driver_fail(driver, DRIVER_FUNCTIONS);
    } else {
        driver->mode = DRIVER_ADAPTED;
        driver_write_length(exchange);
    }
}

static void driver_held(struct driver *driver) {
    if (driver->ops->verdict == NULL || !driver_can_adapt(driver))
        driver_fail(driver, DRIVER_FUNCTIONS);
    else
        driver->mode = DRIVER_HELD;
}

static void driver_decide(struct driver *driver, enum service_verdict verdict) {
    if (driver->mode == DRIVER_OVER)
        return; /* by a hook */
    driver->verdict = verdict;
    switch (verdict) {
    case SERVICE_SKIP: driver_skipped(driver); break;
    case SERVICE_ADAPT: driver_adapted(driver); break;
    case SERVICE_HOLD: driver_held(driver); break;
    default: driver_fail_by(driver, DRIVER_UNKNOWN, verdict);
    }
}

void driver_begin(struct driver *driver, void *service) {
    CHECK_OBJ(driver, DRIVER_MAGIC);
    driver->mode = DRIVER_PREVIEW;
    driver_enter(driver, DRIVER_BEGIN);
    driver->state = driver->ops->begin(service, &driver->exchange);
    driver_leave(driver, DRIVER_BEGIN);
    if (driver->state == NULL && driver->mode != DRIVER_OVER)
        driver_skipped(driver);
}

void driver_preview(struct driver *driver, struct slice body, bool complete) {
    CHECK_OBJ(driver, DRIVER_MAGIC);
    driver_enter(driver, DRIVER_ASK_PREVIEW);
    enum service_verdict verdict = driver->ops->preview(driver->state, body, complete);
    driver_leave(driver, DRIVER_ASK_PREVIEW);
    driver_decide(driver, verdict);
}

bool driver_ask_verdict(struct driver *driver) {
    driver_enter(driver, DRIVER_ASK_VERDICT);
    enum service_verdict verdict = driver->ops->verdict(driver->state);
    driver_leave(driver, DRIVER_ASK_VERDICT);
    if (verdict != SERVICE_HOLD)
        driver_decide(driver, verdict);
    return driver->mode != DRIVER_HELD;
}

/* The body */

bool driver_push(struct driver *driver) {
    struct slice bytes = driver->in;
    if (bytes.length == 0)
        return false;
    driver_enter(driver, DRIVER_PUSH);
    size_t took = driver->ops->push(driver->state, bytes);
    driver_leave(driver, DRIVER_PUSH);
    if (took > bytes.length) {
        driver_fail_by(driver, DRIVER_GREEDY, took);
        return false;
    }
    driver_drop(driver, took);
    driver->pushed |= took > 0;
    return took > 0;
}

static inline bool driver_may_finish(const struct driver *driver) {
    return driver->in_ended && !driver->finished && driver->in.length == 0 &&
           driver->mode != DRIVER_OVER;
}

bool driver_finish(struct driver *driver) {
    if (!driver_may_finish(driver))
        return false;
    driver->finished = true;
    driver_enter(driver, DRIVER_FINISH);
    driver->ops->finish(driver->state);
    driver_leave(driver, DRIVER_FINISH);
    return true;
}

static bool driver_feed(struct driver *driver) {
    if (!driver->in_ended && driver->hooks != NULL)
        driver->hooks->fill(driver);
    if (driver->mode == DRIVER_OVER)
        return false;
    bool moved = driver->in.length > 0 && driver_push(driver);
    return (driver_may_finish(driver) && driver_finish(driver)) || moved;
}

/* May there be more to feed it with? */
static bool driver_has_more(const struct driver *driver) {
    return driver->in.length > 0 || (!driver->in_ended && driver->hooks != NULL);
}

static void driver_take_flow(struct driver *driver, enum service_flow flow) {
    if (driver->mode == DRIVER_OVER)
        return; /* by a hook */
    if (flow == SERVICE_DONE)
        driver->mode = DRIVER_COMPLETE;
    else if (flow == SERVICE_ABORT)
        driver_fail(driver, DRIVER_ABORTED);
    else if (driver->mode == DRIVER_ANSWERED)
        driver_fail(driver, DRIVER_PASSES);
    else
        driver->mode = DRIVER_PASSED;
}

/* What is given back as it came. */
static enum driver_status driver_pass(struct driver *driver, char *out, size_t capacity,
                                      size_t *got) {
    size_t length = driver->in.length < capacity ? driver->in.length : capacity;
    *got = length;
    if (length > 0) {
        memcpy(out, driver->in.base, length);
        driver_drop(driver, length);
        return DRIVER_GAVE;
    }
    if (!driver->in_ended || driver->in.length > 0)
        return DRIVER_RESTS;
    driver->mode = DRIVER_COMPLETE;
    return DRIVER_ENDED;
}

enum driver_status driver_pull(struct driver *driver, char *out, size_t capacity, size_t *got) {
    *got = 0;
    driver_enter(driver, DRIVER_PULL);
    enum service_flow flow = driver->ops->pull(driver->state, out, capacity, got);
    driver_leave(driver, DRIVER_PULL);
    size_t count = *got;
    if (count > capacity || flow < SERVICE_FLOW || flow > SERVICE_ABORT) {
        *got = 0;
        driver_fail_by(driver, DRIVER_OVERFULL, count > capacity ? count : flow);
        return DRIVER_FAILED;
    }
    driver->given += count;
    driver->full = count == capacity;
    if (flow != SERVICE_FLOW)
        driver_take_flow(driver, flow);
    if (driver->mode == DRIVER_OVER)
        return DRIVER_FAILED;
    if (count > 0)
        return DRIVER_GAVE;
    if (driver->mode == DRIVER_COMPLETE)
        return DRIVER_ENDED;
    return driver->mode == DRIVER_PASSED ? driver_pass(driver, out, capacity, got) : DRIVER_RESTS;
}

/* One step behind the bytes that have gone in. */
static enum driver_status driver_step(struct driver *driver, char *out, size_t capacity,
                                      size_t *got) {
    switch (driver->mode) {
    case DRIVER_HELD:
        if (!driver_ask_verdict(driver))
            return DRIVER_RESTS;
        return driver->mode == DRIVER_OVER ? DRIVER_FAILED : DRIVER_DECIDED;
    case DRIVER_ADAPTED:
    case DRIVER_ANSWERED:
        return capacity == 0 ? DRIVER_RESTS : driver_pull(driver, out, capacity, got);
    case DRIVER_PASSED: return driver_pass(driver, out, capacity, got);
    case DRIVER_COMPLETE: return DRIVER_ENDED;
    default: return DRIVER_FAILED;
    }
}

/* What was left in the service comes out first. Else bytes go in first, so that no `pull` is in vain.
 * A push that takes nothing may make a service give more: what it had inside may have come out in place
 * of it. */
enum driver_status driver_run(struct driver *driver, char *out, size_t capacity, size_t *got) {
    enum { TURNS = 8 };
    *got = 0;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        bool full = driver->full && turn == 0, fed = false;
        if ((driver->mode == DRIVER_ADAPTED && !full) || driver->mode == DRIVER_HELD)
            fed = driver_feed(driver);
        if (turn > 0 && !fed && driver->in.length == 0 && driver->mode != DRIVER_OVER)
            return DRIVER_RESTS;
        enum driver_status status = driver_step(driver, out, capacity, got);
        if (status != DRIVER_RESTS)
            return status;
        if (!full && !(fed && driver_has_more(driver)))
            return DRIVER_RESTS;
    }
    return DRIVER_TURN;
}

void driver_idle(struct driver *driver) {
    driver_enter(driver, DRIVER_IDLE);
    driver->ops->idle(driver->state);
    driver_leave(driver, DRIVER_IDLE);
}

void driver_end(struct driver *driver) {
    CHECK_OBJ(driver, DRIVER_MAGIC);
    if (driver->state == NULL)
        return;
    driver_enter(driver, DRIVER_END);
    driver->ops->end(driver->state);
    driver->state = NULL;
    driver_leave(driver, DRIVER_END);
}

/* What the service waits for */

void driver_ready(struct driver *driver) {
    driver->told = driver->exchange.wait;
    driver->overdue = service_now() >= driver->told.deadline;
    driver_enter(driver, DRIVER_READY);
    driver->ops->ready(driver->state);
    driver_leave(driver, DRIVER_READY);
}

/* One that goes on waiting for the same past its own deadline would do so for ever. */
bool driver_may_wait(const struct driver *driver) {
    const struct service_wait *wait = &driver->exchange.wait, *told = &driver->told;
    return wait->fd >= 0 && driver->ops->ready != NULL &&
           !(driver->overdue && wait->fd == told->fd && wait->deadline == told->deadline);
}

enum driver_rest driver_rest(struct driver *driver) {
    if (driver_may_wait(driver))
        return DRIVER_WAITS;
    if (driver->mode != DRIVER_ANSWERED && !driver->in_ended && driver->in.length == 0)
        return DRIVER_WANTS;
    driver_fail(driver, DRIVER_STUCK);
    return DRIVER_HANGS;
}

bool driver_wait(const struct driver *driver, int64_t most) {
    const struct service_wait *wait = &driver->exchange.wait, *also = &driver->exchange.also;
    struct pollfd polls[] = {{wait->fd, wait->events, 0}, {also->fd, also->events, 0}};
    int64_t left = wait->deadline - service_now();
    left = most >= 0 && most < left ? most : left;
    return poll(polls, 2, left < 0 ? 0 : (int)left) > 0 || service_now() >= wait->deadline;
}

static void driver_watch_over(struct driver_watch *watch) {
    driver_watch_end(watch);
    watch->on_over(watch);
}

static void driver_watch_on_event(struct event *event, uint32_t events) {
    (void)events;
    driver_watch_over(CONTAINER_OF(event, struct driver_watch, event));
}

static void driver_watch_on_also(struct event *event, uint32_t events) {
    (void)events;
    driver_watch_over(CONTAINER_OF(event, struct driver_watch, also));
}

static void driver_watch_on_timeout(struct timer *timer) {
    struct driver_watch *watch = CONTAINER_OF(timer, struct driver_watch, timer);
    if (driver_wait(watch->driver, 0))
        driver_watch_over(watch);
    else
        driver_watch_start(watch);
}

/* False: there are no descriptors left for the copy now. */
static bool driver_watch_copy(struct loop *loop, struct event *event,
                              const struct service_wait *wait,
                              void (*on_event)(struct event *event, uint32_t events)) {
    uint32_t events = (wait->events & POLLIN ? (uint32_t)EPOLLIN : 0) |
                      (wait->events & POLLOUT ? (uint32_t)EPOLLOUT : 0);
    return loop_add_copy(loop, event, wait->fd, events, on_event) || wait->fd < 0 ||
           errno == EPERM || errno == EBADF;
}

/* Also when it watches already: anew. */
void driver_watch_start(struct driver_watch *watch) {
    enum { AGAIN = 100 }; /* milliseconds, while there are no descriptors left */
    const struct service_exchange *exchange = &watch->driver->exchange;
    uint64_t until = exchange->wait.deadline > 0 ? (uint64_t)exchange->wait.deadline : 0;
    uint64_t again = (uint64_t)service_now() + AGAIN;
    driver_watch_stop(watch);
    if (watch->timer.on_timeout == NULL)
        timer_init(&watch->timer, driver_watch_on_timeout);
    watch->watches = true;
    bool both =
        driver_watch_copy(watch->loop, &watch->event, &exchange->wait, driver_watch_on_event);
    both &= driver_watch_copy(watch->loop, &watch->also, &exchange->also, driver_watch_on_also);
    timer_set(&watch->loop->timers, &watch->timer, both || until < again ? until : again);
}

void driver_watch_end(struct driver_watch *watch) {
    watch->watches = false;
    loop_remove_copy(watch->loop, &watch->event);
    loop_remove_copy(watch->loop, &watch->also);
    timer_set(&watch->loop->timers, &watch->timer, TIMER_NEVER);
}
