#include "inside/watches.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

struct watched {
    int fd;
    short events;
};

struct inside_watches {
    unsigned magic;
#define INSIDE_WATCHES_MAGIC 0x1451de3au
    unsigned references;
    struct loop *loop;
    struct inside_instance *instance; /* referenced; has these watches */
    struct inside_watches_tally tally;
    struct timer timer;
    int epoll_fd; /* -1: nothing has been watched yet */
    struct event event;
    size_t most, count;
    struct watched *watched; /* room for `most` */
    bool complained;         /* of one too many */
};

/* Whose timer or descriptor is called in this thread; NULL: nobody's. */
static _Thread_local struct inside_watches *watches_calling;

/* Around each call of the service. */
static uint64_t watches_enter(struct inside_watches *watches, const char *what) {
    uint64_t now = clocks_microseconds(CLOCK_MONOTONIC);
    watches_calling = watches;
    foreign_call_enter(watches->tally.foreign, watches->instance->kept_name, what, now);
    return now;
}

static void watches_leave(struct inside_watches *watches, const char *what, uint64_t began) {
    uint64_t took = clocks_microseconds(CLOCK_MONOTONIC) - began;
    foreign_call_leave(watches->tally.foreign);
    watches_calling = NULL;
    if (took <= INSIDE_SLOW)
        return;
    (*watches->tally.slow)++;
    inside_instance_tell_slow(watches->instance, what, took);
}

static struct watched *watches_find(struct inside_watches *watches, int fd) {
    for (size_t i = 0; i < watches->count; i++)
        if (watches->watched[i].fd == fd)
            return &watches->watched[i];
    return NULL;
}

static void watches_drop(struct inside_watches *watches, struct watched *watched) {
    *watched = watches->watched[--watches->count];
}

static bool watches_tell(const struct inside_watches *watches, int operation, int fd,
                         short events) {
    struct epoll_event registration = {
        .events =
            (events & POLLIN ? (uint32_t)EPOLLIN : 0) | (events & POLLOUT ? (uint32_t)EPOLLOUT : 0),
        .data.fd = fd,
    };
    return epoll_ctl(watches->epoll_fd, operation, fd, &registration) == 0;
}

static void watches_on_event(struct event *event, uint32_t events);

static bool watches_open(struct inside_watches *watches) {
    if (watches->epoll_fd >= 0)
        return true;
    watches->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (watches->epoll_fd >= 0 &&
        loop_add(watches->loop, &watches->event, watches->epoll_fd, EPOLLIN, watches_on_event))
        return true;
    log_error("service %s: its descriptors can't be watched: %s", watches->instance->name,
              strerror(errno));
    if (watches->epoll_fd >= 0)
        close(watches->epoll_fd);
    watches->epoll_fd = -1;
    return false;
}

static void watches_shut(struct inside_watches *watches) {
    if (watches->epoll_fd < 0)
        return;
    loop_remove(watches->loop, &watches->event);
    close(watches->epoll_fd);
    watches->epoll_fd = -1;
}

/* The service has closed a descriptor that was watched. If another one of the same file is open
 * somewhere, the kernel goes on to report it, and only a new epoll ends that. */
static void watches_renew(struct inside_watches *watches) {
    watches_shut(watches);
    if (!watches_open(watches)) {
        watches->count = 0;
        return;
    }
    for (size_t i = watches->count; i-- > 0;) {
        const struct watched *watched = &watches->watched[i];
        if (!watches_tell(watches, EPOLL_CTL_ADD, watched->fd, watched->events))
            watches_drop(watches, &watches->watched[i]);
    }
}

static bool watches_end(struct inside_watches *watches, int fd) {
    struct watched *watched = watches_find(watches, fd);
    if (watched == NULL)
        return true;
    watches_drop(watches, watched);
    if (!watches_tell(watches, EPOLL_CTL_DEL, fd, 0))
        watches_renew(watches);
    return true;
}

static bool watches_change(struct inside_watches *watches, struct watched *watched, short events) {
    int fd = watched->fd;
    watched->events = events;
    if (watches_tell(watches, EPOLL_CTL_MOD, fd, events))
        return true;
    watches_renew(watches);
    return watches_find(watches, fd) != NULL;
}

static bool watches_has_room(struct inside_watches *watches) {
    if (watches->count < watches->most)
        return true;
    (*watches->tally.refused)++;
    if (!watches->complained)
        log_warn("service %s: it watches %zu descriptors, as many as its option descriptors "
                 "allows, and wants another one",
                 watches->instance->name, watches->most);
    watches->complained = true;
    return false;
}

