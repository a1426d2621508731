#include "runner/exchange.h"

#include "base/assert.h"
#include "service/clean_head.h"

#include <errno.h>
#include <poll.h>

/* The calls of the service, in the order that service.h promises. */

static const struct service_ops *drive_ops_of(const struct runner_exchange *exchange) {
    return exchange->link->runner->ops;
}

static size_t waiting(const struct runner_exchange *exchange) {
    return exchange->in_end - exchange->in_begin;
}

static struct slice waiting_bytes(const struct runner_exchange *exchange) {
    return exchange->in == NULL ? SLICE("")
                                : slice_make(exchange->in + exchange->in_begin, waiting(exchange));
}

static void end_with(struct runner_exchange *exchange, enum frame_end end) {
    exchange->mode = RUNNER_OVER;
    exchange->end_due = true;
    exchange->end = end;
}

/* What the service waits for */

static void drive_wait_over(struct runner_exchange *exchange) {
    exchange->told = exchange->exchange.wait;
    exchange->overdue = service_now() >= exchange->told.deadline;
    runner_exchange_wait_stop(exchange);
    drive_ops_of(exchange)->ready(exchange->state);
    runner_exchange_drive(exchange);
}

static void drive_wait_on_event(struct event *event, uint32_t events) {
    (void)events;
    drive_wait_over(CONTAINER_OF(event, struct runner_exchange, event));
}

static void drive_wait_on_also(struct event *event, uint32_t events) {
    (void)events;
    drive_wait_over(CONTAINER_OF(event, struct runner_exchange, also));
}

/* Without the loop: asks the descriptors themselves. */
static bool drive_wait_is_over(const struct runner_exchange *exchange) {
    const struct service_wait *wait = &exchange->exchange.wait, *also = &exchange->exchange.also;
    struct pollfd polls[] = {{wait->fd, wait->events, 0}, {also->fd, also->events, 0}};
    return service_now() >= wait->deadline || poll(polls, 2, 0) > 0;
}

void runner_exchange_wait_stop(struct runner_exchange *exchange) {
    struct loop *loop = &exchange->link->runner->loop;
    if (!exchange->watched)
        return;
    exchange->watched = false;
    loop_remove_copy(loop, &exchange->event);
    loop_remove_copy(loop, &exchange->also);
    timer_set(&loop->timers, &exchange->timer, TIMER_NEVER);
}

/* One that goes on waiting for the same past its own deadline would do so for ever. */
static bool drive_is_over_already(const struct runner_exchange *exchange) {
    const struct service_wait *wait = &exchange->exchange.wait;
    return exchange->overdue && wait->fd == exchange->told.fd &&
           wait->deadline == exchange->told.deadline;
}

static uint32_t drive_epoll_events(short events) {
    return (events & POLLIN ? (uint32_t)EPOLLIN : 0) | (events & POLLOUT ? (uint32_t)EPOLLOUT : 0);
}

/* Several exchanges may wait for one descriptor, and one that the service closes may be open in a
 * process that it has started. One that no loop can watch is asked about at the deadline. False: there
 * are no descriptors left for the copy now. */
static bool drive_watch(struct loop *loop, struct event *event, const struct service_wait *wait,
                        void (*on_event)(struct event *event, uint32_t events)) {
    return loop_add_copy(loop, event, wait->fd, drive_epoll_events(wait->events), on_event) ||
           wait->fd < 0 || errno == EPERM || errno == EBADF;
}

/* Also when it is watched already: anew. */
static void drive_watch_both(struct runner_exchange *exchange, struct loop *loop) {
    enum { AGAIN = 100 }; /* milliseconds, while there are no descriptors left */
    const struct service_exchange *own = &exchange->exchange;
    uint64_t until = own->wait.deadline > 0 ? (uint64_t)own->wait.deadline : 0;
    uint64_t again = (uint64_t)service_now() + AGAIN;
    runner_exchange_wait_stop(exchange);
    exchange->watched = true;
    bool watches = drive_watch(loop, &exchange->event, &own->wait, drive_wait_on_event);
    watches &= drive_watch(loop, &exchange->also, &own->also, drive_wait_on_also);
    timer_set(&loop->timers, &exchange->timer, watches || until < again ? until : again);
}

