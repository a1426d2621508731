#include "takeover/takeover.h"

#include "base/assert.h"
#include "base/log.h"
#include "takeover/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Milliseconds for an answer of the other process. */
enum {
    SOCKETS_PATIENCE = 60000,
    DISKS_PATIENCE = 120000, /* it writes what is queued */
    SERVE_PATIENCE = 10000,
    RETIRED_PATIENCE = 10000,
    ENDING_PATIENCE = 2000, /* a process that ends closes its connections a moment before */
};

struct takeover {
    unsigned magic;
#define TAKEOVER_MAGIC 0x7a4e0e45u
    int fd;
    int process; /* a descriptor of the other process; -1: there is none */
    int pid;
    bool gone;   /* the other process has ended */
    bool serves; /* this one, and the other one knows it */
    int stop[2]; /* a pipe whose end wakes the thread */
    void (*look)(void *context);
    void *context;
    pthread_t thread;
    bool waiting; /* the thread */
    struct takeover_message message;
};

static void takeover_refuse(char error[SETTINGS_ERROR], const struct takeover *takeover,
                            const char *reason) {
    snprintf(error, SETTINGS_ERROR, "cannot take over from process %d: %s", takeover->pid, reason);
}

static int takeover_connect(const struct address *address) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, &address->any, address->length) == 0)
        return fd;
    int reason = errno;
    if (fd >= 0)
        close(fd);
    errno = reason;
    return -1;
}

/* Has the other process ended, or does it within `patience` milliseconds? */
static bool has_ended(const struct takeover *takeover, int patience) {
    struct pollfd process = {.fd = takeover->process, .events = POLLIN};
    return takeover->process >= 0 && poll(&process, 1, patience) > 0;
}

/* The other process does not answer. True: it has ended, and this one goes on without it. */
static bool goes_on_alone(struct takeover *takeover, const char *reason,
                          char error[SETTINGS_ERROR]) {
    takeover->gone = has_ended(takeover, ENDING_PATIENCE);
    if (takeover->gone)
        log_warn("process %d has ended while it handed over: this one goes on alone",
                 takeover->pid);
    else
        takeover_refuse(error, takeover, reason);
    return takeover->gone;
}

static bool takeover_begins(const struct takeover_message *message, const char *word) {
    return strncmp(message->bytes, word, strlen(word)) == 0;
}

/* The message "process PID" with a descriptor of it. */
static void meet_process(struct takeover *takeover) {
    struct takeover_message *message = &takeover->message;
    takeover->pid = (int)strtol(message->bytes + sizeof "process", NULL, 10);
    if (message->fd_count > 0 && takeover->process < 0) {
        takeover->process = message->fds[0];
        message->fds[0] = message->fds[--message->fd_count];
    }
}

/* False with a message: the sockets did not come. When the other process has ended before it had
 * passed all of them, this one opens the others itself. */
static bool receive_sockets(struct takeover *takeover, struct inherited *inherited,
                            char error[SETTINGS_ERROR]) {
    struct takeover_message *message = &takeover->message;
    while (takeover_receive(takeover->fd, message, SOCKETS_PATIENCE)) {
        if (takeover_begins(message, "process "))
            meet_process(takeover);
        for (unsigned i = 0; i < message->fd_count; i++)
            inherited_add(inherited, message->fds[i]);
        if (takeover_is(message, "ready"))
            return true;
        if (message->length == 0)
            break;
        if (takeover_begins(message, "refused ")) {
            takeover_refuse(error, takeover, message->bytes + sizeof "refused");
            return false;
        }
    }
    return goes_on_alone(takeover,
                         "it does not pass its sockets: look into its log, and start without "
                         "--take-over if it has ended",
                         error);
}

static struct takeover *takeover_new(int fd) {
    struct takeover *takeover;
    ALLOC_OBJ(takeover, TAKEOVER_MAGIC);
    takeover->fd = fd;
    takeover->process = takeover->stop[0] = takeover->stop[1] = -1;
    return takeover;
}

