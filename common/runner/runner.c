#include "runner/runner.h"

#include "base/assert.h"
#include "runner/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Frames of one link before others have their turn. */
enum { FRAMES_AT_ONCE = 64 };

_Noreturn void runner_overwritten(const struct runner *runner, const char *what, const char *file,
                                  int line, const char *function) {
    char text[256];
    if (!runner->owns_process)
        assert_failed(what, file, line, function);
    snprintf(
        text, sizeof text,
        "the memory that it shares with the proxy was written over, most likely by the service "
        "(%s, %s:%d); its process ends",
        what, file, line);
    service_log(runner->host, LOG_LEVEL_ERROR, text);
    _exit(1);
}

static void send_closed(struct runner_link *link, uint32_t slot, uint32_t serial) {
    const struct frame frame = {.type = FRAME_CLOSED, .slot = slot, .serial = serial};
    if (link_send(&link->link, &frame, NULL))
        return;
    link->closed_due[slot] = true;
    link->closed_serials[slot] = serial;
    link->closed_count++;
}

static void send_closed_later(struct runner_link *link) {
    for (uint32_t slot = 0; link->closed_count > 0 && slot < FRAME_SLOTS; slot++) {
        if (!link->closed_due[slot])
            continue;
        link->closed_due[slot] = false;
        link->closed_count--;
        send_closed(link, slot, link->closed_serials[slot]);
        if (link->closed_due[slot])
            return;
    }
}

static void runner_take_frame(struct runner_link *link, const struct frame *frame,
                              const char *payload) {
    RUNNER_INSIST(link->runner, frame->slot < FRAME_SLOTS);
    struct runner_exchange **exchange = &link->exchanges[frame->slot];
    if (*exchange == NULL && frame->type == FRAME_OPEN)
        *exchange = runner_exchange_new(link, frame->slot, frame->serial);
    RUNNER_INSIST(link->runner, *exchange != NULL && (*exchange)->serial == frame->serial);
    if (frame->type == FRAME_CLOSE) {
        runner_exchange_free(exchange);
        send_closed(link, frame->slot, frame->serial);
        return;
    }
    runner_exchange_take(*exchange, frame, payload);
    loop_defer(&link->runner->loop, &(*exchange)->task);
}

/* There may be room again. */
static void wake_blocked(struct runner_link *link) {
    send_closed_later(link);
    while (!list_empty(&link->blocked)) {
        struct runner_exchange *exchange =
            CONTAINER_OF(link->blocked.next, struct runner_exchange, blocked);
        list_remove(&exchange->blocked);
        loop_defer(&link->runner->loop, &exchange->task);
    }
}

/* False: frames are left. */
static bool runner_receive_some(struct runner_link *link) {
    struct frame frame;
    for (unsigned i = 0; i < FRAMES_AT_ONCE; i++) {
        enum link_status status = link_receive(&link->link, &frame, link->runner->payload);
        RUNNER_INSIST(link->runner, status != LINK_BROKEN);
        if (status == LINK_EMPTY)
            return true;
        runner_take_frame(link, &frame, link->runner->payload);
    }
    return false;
}

static void runner_receive_all(struct runner *runner) {
    bool empty = true;
    for (unsigned i = 0; i < runner->link_count; i++) {
        struct runner_link *link = &runner->links[i];
        ring_stay_awake(&link->link.in);
        empty &= runner_receive_some(link) && link_sleep(&link->link);
        link_flush(&link->link); /* it may wait for room */
        if (link_room(&link->link) == FRAME_PAYLOAD)
            wake_blocked(link);
        else if ((!list_empty(&link->blocked) || link->closed_count > 0) &&
                 !link_await_room(&link->link))
            wake_blocked(link);
    }
    if (!empty)
        loop_defer(&runner->loop, &runner->task);
}

static void runner_on_task(struct task *task) {
    runner_receive_all(CONTAINER_OF(task, struct runner, task));
}

static void runner_on_event(struct event *event, uint32_t events) {
    struct runner *runner = CONTAINER_OF(event, struct runner, event);
    uint64_t count;
    (void)events;
    /* The read comes first: what is written after it makes the descriptor ready again. */
    ssize_t got = read(event->fd, &count, sizeof count);
    (void)got;
    atomic_store(&runner->board->answered, atomic_load(&runner->board->asked));
    runner_receive_all(runner);
}

bool runner_init(struct runner *runner, const struct runner_task *task) {
    unsigned workers = task->workers;
    INIT_OBJ(runner, RUNNER_MAGIC);
    runner->ops = task->ops;
    runner->service = task->service;
    runner->host = task->host;
    runner->board = task->board;
    runner->stopping = task->stopping;
    runner->owns_process = task->owns_process;
    runner->link_count = workers;
    runner->links = xcalloc(workers, sizeof *runner->links);
    task_init(&runner->task, runner_on_task);
    event_init(&runner->event);
    for (unsigned i = 0; i < workers; i++) {
        runner->links[i].runner = runner;
        list_init(&runner->links[i].blocked);
        link_open(&runner->links[i].link, board_ring(task->board, i, BOARD_TO_WORKER),
                  board_ring(task->board, i, BOARD_TO_RUNNER), task->worker_fds[i]);
    }
    if (loop_init(&runner->loop) &&
        loop_add(&runner->loop, &runner->event, task->event_fd, EPOLLIN, runner_on_event))
        return true;
    free(runner->links);
    runner->links = NULL;
    return false;
}

static void runner_flush(struct runner *runner) {
    for (unsigned i = 0; i < runner->link_count; i++) {
        struct runner_link *link = &runner->links[i];
        link_flush(&link->link);
        bool blocked = !list_empty(&link->blocked) || link->closed_count > 0;
        if (blocked && !link_await_room(&link->link))
            wake_blocked(link);
    }
}

void runner_run(struct runner *runner) {
    CHECK_OBJ(runner, RUNNER_MAGIC);
    loop_defer(&runner->loop, &runner->task);
    while (!atomic_load(runner->stopping)) {
        loop_run_once(&runner->loop);
        runner_flush(runner);
    }
}

void runner_release(struct runner *runner) {
    CHECK_OBJ(runner, RUNNER_MAGIC);
    for (unsigned i = 0; i < runner->link_count; i++)
        for (unsigned slot = 0; slot < FRAME_SLOTS; slot++)
            if (runner->links[i].exchanges[slot] != NULL)
                runner_exchange_free(&runner->links[i].exchanges[slot]);
    free(runner->links);
    loop_remove(&runner->loop, &runner->event);
    loop_release(&runner->loop);
    runner->magic = 0;
}