static void drive_wait_on_timeout(struct timer *timer) {
    struct runner_exchange *exchange = CONTAINER_OF(timer, struct runner_exchange, timer);
    if (drive_wait_is_over(exchange))
        drive_wait_over(exchange);
    else
        drive_watch_both(exchange, &exchange->link->runner->loop);
}

static bool drive_wait_watch(struct runner_exchange *exchange) {
    const struct service_wait *wait = &exchange->exchange.wait;
    struct loop *loop = &exchange->link->runner->loop;
    if (wait->fd < 0 || drive_ops_of(exchange)->ready == NULL || drive_is_over_already(exchange))
        return false;
    if (exchange->timer.on_timeout == NULL)
        timer_init(&exchange->timer, drive_wait_on_timeout);
    drive_watch_both(exchange, loop);
    return true;
}

/* Nothing moves. */
static void wait_for_more(struct runner_exchange *exchange) {
    if (drive_wait_watch(exchange))
        return;
    if (exchange->mode == RUNNER_ANSWERED || exchange->input_ended || waiting(exchange) > 0)
        end_with(exchange, FRAME_STUCK);
    else if (!exchange->needed && runner_exchange_send_due(exchange))
        exchange->needed = runner_exchange_send(exchange, FRAME_NEED, exchange->taken, NULL, 0);
}

/* Verdicts */

static bool drive_can_adapt_body(const struct runner_exchange *exchange) {
    const struct service_ops *ops = drive_ops_of(exchange);
    return ops->push != NULL && ops->finish != NULL && ops->pull != NULL;
}

/* False: the head can't be sent. */
static bool write_verdict(struct runner_exchange *own, bool skip) {
    const struct service_exchange *exchange = &own->exchange;
    bool answers = !skip && exchange->answer != NULL;
    bool response = answers || exchange->point == SERVICE_RESPONSE;
    const struct http_head *head = answers ? exchange->answer : exchange->head;
    struct facts_verdict facts = {
        .skip = skip,
        .keeps_body = !skip && exchange->keeps_body,
        .answers = answers,
        .failed = exchange->failed,
        .opt_out = exchange->opt_out,
        .body_length = exchange->body_length,
        .lifetime = exchange->lifetime,
        .version = head->version,
        .because =
            exchange->failed_because != NULL ? slice_from(exchange->failed_because) : SLICE(""),
    };
    if (!skip && (!clean_head(head, response) || (response && head->status < 100))) {
        end_with(own, FRAME_MISMADE);
        return false;
    }
    if (!skip && head->field_count > HTTP_FIELDS_MAX) {
        end_with(own, FRAME_TOO_LONG);
        return false;
    }
    if (!skip)
        facts.head = http_head_text(
            head, response ? http_head_write_response : http_head_write_request, &own->arena);
    own->verdict = facts_of_verdict(&facts, &own->verdict_length);
    if (own->verdict == NULL)
        end_with(own, FRAME_TOO_LONG);
    return own->verdict != NULL;
}

/* The worker takes the bytes out of its copy, or asks for those that it has sent: the service has them,
 * or they wait here. */
static void skipped(struct runner_exchange *exchange) {
    bool sent = exchange->mode == RUNNER_HELD;
    if (!write_verdict(exchange, true))
        return;
    exchange->credit = 0;
    exchange->pass_due = sent && !exchange->pushed;
    exchange->mode = !sent ? RUNNER_OVER : exchange->pushed ? RUNNER_ADAPTED : RUNNER_ECHO;
}