static bool watches_begin(struct inside_watches *watches, int fd, short events) {
    if (!watches_has_room(watches) || !watches_open(watches) ||
        !watches_tell(watches, EPOLL_CTL_ADD, fd, events))
        return false;
    watches->watched[watches->count++] = (struct watched){fd, events};
    return true;
}

bool inside_watches_add(void *context, int fd, short events) {
    struct inside_watches *watches = watches_calling;
    struct watched *watched;
    if (watches == NULL || watches->instance != context ||
        watches->instance->ops->descriptor == NULL)
        return false;
    CHECK_OBJ(watches, INSIDE_WATCHES_MAGIC);
    if (events == 0)
        return watches_end(watches, fd);
    if ((events & (POLLIN | POLLOUT)) == 0)
        return false;
    watched = watches_find(watches, fd);
    return watched != NULL ? watches_change(watches, watched, events)
                           : watches_begin(watches, fd, events);
}

static short poll_events(uint32_t events) {
    return (short)((events & EPOLLIN ? POLLIN : 0) | (events & EPOLLOUT ? POLLOUT : 0) |
                   (events & EPOLLERR ? POLLERR : 0) | (events & EPOLLHUP ? POLLHUP : 0));
}

/* The service has closed it, and another descriptor of the same file is open. */
static bool is_closed(struct inside_watches *watches, int fd) {
    if (fcntl(fd, F_GETFD) >= 0)
        return false;
    log_error("service %s: it has closed a descriptor that it watches; please report this bug of "
              "the service",
              watches->instance->name);
    watches_end(watches, fd);
    return true;
}

/* One at a time: a call may end what would be the next. */
static bool watches_serve_one(struct inside_watches *watches) {
    struct epoll_event ready;
    if (watches->epoll_fd < 0 || epoll_wait(watches->epoll_fd, &ready, 1, 0) != 1)
        return false;
    int fd = ready.data.fd;
    if (is_closed(watches, fd))
        return true;
    const struct inside_instance *instance = watches->instance;
    uint64_t began = watches_enter(watches, "descriptor");
    instance->ops->descriptor(instance->service, fd, poll_events(ready.events));
    watches_leave(watches, "descriptor", began);
    return true;
}

static void watches_on_event(struct event *event, uint32_t events) {
    struct inside_watches *watches = CONTAINER_OF(event, struct inside_watches, event);
    CHECK_OBJ(watches, INSIDE_WATCHES_MAGIC);
    (void)events;
    for (unsigned i = 0; i < WATCHES_A_ROUND && watches_serve_one(watches); i++)
        ;
}

static void watches_on_timer(struct timer *timer) {
    struct inside_watches *watches = CONTAINER_OF(timer, struct inside_watches, timer);
    CHECK_OBJ(watches, INSIDE_WATCHES_MAGIC);
    const struct inside_instance *instance = watches->instance;
    uint64_t began = watches_enter(watches, "timer");
    instance->ops->timer(instance->service);
    watches_leave(watches, "timer", began);
    if (instance->ops->timer_period > 0)
        timer_set(&watches->loop->timers, timer,
                  (uint64_t)service_now() + instance->ops->timer_period);
}

/* An instance that goes on over a change of the settings goes on watching. */
static struct inside_watches *watches_go_on(struct inside_watches *watches,
                                            const struct inside_watches_tally *tally) {
    CHECK_OBJ(watches, INSIDE_WATCHES_MAGIC);
    watches->references++;
    watches->tally = *tally;
    return watches;
}

struct inside_watches *inside_watches_new(struct loop *loop, struct inside_instance *instance,
                                          size_t most, const struct inside_watches_tally *tally) {
    struct inside_watches *watches;
    if (instance->watches != NULL)
        return watches_go_on(instance->watches, tally);
    ALLOC_OBJ(watches, INSIDE_WATCHES_MAGIC);
    watches->references = 1;
    instance->watches = watches;
    watches->loop = loop;
    watches->instance = inside_instance_reference(instance);
    watches->tally = *tally;
    watches->most = most;
    watches->epoll_fd = -1;
    watches->watched = xcalloc(most + 1, sizeof *watches->watched);
    event_init(&watches->event);
    timer_init(&watches->timer, watches_on_timer);
    loop_timer_after(loop, &watches->timer, 0);
    return watches;
}

void inside_watches_free(struct inside_watches **watchesp) {
    struct inside_watches *watches = *watchesp;
    *watchesp = NULL;
    if (watches == NULL)
        return;
    CHECK_OBJ(watches, INSIDE_WATCHES_MAGIC);
    if (--watches->references > 0)
        return;
    ASSERT(watches_calling != watches);
    watches->instance->watches = NULL;
    timer_cancel(&watches->loop->timers, &watches->timer);
    watches_shut(watches);
    inside_instance_release(&watches->instance);
    free(watches->watched);
    FREE_OBJ(watches);
}
