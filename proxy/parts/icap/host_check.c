#include "icap/host_check.h"

#include "base/assert.h"
#include "net/privileges.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

/* Without TCP_QUICKACK the kernel does not complete the handshake at once, and SO_LINGER makes the
 * close a reset. */
static int open_try(const struct host_check *check) {
    int off = 0;
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    unsigned mark = check->net->configured.mark;
    const struct address *to = &check->address;
    int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0 &&
        (mark == 0 || privileges_set_mark(fd, mark)) &&
        (connect(fd, &to->any, to->length) == 0 || errno == EINPROGRESS))
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void end_try(struct host_check *check, struct event *try) {
    int fd = try->fd;
    if (fd < 0)
        return;
    loop_remove(check->net->loop, try);
    close(fd);
}

static void stop_asking(struct host_check *check) {
    timer_cancel(&check->net->loop->timers, &check->timer);
    for (unsigned i = 0; i < check->count; i++)
        end_try(check, &check->tries[i]);
}

static void check_finish(struct host_check *check, enum host_check_state state) {
    stop_asking(check);
    check->state = state;
    loop_defer(check->net->loop, check->waker);
}

/* Says what an error of a try means; HOST_CHECK_ASKING: no more than that nothing has answered. */
static enum host_check_state meaning_of(int error) {
    switch (error) {
    case 0:
    case ECONNREFUSED: return HOST_CHECK_ANSWERED;
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN:
    case ETIMEDOUT: return HOST_CHECK_ASKING;
    default: return HOST_CHECK_IMPOSSIBLE;
    }
}

static void take_error(struct host_check *check, int error) {
    enum host_check_state state = meaning_of(error);
    if (state != HOST_CHECK_ASKING)
        check_finish(check, state);
}

static void on_try_event(struct event *try, uint32_t events) {
    struct host_check *check;
    CAST_OBJ(check, try->owner, HOST_CHECK_MAGIC);
    int error = 0;
    socklen_t length = sizeof error;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) == 0)
        return;
    if (getsockopt(try->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
        error = errno;
    end_try(check, try);
    take_error(check, error);
}

static void begin_try(struct host_check *check) {
    struct event *try = &check->tries[check->count++];
    event_init(try);
    try->owner = check;
    int fd = open_try(check);
    if (fd < 0) {
        take_error(check, errno);
        return;
    }
    if (loop_add(check->net->loop, try, fd, EPOLLOUT | EPOLLET, on_try_event))
        return;
    close(fd);
    check_finish(check, HOST_CHECK_IMPOSSIBLE);
}

static void next_try(struct host_check *check) {
    loop_timer_after(check->net->loop, &check->timer, check->patience / HOST_CHECK_TRIES);
    begin_try(check);
}

static void on_try_over(struct timer *timer) {
    struct host_check *check = CONTAINER_OF(timer, struct host_check, timer);
    CHECK_OBJ(check, HOST_CHECK_MAGIC);
    if (check->count < HOST_CHECK_TRIES)
        next_try(check);
    else
        check_finish(check, HOST_CHECK_UNANSWERED);
}

void host_check_start(struct host_check *check, struct net_context *net,
                      const struct address *address, uint64_t patience, struct task *waker) {
    memset(check, 0, sizeof *check);
    check->magic = HOST_CHECK_MAGIC;
    check->state = HOST_CHECK_ASKING;
    check->net = net;
    check->address = *address;
    check->patience = patience;
    check->waker = waker;
    timer_init(&check->timer, on_try_over);
    next_try(check);
}

void host_check_stop(struct host_check *check) {
    if (check->magic != HOST_CHECK_MAGIC)
        return;
    stop_asking(check);
    check->state = HOST_CHECK_IDLE;
}