static void adapted(struct runner_exchange *own) {
    const struct service_exchange *exchange = &own->exchange;
    if (!write_verdict(own, false))
        return;
    if (exchange->answer != NULL && exchange->point == SERVICE_REQUEST)
        own->mode = exchange->body_length == 0 ? RUNNER_OVER : RUNNER_ANSWERED;
    else if (exchange->answer != NULL)
        own->mode = RUNNER_OVER; /* the worker says what is wrong */
    else if (!exchange->has_body || exchange->keeps_body)
        own->mode = RUNNER_OVER;
    else if (drive_can_adapt_body(own))
        own->mode = RUNNER_ADAPTED;
    else
        end_with(own, FRAME_FUNCTIONS);
}

static void held(struct runner_exchange *exchange) {
    exchange->hold_due = exchange->mode == RUNNER_BEGUN;
    if (drive_ops_of(exchange)->verdict == NULL || !drive_can_adapt_body(exchange))
        end_with(exchange, FRAME_FUNCTIONS);
    else
        exchange->mode = RUNNER_HELD;
}

static void drive_take_verdict(struct runner_exchange *exchange, enum service_verdict verdict) {
    switch (verdict) {
    case SERVICE_SKIP: skipped(exchange); break;
    case SERVICE_ADAPT: adapted(exchange); break;
    case SERVICE_HOLD: held(exchange); break;
    default: end_with(exchange, FRAME_UNKNOWN);
    }
}

void runner_exchange_begin(struct runner_exchange *exchange) {
    exchange->mode = RUNNER_BEGUN;
    exchange->state =
        drive_ops_of(exchange)->begin(exchange->link->runner->service, &exchange->exchange);
    if (exchange->state == NULL)
        skipped(exchange);
}

/* Bodies */

static bool push(struct runner_exchange *exchange) {
    struct slice bytes = waiting_bytes(exchange);
    if (bytes.length == 0)
        return false;
    size_t took = drive_ops_of(exchange)->push(exchange->state, bytes);
    if (took > bytes.length) {
        end_with(exchange, FRAME_GREEDY);
        return false;
    }
    exchange->pushed |= took > 0;
    exchange->in_begin += took;
    exchange->taken += took;
    if (exchange->in_begin == exchange->in_end)
        exchange->in_begin = exchange->in_end = 0;
    return took > 0;
}

/* Gives the service what there is. False: it has taken nothing. */
static bool feed(struct runner_exchange *exchange) {
    if (waiting(exchange) > 0)
        return push(exchange);
    if (!exchange->input_ended || exchange->finished)
        return false;
    exchange->finished = true;
    drive_ops_of(exchange)->finish(exchange->state);
    return true;
}

/* How much the reader has room for. */
static size_t out_room(struct runner_exchange *exchange) {
    size_t room = link_room(&exchange->link->link);
    if (room == 0 && list_empty(&exchange->blocked))
        list_append(&exchange->link->blocked, &exchange->blocked);
    return exchange->credit < room ? (size_t)exchange->credit : room;
}

static void drive_send_body(struct runner_exchange *exchange, const char *bytes, size_t length) {
    if (length == 0)
        return;
    bool sent = runner_exchange_send(exchange, FRAME_BODY, 0, bytes, length);
    RUNNER_INSIST(exchange->link->runner, sent); /* out_room */
    exchange->credit -= length;
}

/* Takes what the service gives now. False: nothing. */
static bool pull(struct runner_exchange *exchange, size_t room) {
    char bytes[FRAME_PAYLOAD];
    size_t got = 0;
    enum service_flow flow = drive_ops_of(exchange)->pull(exchange->state, bytes, room, &got);
    if (got > room || flow < SERVICE_FLOW || flow > SERVICE_ABORT) {
        end_with(exchange, FRAME_OVERFULL);
        return true;
    }
    drive_send_body(exchange, bytes, got);
    switch (flow) {
    case SERVICE_FLOW: break;
    case SERVICE_DONE: end_with(exchange, FRAME_DONE); break;
    case SERVICE_PASS:
        exchange->pass_due = true;
        exchange->mode = RUNNER_ECHO;
        break;
    default: end_with(exchange, FRAME_ABORTED);
    }
    return got > 0 || flow != SERVICE_FLOW;
}