struct takeover *takeover_begin(const struct settings *settings, struct inherited *inherited,
                                char error[SETTINGS_ERROR]) {
    struct address address;
    if (!takeover_address(settings, &address)) {
        snprintf(error, SETTINGS_ERROR,
                 "--take-over needs the path of a socket: set take_over_socket, or a path as "
                 "admin.listen");
        return NULL;
    }
    int fd = takeover_connect(&address);
    if (fd < 0) {
        snprintf(error, SETTINGS_ERROR,
                 "cannot take over: no retort answers at %.108s: %s; start without --take-over if "
                 "none is running",
                 address.local.sun_path, strerror(errno));
        return NULL;
    }
    struct takeover *takeover = takeover_new(fd);
    if (!takeover_is_same_user(fd, &takeover->pid))
        takeover_refuse(error, takeover, "it belongs to another user: run this as that user");
    else if (!takeover_send(fd, TAKEOVER_HELLO))
        takeover_refuse(error, takeover, "it does not answer");
    else if (receive_sockets(takeover, inherited, error))
        return takeover;
    takeover_free(&takeover);
    return NULL;
}

bool takeover_get_disks(struct takeover *takeover, char error[SETTINGS_ERROR]) {
    struct takeover_message *message = &takeover->message;
    CHECK_OBJ(takeover, TAKEOVER_MAGIC);
    if (takeover->gone)
        return true;
    if (takeover_send(takeover->fd, "give") &&
        takeover_receive(takeover->fd, message, DISKS_PATIENCE) && takeover_is(message, "given"))
        return true;
    return goes_on_alone(takeover, "it does not give up its disks, and goes on to serve", error);
}

bool takeover_may_serve(struct takeover *takeover, int removals, char error[SETTINGS_ERROR]) {
    CHECK_OBJ(takeover, TAKEOVER_MAGIC);
    if (takeover->gone || (takeover_send_fds(takeover->fd, "prepared", &removals, removals >= 0) &&
                           takeover_receive(takeover->fd, &takeover->message, SERVE_PATIENCE) &&
                           takeover_is(&takeover->message, "serve")))
        return true;
    return goes_on_alone(takeover, "it has not waited for this one, and goes on to serve", error);
}

/* Messages of the other process may come late, and its connection may end before itself. */
static void *wait_for_end(void *arg) {
    struct takeover *takeover;
    CAST_OBJ(takeover, arg, TAKEOVER_MAGIC);
    struct pollfd events[] = {{.fd = takeover->stop[0], .events = POLLIN},
                              {.fd = takeover->process, .events = POLLIN}};
    while (poll(events, 2, -1) < 0 && errno == EINTR)
        continue;
    if (events[1].revents != 0) {
        log_info("process %d has ended", takeover->pid);
        takeover->look(takeover->context);
    }
    return NULL;
}

/* "serving" is the word that the other process waits for. Where it can't be sent, the other one has
 * stopped to wait. */
bool takeover_finish(struct takeover *takeover, void (*look)(void *context), void *context,
                     char error[SETTINGS_ERROR]) {
    CHECK_OBJ(takeover, TAKEOVER_MAGIC);
    takeover->look = look;
    takeover->context = context;
    bool sent = !takeover->gone && takeover_send(takeover->fd, "serving");
    if (!sent && !takeover->gone &&
        !goes_on_alone(takeover, "it has not waited for this one, and goes on to serve", error))
        return false;
    if (sent) {
        takeover_receive(takeover->fd, &takeover->message, RETIRED_PATIENCE);
        log_info("taken over from process %d", takeover->pid);
        takeover->serves = true;
        look(context);
    }
    takeover->waiting = pipe2(takeover->stop, O_CLOEXEC) == 0 &&
                        pthread_create(&takeover->thread, NULL, wait_for_end, takeover) == 0;
    return true;
}

int takeover_take_removals(struct takeover *takeover) {
    struct takeover_message *message = &takeover->message;
    CHECK_OBJ(takeover, TAKEOVER_MAGIC);
    if (!takeover->serves || message->fd_count == 0)
        return -1;
    return message->fds[--message->fd_count];
}

void takeover_free(struct takeover **takeoverp) {
    struct takeover *takeover = *takeoverp;
    *takeoverp = NULL;
    if (takeover == NULL)
        return;
    CHECK_OBJ(takeover, TAKEOVER_MAGIC);
    if (takeover->stop[1] >= 0)
        close(takeover->stop[1]);
    if (takeover->waiting)
        pthread_join(takeover->thread, NULL);
    if (takeover->stop[0] >= 0)
        close(takeover->stop[0]);
    if (takeover->process >= 0)
        close(takeover->process);
    if (takeover->serves)
        takeover_send(takeover->fd, "done");
    close(takeover->fd);
    FREE_OBJ(takeover);
}
