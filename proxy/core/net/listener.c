#include "net/listener.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

enum {
    UNSENT_MOST = 256 * 1024, /* bytes of a connection that the kernel holds and has not sent */
    BACKLOG = 65535 /* as many as net.core.somaxconn allows */,
    ACCEPT_BATCH = 64,
    EXHAUSTED_PAUSE = 100
};
/* After this many full batches in a row a larger batch is tried. */
enum { GROW_AFTER = 8 };

struct listener {
    unsigned magic;
#define LISTENER_MAGIC 0x115735e7u
    struct net_context *net;
    struct address address;
    struct event event;
    struct timer pause; /* while the process is out of descriptors */
    listener_accept_fn *on_accept;
    void *arg;
    bool complained;
    bool foreign;   /* listener_take_foreign */
    unsigned batch; /* how many connections to accept in one round at most */
    unsigned whole; /* how many rounds in a row were full */
};

/* Stops watching the socket for a while. The event is level-triggered, so the loop would spin while
 * no descriptors are left. */
static void pause_accepting(struct listener *listener) {
    if (!listener->complained)
        log_warn("cannot accept connections: %s; raise the limit of open files (ulimit -n, "
                 "LimitNOFILE) or lower client.max_connections",
                 strerror(errno));
    listener->complained = true;
    int fd = listener->event.fd;
    loop_remove(listener->net->loop, &listener->event);
    listener->event.fd = fd;
    loop_timer_after(listener->net->loop, &listener->pause, EXHAUSTED_PAUSE);
}

/* An accept that finds no connection costs nearly as much as one that finds one. So a round tries
 * only as many accepts as succeeded lately. The loop reports connections that are left over in its
 * next round. After GROW_AFTER full rounds the batch doubles with each full round, so that many new
 * clients do not overflow the queue. */
static void learn_batch(struct listener *listener, unsigned accepted) {
    if (accepted < listener->batch) {
        listener->batch = accepted > 0 ? accepted : 1;
        listener->whole = 0;
    } else if (++listener->whole >= GROW_AFTER && listener->batch < ACCEPT_BATCH) {
        listener->batch *= 2;
        if (listener->batch > ACCEPT_BATCH)
            listener->batch = ACCEPT_BATCH;
    }
}