/* A push that takes nothing may make a service give more. */
static bool drive_pull_or_feed(struct runner_exchange *exchange, size_t room) {
    if (pull(exchange, room))
        return true;
    if (exchange->mode != RUNNER_ADAPTED)
        return false;
    if (feed(exchange))
        return true;
    if (exchange->mode == RUNNER_ADAPTED && waiting(exchange) > 0)
        return pull(exchange, room);
    if (exchange->mode != RUNNER_ADAPTED || !exchange->idle || exchange->input_ended ||
        drive_ops_of(exchange)->idle == NULL)
        return false;
    exchange->idle = false;
    drive_ops_of(exchange)->idle(exchange->state);
    return pull(exchange, room);
}

/* After PASS: the original goes back, up to where the worker has stopped. */
static bool echo(struct runner_exchange *exchange, size_t room) {
    size_t length = waiting(exchange) < room ? waiting(exchange) : room;
    if (length > 0) {
        drive_send_body(exchange, exchange->in + exchange->in_begin, length);
        exchange->in_begin += length;
        exchange->taken += length;
    } else if (waiting(exchange) == 0 && (exchange->stopped || exchange->input_ended)) {
        end_with(exchange, FRAME_DONE);
    }
    return length > 0;
}

/* The loop */

enum step { MOVED, RESTS, WAITS };

static enum step drive_ask_preview(struct runner_exchange *exchange) {
    if (!exchange->preview_due)
        return RESTS;
    exchange->preview_due = false;
    drive_take_verdict(exchange,
                       drive_ops_of(exchange)->preview(exchange->state, waiting_bytes(exchange),
                                                       exchange->preview_whole));
    return MOVED;
}

static enum step drive_ask_held(struct runner_exchange *exchange) {
    bool moved = feed(exchange);
    if (exchange->mode == RUNNER_HELD)
        drive_take_verdict(exchange, drive_ops_of(exchange)->verdict(exchange->state));
    return moved || exchange->mode != RUNNER_HELD ? MOVED : WAITS;
}

static enum step give_body(struct runner_exchange *exchange) {
    size_t room = out_room(exchange);
    if (room == 0)
        return RESTS; /* the reader takes its time */
    switch (exchange->mode) {
    case RUNNER_ECHO: return echo(exchange, room) ? MOVED : RESTS;
    case RUNNER_ANSWERED: return pull(exchange, room) ? MOVED : WAITS;
    default: return drive_pull_or_feed(exchange, room) ? MOVED : WAITS;
    }
}

static enum step drive_once(struct runner_exchange *exchange) {
    if (!runner_exchange_send_due(exchange))
        return RESTS;
    switch (exchange->mode) {
    case RUNNER_BEGUN: return drive_ask_preview(exchange);
    case RUNNER_HELD: return drive_ask_held(exchange);
    case RUNNER_ADAPTED:
    case RUNNER_ANSWERED:
    case RUNNER_ECHO: return give_body(exchange);
    default: return RESTS;
    }
}

/* Others have their turn after so many pieces of the body. */
void runner_exchange_drive(struct runner_exchange *exchange) {
    enum { TURNS = 8 };
    enum step step = MOVED;
    CHECK_OBJ(exchange, RUNNER_EXCHANGE_MAGIC);
    runner_exchange_wait_stop(exchange);
    for (unsigned turns = 0; step == MOVED; turns++) {
        if (turns == TURNS) {
            loop_defer(&exchange->link->runner->loop, &exchange->task);
            return;
        }
        step = drive_once(exchange);
    }
    if (step == WAITS && (exchange->mode == RUNNER_HELD || exchange->mode == RUNNER_ADAPTED ||
                          exchange->mode == RUNNER_ANSWERED))
        wait_for_more(exchange);
    runner_exchange_send_due(exchange);
}
