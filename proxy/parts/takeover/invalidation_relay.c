#include "takeover/invalidation_relay.h"

#include "base/assert.h"
#include "base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct invalidation_relay {
    unsigned magic;
#define INVALIDATION_RELAY_MAGIC 0x701d2e40u
    invalidation_relay_fn *remove;
    void *context;
    struct thread thread;
    int wake[2];          /* a pipe: its end wakes the thread, and so does a byte */
    pthread_mutex_t lock; /* of the next two */
    int fds[TOLD_PROCESSES];
    unsigned count;
};

/* False: everybody who could tell at this descriptor has ended. */
static bool hear_one(struct invalidation_relay *told, int fd, char *bytes) {
    ssize_t got = recv(fd, bytes, TOLD_LENGTH_MAX, MSG_DONTWAIT);
    if (got < 0) /* the next process may have got the message */
        return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0)
        return false;
    told->remove(told->context, slice_make(bytes, (size_t)got));
    return send(fd, "r", 1, MSG_NOSIGNAL) == 1;
}

static void invalidation_relay_drop(struct invalidation_relay *told, int fd) {
    pthread_mutex_lock(&told->lock);
    for (unsigned i = 0; i < told->count; i++)
        if (told->fds[i] == fd)
            told->fds[i] = told->fds[--told->count];
    pthread_mutex_unlock(&told->lock);
    close(fd);
}

/* The last one is that of the wake pipe. */
static nfds_t invalidation_relay_events(struct invalidation_relay *told, struct pollfd *events) {
    pthread_mutex_lock(&told->lock);
    nfds_t count = told->count;
    for (nfds_t i = 0; i < count; i++)
        events[i] = (struct pollfd){.fd = told->fds[i], .events = POLLIN};
    pthread_mutex_unlock(&told->lock);
    events[count] = (struct pollfd){.fd = told->wake[0], .events = POLLIN};
    return count + 1;
}

static void hear_removals(void *arg) {
    struct invalidation_relay *told;
    CAST_OBJ(told, arg, INVALIDATION_RELAY_MAGIC);
    struct pollfd events[TOLD_PROCESSES + 1];
    char *bytes = xmalloc(TOLD_LENGTH_MAX), woken;
    for (;;) {
        nfds_t count = invalidation_relay_events(told, events);
        if (poll(events, count, -1) < 0)
            continue;
        if (events[count - 1].revents != 0 && read(told->wake[0], &woken, 1) == 0)
            break;
        for (nfds_t i = 0; i + 1 < count; i++)
            if (events[i].revents != 0 && !hear_one(told, events[i].fd, bytes))
                invalidation_relay_drop(told, events[i].fd);
    }
    free(bytes);
}

/* The old process must not wait for one that hangs. */
static void limit_patience(int fd) {
    struct timeval patience = {.tv_sec = TOLD_PATIENCE / 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

static void invalidation_relay_free(struct invalidation_relay **toldp) {
    struct invalidation_relay *told = *toldp;
    *toldp = NULL;
    for (unsigned i = 0; i < told->count; i++)
        close(told->fds[i]);
    for (unsigned i = 0; i < 2; i++)
        if (told->wake[i] >= 0)
            close(told->wake[i]);
    pthread_mutex_destroy(&told->lock);
    FREE_OBJ(told);
}

struct invalidation_relay *invalidation_relay_listen(invalidation_relay_fn *remove, void *context,
                                                     int *fd) {
    struct invalidation_relay *told;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return NULL;
    ALLOC_OBJ(told, INVALIDATION_RELAY_MAGIC);
    told->remove = remove;
    told->context = context;
    told->wake[0] = told->wake[1] = -1;
    told->fds[told->count++] = ends[0];
    pthread_mutex_init(&told->lock, NULL);
    limit_patience(ends[1]);
    if (pipe2(told->wake, O_CLOEXEC) == 0 &&
        thread_start(&told->thread, hear_removals, told, "rt-removals")) {
        *fd = ends[1];
        return told;
    }
    close(ends[1]);
    invalidation_relay_free(&told);
    return NULL;
}

void invalidation_relay_stop(struct invalidation_relay **toldp) {
    struct invalidation_relay *told = *toldp;
    if (told == NULL)
        return;
    CHECK_OBJ(told, INVALIDATION_RELAY_MAGIC);
    close(told->wake[1]);
    told->wake[1] = -1;
    thread_join(&told->thread);
    invalidation_relay_free(toldp);
}

unsigned invalidation_relay_copy(struct invalidation_relay *told, int fds[TOLD_PROCESSES]) {
    unsigned count = 0;
    if (told == NULL)
        return 0;
    CHECK_OBJ(told, INVALIDATION_RELAY_MAGIC);
    pthread_mutex_lock(&told->lock);
    for (unsigned i = 0; i < told->count; i++) {
        fds[count] = fcntl(told->fds[i], F_DUPFD_CLOEXEC, 0);
        count += fds[count] >= 0;
    }
    pthread_mutex_unlock(&told->lock);
    return count;
}

void invalidation_relay_add(struct invalidation_relay *told, int fd) {
    bool room = false;
    if (told != NULL) {
        CHECK_OBJ(told, INVALIDATION_RELAY_MAGIC);
        pthread_mutex_lock(&told->lock);
        room = told->count < TOLD_PROCESSES;
        if (room)
            told->fds[told->count++] = fd;
        pthread_mutex_unlock(&told->lock);
    }
    if (!room)
        close(fd);
    else if (write(told->wake[1], "a", 1) != 1)
        invalidation_relay_drop(told, fd);
}

bool invalidation_relay_tell(int fd, struct slice url) {
    char answer;
    ssize_t done;
    if (url.length == 0 || url.length > TOLD_LENGTH_MAX)
        return false;
    do
        done = send(fd, url.base, url.length, MSG_NOSIGNAL);
    while (done < 0 && errno == EINTR);
    if (done != (ssize_t)url.length)
        return false;
    do
        done = recv(fd, &answer, 1, 0);
    while (done < 0 && errno == EINTR);
    return done == 1;
}
