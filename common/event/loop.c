#include "event/loop.h"

#include "base/assert.h"
#include "base/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void loop_update_time(struct loop *loop) {
    struct timespec monotonic, wall;
    clock_gettime(CLOCK_MONOTONIC, &monotonic);
    clock_gettime(CLOCK_REALTIME_COARSE, &wall);
    loop->now_nanoseconds = (uint64_t)monotonic.tv_sec * 1000000000 + (uint64_t)monotonic.tv_nsec;
    loop->now = loop->now_nanoseconds / 1000000;
    loop->wall = wall.tv_sec;
    loop->wall_milliseconds = (unsigned)(wall.tv_nsec / 1000000);
}

bool loop_init(struct loop *loop) {
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0)
        return false;
    timers_init(&loop->timers);
    list_init(&loop->tasks);
    loop->batch_count = loop->batch_at = 0;
    loop->looks = loop->seen = 0;
    loop->on_idle = NULL;
    loop->idle_arg = NULL;
    loop_update_time(loop);
    return true;
}

void loop_release(struct loop *loop) {
    close(loop->epoll_fd);
    loop->epoll_fd = -1;
    timers_release(&loop->timers);
}

static void run_tasks(struct loop *loop) {
    /* Tasks that are deferred meanwhile wait for the next call, so that input and output are served
     * in between. */
    struct list_link due;
    list_init(&due);
    list_splice(&due, &loop->tasks);
    struct list_link *link;
    while ((link = list_first(&due)) != NULL) {
        struct task *task = CONTAINER_OF(link, struct task, link);
        list_remove(link);
        task->run(task);
    }
}

/* How long epoll_wait may sleep, in milliseconds. */
static int patience(struct loop *loop) {
    if (!list_empty(&loop->tasks))
        return 0;
    uint64_t next = timers_next(&loop->timers);
    if (next == TIMER_NEVER)
        return -1;
    if (next <= loop->now)
        return 0;
    uint64_t wait = next - loop->now;
    return wait > 60000 ? 60000 : (int)wait;
}

/* Fetches the memory of the next event's owner, and the memory around the event after that, which
 * is embedded in another struct. */
static inline __attribute__((always_inline)) void look_ahead(const struct loop *loop) {
    enum { AROUND = CACHE_LINE / 2, OF_OWNER = 7 * CACHE_LINE / 4 };
    const struct epoll_event *next = &loop->batch[loop->batch_at + 1];
    int left = loop->batch_count - loop->batch_at - 1;
    if (left > 1 && next[1].data.ptr != NULL)
        fetch_ahead((const char *)next[1].data.ptr - AROUND, (size_t)2 * AROUND);
    if (left > 0 && next->data.ptr != NULL)
        fetch_ahead(((const struct event *)next->data.ptr)->owner, OF_OWNER);
}

static void run_events(struct loop *loop) {
    for (loop->batch_at = 0; loop->batch_at < loop->batch_count; loop->batch_at++) {
        struct event *event = loop->batch[loop->batch_at].data.ptr;
        look_ahead(loop);
        if (event != NULL)
            event->on_event(event, loop->batch[loop->batch_at].events);
    }
    if (loop->batch_count < LOOP_BATCH)
        loop->seen = loop->looks;
    loop->batch_count = loop->batch_at = 0;
}

void loop_run_once(struct loop *loop) {
    int wait = patience(loop);
    if (wait != 0 && loop->on_idle != NULL)
        loop->on_idle(loop, loop->idle_arg);
    loop->looks++;
    int count = epoll_wait(loop->epoll_fd, loop->batch, LOOP_BATCH, wait);
    ASSERT(count >= 0 || errno == EINTR);
    loop->batch_count = count < 0 ? 0 : count;
    loop_update_time(loop);
    run_events(loop);
    timers_run(&loop->timers, loop->now);
    /* The second call runs the tasks that the first call deferred, before the loop waits for events
     * again. */
    run_tasks(loop);
    run_tasks(loop);
}

bool loop_add(struct loop *loop, struct event *event, int fd, uint32_t interest,
              void (*on_event)(struct event *event, uint32_t events)) {
    struct epoll_event registration = {.events = interest, .data.ptr = event};
    event->fd = fd;
    event->on_event = on_event;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &registration) == 0)
        return true;
    event->fd = -1;
    return false;
}

void loop_remove(struct loop *loop, struct event *event) {
    if (event->fd < 0)
        return;
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, event->fd, NULL);
    event->fd = -1;
    /* The rest of the current batch may still contain this event. */
    for (int i = loop->batch_at; i < loop->batch_count; i++)
        if (loop->batch[i].data.ptr == event)
            loop->batch[i].data.ptr = NULL;
}

bool loop_add_copy(struct loop *loop, struct event *event, int fd, uint32_t interest,
                   void (*on_event)(struct event *event, uint32_t events)) {
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    event_init(event);
    if (copy < 0)
        return false;
    if (loop_add(loop, event, copy, interest, on_event))
        return true;
    close(copy);
    return false;
}

void loop_remove_copy(struct loop *loop, struct event *event) {
    int copy = event->fd;
    if (copy < 0)
        return;
    loop_remove(loop, event);
    close(copy);
}