static void listener_on_event(struct event *event, uint32_t events) {
    struct listener *listener = CONTAINER_OF(event, struct listener, event);
    CHECK_OBJ(listener, LISTENER_MAGIC);
    (void)events;
    unsigned accepted = 0;
    while (accepted < listener->batch) {
        struct address client = {.length = sizeof client.v6};
        int fd = accept4(event->fd, &client.any, &client.length, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            listener->on_accept(listener, fd, &client, listener->arg);
            accepted++;
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(listener);
        if (errno != ECONNABORTED && errno != EINTR)
            break;
    }
    learn_batch(listener, accepted);
}

static void on_pause_over(struct timer *timer) {
    struct listener *listener = CONTAINER_OF(timer, struct listener, pause);
    loop_add(listener->net->loop, &listener->event, listener->event.fd, EPOLLIN | EPOLLEXCLUSIVE,
             listener_on_event);
}

void listener_look_again(struct listener *listener) {
    CHECK_OBJ(listener, LISTENER_MAGIC);
    int fd = listener->event.fd;
    if (listener->pause.deadline != TIMER_NEVER)
        return;
    loop_remove(listener->net->loop, &listener->event);
    if (!loop_add(listener->net->loop, &listener->event, fd, EPOLLIN | EPOLLEXCLUSIVE,
                  listener_on_event)) {
        listener->event.fd = fd;
        loop_timer_after(listener->net->loop, &listener->pause, EXHAUSTED_PAUSE);
    }
}

void listener_adopt(int fd) {
    int on = 1, unsent = UNSENT_MOST;
    /* Accepted sockets inherit this: answers are sent at once. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    /* Clients send first: a connection is accepted when its request is there, so the proxy need not
     * wait for it. */
    setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof on);
    /* Accepted sockets inherit this too: bytes that the network does not take yet wait in the
     * proxy, where they are counted. */
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

/* The kernel lets several sockets listen at one address only if all of them are shared
 * (SO_REUSEPORT), also when they belong to different processes. With `alone`, the socket becomes
 * shared only after it listens. So no other process has the address, and other sockets of this
 * process can join. */
static int listener_open_socket(const struct address *address, bool alone) {
    int on = 1, off = 0;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    listener_adopt(fd);
    if ((alone || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0) &&
        bind(fd, &address->any, address->length) == 0 && listen(fd, BACKLOG) == 0 &&
        (!alone || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0))
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

/* Says what the operator can do about the error. */
static const char *advice_for(int reason) {
    switch (reason) {
    case EACCES: return "; a port below 1024 needs root or CAP_NET_BIND_SERVICE";
    case EADDRINUSE:
        return "; another program listens there (ss -ltnp shows which): stop it, or choose another "
               "address; to start a second retort that replaces the first, see share_listeners";
    case EADDRNOTAVAIL: return "; it must be an address of this machine (ip address shows them)";
    default: return "";
    }
}

/* Returns an open socket, or -1 and a sentence in `error`. */
static int try_socket(const struct address *address, bool alone, char error[LISTENER_ERROR]) {
    char text[ADDRESS_TEXT];
    int fd = listener_open_socket(address, alone);
    if (fd < 0) {
        address_format(address, text);
        snprintf(error, LISTENER_ERROR, "cannot listen on %.100s: %s%s", text, strerror(errno),
                 advice_for(errno));
    }
    return fd;
}

int listener_claim(const struct address *address, bool alone, char error[LISTENER_ERROR]) {
    return try_socket(address, alone, error);
}

bool listener_possible(const struct address *address, char error[LISTENER_ERROR]) {
    int on = 1, fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool good = fd >= 0 && bind(fd, &address->any, address->length) == 0;
    int reason = errno;
    char text[ADDRESS_TEXT];
    address_format(address, text);
    if (!good)
        snprintf(error, LISTENER_ERROR, "cannot listen on %.100s: %s%s", text, strerror(reason),
                 advice_for(reason));
    if (fd >= 0)
        close(fd);
    return good || reason == EADDRINUSE;
}

struct listener *listener_open(struct net_context *net, const struct address *address, int claimed,
                               listener_accept_fn *on_accept, void *arg,
                               char error[LISTENER_ERROR]) {
    int fd = claimed >= 0 ? claimed : try_socket(address, false, error);
    if (fd < 0)
        return NULL;
    struct listener *listener;
    ALLOC_OBJ(listener, LISTENER_MAGIC);
    listener->net = net;
    listener->address = *address;
    listener->on_accept = on_accept;
    listener->arg = arg;
    listener->batch = 1;
    timer_init(&listener->pause, on_pause_over);
    if (loop_add(net->loop, &listener->event, fd, EPOLLIN | EPOLLEXCLUSIVE, listener_on_event))
        return listener;
    snprintf(error, LISTENER_ERROR, "cannot watch a listening socket: %s", strerror(errno));
    close(fd);
    FREE_OBJ(listener);
    return NULL;
}

void listener_close(struct listener **listenerp) {
    struct listener *listener = *listenerp;
    *listenerp = NULL;
    if (listener == NULL)
        return;
    CHECK_OBJ(listener, LISTENER_MAGIC);
    int fd = listener->event.fd;
    timer_cancel(&listener->net->loop->timers, &listener->pause);
    loop_remove(listener->net->loop, &listener->event);
    close(fd);
    FREE_OBJ(listener);
}

bool listener_take_foreign(struct listener *listener, bool on, char error[LISTENER_ERROR]) {
    CHECK_OBJ(listener, LISTENER_MAGIC);
    if (on == listener->foreign)
        return true;
    listener->foreign = privileges_set_foreign(listener->event.fd, &listener->address, on);
    if (listener->foreign == on)
        return true;
    char text[ADDRESS_TEXT];
    address_format(&listener->address, text);
    snprintf(error, LISTENER_ERROR, "the listener %.100s can not take connections by TPROXY: %s%s",
             text, strerror(errno), privileges_advice(errno));
    return false;
}

int listener_copy(const struct listener *listener) {
    CHECK_OBJ(listener, LISTENER_MAGIC);
    return fcntl(listener->event.fd, F_DUPFD_CLOEXEC, 0);
}

const struct address *listener_address(const struct listener *listener) {
    CHECK_OBJ(listener, LISTENER_MAGIC);
    return &listener->address;
}
