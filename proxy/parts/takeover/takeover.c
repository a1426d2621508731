#include "takeover/takeover.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/threads.h"
#include "takeover/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
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
    bool ended;  /* there was no such process when a descriptor was asked for */
    bool gone;   /* the other process has ended */
    bool serves; /* this one, and the other one knows it */
    int stop[2]; /* a pipe whose end wakes the thread */
    void (*look)(void *context);
    void *context;
    struct thread thread;
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

/* Looks after a process that has not sent a descriptor of itself. */
static void watch_process(struct takeover *takeover, int pid) {
    takeover->pid = pid;
    takeover->process = pidfd_open(pid, 0);
    takeover->ended = takeover->process < 0 && errno == ESRCH;
}

/* Has the other process ended, or does it within `patience` milliseconds? */
static bool has_ended(const struct takeover *takeover, int patience) {
    struct pollfd process = {.fd = takeover->process, .events = POLLIN};
    return takeover->ended || (takeover->process >= 0 && poll(&process, 1, patience) > 0);
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

static void set_process(struct takeover *takeover, int process) {
    if (takeover->process >= 0)
        close(takeover->process);
    takeover->process = process;
    takeover->ended = false;
}

/* The message "process PID" with a descriptor of it. */
static void meet_process(struct takeover *takeover) {
    struct takeover_message *message = &takeover->message;
    takeover->pid = (int)strtol(message->bytes + sizeof "process", NULL, 10);
    set_process(takeover, -1);
    if (message->fd_count > 0) {
        set_process(takeover, message->fds[0]);
        message->fds[0] = message->fds[--message->fd_count];
    }
}

/* A connection that is open, but silent, may wait for another process than the one that it was made
 * to: one that takes over from that one at this moment. */
static bool no_sockets(struct takeover *takeover, bool is_met, bool closed,
                       char error[SETTINGS_ERROR]) {
    static const char reason[] = "it does not pass its sockets: look into its log, and start "
                                 "without --take-over if it has ended";
    if (closed || is_met)
        return goes_on_alone(takeover, reason, error);
    takeover_refuse(error, takeover, reason);
    return false;
}

/* False with a message: the sockets did not come. When the other process has ended before it had
 * passed all of them, this one opens the others itself. */
static bool receive_sockets(struct takeover *takeover, struct inherited *inherited,
                            char error[SETTINGS_ERROR]) {
    struct takeover_message *message = &takeover->message;
    bool is_met = false, closed = false;
    while (!closed && takeover_receive(takeover->fd, message, SOCKETS_PATIENCE)) {
        if (takeover_begins(message, "process ") && !is_met) {
            is_met = true;
            meet_process(takeover);
        }
        for (unsigned i = 0; i < message->fd_count; i++)
            inherited_add(inherited, message->fds[i]);
        if (takeover_is(message, "ready"))
            return true;
        closed = message->length == 0;
        if (takeover_begins(message, "refused ")) {
            takeover_refuse(error, takeover, message->bytes + sizeof "refused");
            return false;
        }
    }
    return no_sockets(takeover, is_met, closed, error);
}

static struct takeover *takeover_new(int fd) {
    struct takeover *takeover;
    ALLOC_OBJ(takeover, TAKEOVER_MAGIC);
    takeover->fd = fd;
    takeover->process = takeover->stop[0] = takeover->stop[1] = -1;
    return takeover;
}

/* Has the process ended that started this one for a takeover, before this one found it? */
static bool starter_has_ended(struct takeover *takeover) {
    const char *text = getenv(TAKEOVER_STARTER);
    int pid = text == NULL ? 0 : (int)strtol(text, NULL, 10);
    if (pid <= 0)
        return false;
    watch_process(takeover, pid);
    /* While it is the parent, no other process can have its number. */
    return getppid() != pid || has_ended(takeover, ENDING_PATIENCE);
}

/* Nobody answers at the address. The place of a process that has ended is free: this one opens the
 * sockets itself. */
static struct takeover *begin_alone(const struct address *address, char error[SETTINGS_ERROR]) {
    int reason = errno;
    struct takeover *takeover = takeover_new(-1);
    if ((reason == ECONNREFUSED || reason == ENOENT) && starter_has_ended(takeover)) {
        takeover->gone = true;
        log_warn("process %d has ended before it could hand over: this one goes on alone",
                 takeover->pid);
        return takeover;
    }
    snprintf(error, SETTINGS_ERROR,
             "cannot take over: no retort answers at %.108s: %s; start without --take-over if "
             "none is running",
             address->local.sun_path, strerror(reason));
    takeover_free(&takeover);
    return NULL;
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
    if (fd < 0)
        return begin_alone(&address, error);
    struct takeover *takeover = takeover_new(fd);
    int pid = 0;
    bool is_ours = takeover_is_same_user(fd, &pid);
    watch_process(takeover, pid);
    if (!is_ours) {
        takeover_refuse(error, takeover, "it belongs to another user: run this as that user");
    } else {
        takeover_send(fd, TAKEOVER_HELLO); /* a connection that is closed shows when it is read */
        if (receive_sockets(takeover, inherited, error))
            return takeover;
    }
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
static void wait_for_end(void *arg) {
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
    if (pipe2(takeover->stop, O_CLOEXEC) == 0)
        thread_start(&takeover->thread, wait_for_end, takeover, "rt-takeover");
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
    thread_join(&takeover->thread);
    if (takeover->stop[0] >= 0)
        close(takeover->stop[0]);
    if (takeover->process >= 0)
        close(takeover->process);
    if (takeover->serves)
        takeover_send(takeover->fd, "done");
    if (takeover->fd >= 0)
        close(takeover->fd);
    FREE_OBJ(takeover);
}
