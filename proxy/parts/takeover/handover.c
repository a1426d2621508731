#include "takeover/handover.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/threads.h"
#include "cache/second_level.h"
#include "net/address.h"
#include "net/notify.h"
#include "part.h"
#include "takeover/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A listening Unix socket for this user alone, for messages with other processes of the machine.
 *
 * A file that a dead process left is replaced, any other one is not touched.
 */

enum { LOCAL_SOCKET_ERROR = 256 };

struct local_socket {
    int fd;
    char *path; /* NULL: the file belongs to another process */
    dev_t device;
    ino_t inode;
};

enum { BACKLOG = 16 };

/* Returns true when there is nothing at the path, or a socket without a process, which is
 * removed. */
static bool local_socket_make_room(const struct address *address, int type) {
    struct stat status;
    const char *path = address->local.sun_path;
    if (lstat(path, &status) != 0)
        return true; /* bind reports any reason other than absence */
    if (!S_ISSOCK(status.st_mode))
        return false;
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    bool dead =
        fd >= 0 && connect(fd, &address->any, address->length) != 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return dead && unlink(path) == 0;
}

static int local_socket_listen(const struct address *address, int type) {
    if (!local_socket_make_room(address, type)) {
        errno = EADDRINUSE;
        return -1;
    }
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(0177); /* mode 0600 from the first moment on */
    bool good = fd >= 0 && bind(fd, &address->any, address->length) == 0;
    int reason = errno;
    umask(mask);
    if (good && listen(fd, BACKLOG) == 0)
        return fd;
    reason = good ? errno : reason;
    if (fd >= 0)
        close(fd);
    errno = reason;
    return -1;
}

/* The file of an inherited socket is removed at the end from now on, and who connects sees that the
 * socket is this process' (SO_PEERCRED). */
static void local_socket_own(struct local_socket *local, const struct address *address) {
    struct stat status;
    listen(local->fd, BACKLOG); /* notes the number of this process */
    if (local->path != NULL || stat(address->local.sun_path, &status) != 0)
        return;
    local->path = xstrdup(address->local.sun_path);
    local->device = status.st_dev;
    local->inode = status.st_ino;
}

/* `inherited`: a socket that listens at the address already, -1: none. Its file belongs to another
 * process until local_socket_own. `option`: the name in
 * messages. Returns false with a message in `error`, which has LOCAL_SOCKET_ERROR bytes. */
static bool local_socket_open(struct local_socket *local, const struct address *address, int type,
                              int inherited, const char *option, char *error) {
    *local = (struct local_socket){.fd = inherited};
    if (inherited < 0)
        local->fd = local_socket_listen(address, type);
    if (local->fd < 0) {
        snprintf(error, LOCAL_SOCKET_ERROR,
                 "%s: %.108s can not be used: %s; let retort's user write to its directory, and "
                 "stop the other retort or choose another path",
                 option, address->local.sun_path, strerror(errno));
        return false;
    }
    if (inherited < 0)
        local_socket_own(local, address);
    return true;
}

/* Waits for a connection, close-on-exec. */
static int local_socket_accept(const struct local_socket *local, int stop) {
    struct pollfd events[] = {{.fd = stop, .events = POLLIN}, {.fd = local->fd, .events = POLLIN}};
    for (;;) {
        if (poll(events, 2, -1) < 0 && errno != EINTR)
            return -1;
        if (events[0].revents != 0)
            return -1;
        int fd = accept4(local->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            return fd;
        if (errno == EMFILE || errno == ENFILE)
            poll(NULL, 0, 100);
    }
}

/* The file stays: another process has the socket too. */
static void local_socket_give_away(struct local_socket *local) {
    free(local->path);
    local->path = NULL;
}

static void local_socket_close(struct local_socket *local) {
    struct stat status;
    if (local->path != NULL && lstat(local->path, &status) == 0 && status.st_dev == local->device &&
        status.st_ino == local->inode)
        unlink(local->path);
    local_socket_give_away(local);
    if (local->fd >= 0)
        close(local->fd);
    local->fd = -1;
}

/* Milliseconds for the next message of the other process. */
enum {
    HELLO_PATIENCE = 2000,
    CHECK_PATIENCE = 60000,
    START_PATIENCE = 600000, /* it reads the volumes */
    SERVING_PATIENCE = 30000,
    RECLAIM_PAUSE = 100,
    RECLAIM_COMPLAINS = 30000, /* after the first second, and then again and again */
};

struct handover {
    unsigned magic;
#define HANDOVER_MAGIC 0x4a2d07e5u
    struct handover_calls calls;
    struct address address;
    struct local_socket socket;
    int stop[2];          /* a pipe whose end wakes the thread */
    int connection;       /* of the process that takes over; -1: none */
    pthread_mutex_t lock; /* for connection */
    struct thread thread;
    _Atomic bool stopping, done;
    _Atomic bool failed; /* done, but the other process has died since */
};

/* The process that takes over. */
struct next_process {
    int fd, pid;
};

static bool pass_some(void *arg, const int *fds, unsigned count) {
    const struct next_process *other = arg;
    bool sent = true;
    for (unsigned at = 0; sent && at < count; at += TAKEOVER_FDS) {
        unsigned rest = count - at;
        sent = takeover_send_fds(other->fd, "sockets", fds + at,
                                 rest < TAKEOVER_FDS ? rest : TAKEOVER_FDS);
    }
    return sent;
}

/* Sockets that workers share are passed as often as workers have them; the other process tells by
 * the cookie which are the same. */
static bool pass_sockets(struct handover *handover, struct next_process *other) {
    return handover->calls.sockets(handover->calls.context, pass_some, other) &&
           pass_some(other, &handover->socket.fd, 1) && takeover_send(other->fd, "ready");
}

static bool handover_expect(int fd, const char *text, int patience) {
    struct takeover_message *message = xmalloc(sizeof *message);
    bool came = takeover_receive(fd, message, patience) && takeover_is(message, text);
    for (unsigned i = 0; i < message->fd_count; i++)
        close(message->fds[i]);
    free(message);
    return came;
}

/* The other process must not learn later than this one that it was too late. */
static bool expect_serving(int fd) {
    if (handover_expect(fd, "serving", SERVING_PATIENCE))
        return true;
    takeover_shut(fd);
    return handover_expect(fd, "serving", 0);
}

/* With a descriptor: where the other process hears of removals. */
static bool expect_prepared(int fd, int *removals) {
    struct takeover_message *message = xmalloc(sizeof *message);
    bool came = takeover_receive(fd, message, START_PATIENCE) && takeover_is(message, "prepared");
    *removals = -1;
    for (unsigned i = 0; i < message->fd_count; i++)
        if (came && *removals < 0)
            *removals = message->fds[i];
        else
            close(message->fds[i]);
    free(message);
    return came;
}

/* The other process accepts connections from "serve" on: what was removed before is removed there too
 * by then. */
static bool let_serve(struct handover *handover, int fd) {
    int removals;
    if (!expect_prepared(fd, &removals))
        return false;
    if (!handover->calls.tell_removals(handover->calls.context, removals)) {
        log_error("the other process could not be told what clients have removed from the cache "
                  "since it has the disks: try again");
        return false;
    }
    return takeover_send(fd, "serve") && expect_serving(fd);
}

/* The other process keeps its locks until it has ended. */
static void take_disks_back(struct handover *handover, int pid) {
    char error[SETTINGS_ERROR];
    uint64_t complains = clocks_milliseconds(CLOCK_MONOTONIC) + 1000;
    while (!second_level_take_back(handover->calls.second_level, error)) {
        uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
        if (atomic_load(&handover->stopping))
            return;
        if (now >= complains) {
            log_error("%s; until then nothing is read from it or written to it, and nobody else "
                      "can take over: end process %d if it still runs",
                      error, pid);
            complains = now + RECLAIM_COMPLAINS;
        }
        usleep(RECLAIM_PAUSE * 1000);
    }
}

/* True: the other process serves. */
static bool give_disks(struct handover *handover, const struct next_process *other) {
    char error[SETTINGS_ERROR];
    handover->calls.note_removals(handover->calls.context);
    bool lent = second_level_lend(handover->calls.second_level, error);
    if (!lent)
        log_error("%s", error);
    bool serves = lent && takeover_send(other->fd, "given") && let_serve(handover, other->fd);
    if (!serves) {
        handover->calls.forget_removals(handover->calls.context);
        takeover_shut(other->fd);
        take_disks_back(handover, other->pid);
    }
    return serves;
}

/* Processes from before may tell removals to the next one even if this one ends before them. */
static void tell_retired(struct handover *handover, const struct next_process *other) {
    int fds[HANDOVER_HEARS];
    unsigned count = handover->calls.hears_removals(handover->calls.context, fds);
    takeover_send_fds(other->fd, "retired", fds, count);
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

/* The service manager listens to the other process from now on. The socket is closed here too: if the
 * other process dies, the next one must find that nobody listens there. */
static void handover_finish(struct handover *handover, const struct next_process *other) {
    notify_send("MAINPID=%d", other->pid);
    local_socket_give_away(&handover->socket);
    local_socket_close(&handover->socket);
    atomic_store(&handover->done, true);
    log_info("process %d has taken over: this one finishes what is under way, and ends",
             other->pid);
    handover->calls.retire(handover->calls.context);
    tell_retired(handover, other);
}

/* The connection stays open until this process ends. One that ends as it should says so before: it
 * was stopped, or has been taken over itself. */
static void watch_next_process(struct handover *handover, const struct next_process *other) {
    struct pollfd events[] = {{.fd = handover->stop[0], .events = POLLIN},
                              {.fd = other->fd, .events = POLLIN}};
    while (poll(events, 2, -1) < 0 && errno == EINTR)
        continue;
    if (events[0].revents != 0 || handover_expect(other->fd, "done", 0))
        return;
    atomic_store(&handover->failed, true);
    log_error("process %d, which has taken over, has died: nobody accepts connections now. This "
              "process can not, because it has closed its sockets and ends too, with status 1: "
              "start retort, unless the service manager does",
              other->pid);
}

static void handover_run(struct handover *handover, struct next_process *other) {
    const struct handover_calls *calls = &handover->calls;
    log_info("process %d is about to take over", other->pid);
    calls->forbid_reload(calls->context, true);
    if (pass_sockets(handover, other) && handover_expect(other->fd, "give", CHECK_PATIENCE) &&
        give_disks(handover, other)) {
        handover_finish(handover, other);
        watch_next_process(handover, other);
        return;
    }
    log_warn("process %d did not take over: this one goes on as before", other->pid);
    calls->forbid_reload(calls->context, false);
}

/* With a descriptor by which the other process sees whether this one runs. */
static void introduce(int fd) {
    char text[32];
    int process = pidfd_open(getpid(), 0);
    snprintf(text, sizeof text, "process %d", (int)getpid());
    takeover_send_fds(fd, text, &process, process < 0 ? 0 : 1);
    if (process >= 0)
        close(process);
}

/* The hello is read first: the close of a connection with unread messages takes the answer away. */
static void handover_meet(struct handover *handover, int fd) {
    struct next_process other = {.fd = fd};
    bool good = handover_expect(fd, TAKEOVER_HELLO, HELLO_PATIENCE);
    if (!takeover_is_same_user(fd, &other.pid)) {
        log_warn("process %d of another user wanted to take over, and was refused", other.pid);
        takeover_send(fd, "refused only a process of the same user may take over");
        return;
    }
    introduce(fd);
    if (!good)
        takeover_send(fd, "refused the versions of both programs do not fit: stop the old one and "
                          "start the new one");
    else if (handover->calls.is_ending(handover->calls.context))
        takeover_send(fd, "refused it is stopping: wait for its end and start without --take-over");
    else
        handover_run(handover, &other);
}

static void set_connection(struct handover *handover, int fd) {
    pthread_mutex_lock(&handover->lock);
    handover->connection = fd;
    pthread_mutex_unlock(&handover->lock);
}

/* After the handover the connection stays open until this process ends. */
static void handover_main(void *arg) {
    struct handover *handover;
    CAST_OBJ(handover, arg, HANDOVER_MAGIC);
    while (!atomic_load(&handover->done)) {
        int fd = local_socket_accept(&handover->socket, handover->stop[0]);
        if (fd < 0)
            break;
        set_connection(handover, fd);
        handover_meet(handover, fd);
        if (atomic_load(&handover->done))
            break;
        set_connection(handover, -1);
        close(fd);
    }
}

static struct handover *handover_new(const struct handover_calls *calls) {
    struct handover *handover;
    ALLOC_OBJ(handover, HANDOVER_MAGIC);
    handover->calls = *calls;
    handover->connection = handover->stop[0] = handover->stop[1] = -1;
    pthread_mutex_init(&handover->lock, NULL);
    return handover;
}

void handover_possible(const struct settings *settings, struct findings *findings) {
    const struct takeover_settings *mine = settings->parts[PART_TAKEOVER];
    struct address address;
    struct stat status;
    if (!takeover_address(settings, &address))
        return;
    const char *path = address.local.sun_path, *other = part_socket_path(settings);
    if (other != NULL && strcmp(path, other) == 0)
        findings_add(findings, "take_over_socket: %s is the socket of admin.listen: name another",
                     path);
    else if (lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode))
        findings_add(findings, "take_over_socket: %s exists and is not a socket: name another",
                     path);
    else if (mine->socket != NULL) /* otherwise it lies beside that of admin.listen */
        findings_of_directory(findings, "take_over_socket", path);
}

struct handover *handover_open(const struct handover_calls *calls, const struct settings *settings,
                               struct inherited *inherited, char error[SETTINGS_ERROR]) {
    struct address address;
    int fd = -1;
    error[0] = '\0';
    if (!takeover_address(settings, &address))
        return NULL;
    struct handover *handover = handover_new(calls);
    handover->address = address;
    inherited_take(inherited, &address, &fd, 1);
    if (!local_socket_open(&handover->socket, &address, SOCK_SEQPACKET, fd, "take_over_socket",
                           error)) {
        handover_stop(&handover);
    } else if (pipe2(handover->stop, O_CLOEXEC) != 0) {
        snprintf(error, SETTINGS_ERROR, "cannot make a pipe: %s", strerror(errno));
        handover_stop(&handover);
    }
    return handover;
}

void handover_start(struct handover *handover) {
    if (handover == NULL)
        return;
    CHECK_OBJ(handover, HANDOVER_MAGIC);
    local_socket_own(&handover->socket, &handover->address);
    if (!thread_start(&handover->thread, handover_main, handover, "rt-handover"))
        log_error("nobody can take over from this process: its thread can not be started");
}

bool handover_is_done(const struct handover *handover) {
    return handover != NULL && atomic_load(&handover->done);
}

bool handover_has_failed(const struct handover *handover) {
    return handover != NULL && atomic_load(&handover->failed);
}

void handover_stop(struct handover **handoverp) {
    struct handover *handover = *handoverp;
    *handoverp = NULL;
    if (handover == NULL)
        return;
    CHECK_OBJ(handover, HANDOVER_MAGIC);
    atomic_store(&handover->stopping, true);
    if (handover->stop[1] >= 0)
        close(handover->stop[1]);
    pthread_mutex_lock(&handover->lock);
    if (handover->connection >= 0 && !atomic_load(&handover->done))
        shutdown(handover->connection, SHUT_RDWR);
    pthread_mutex_unlock(&handover->lock);
    thread_join(&handover->thread);
    if (handover->stop[0] >= 0)
        close(handover->stop[0]);
    local_socket_close(&handover->socket);
    pthread_mutex_destroy(&handover->lock);
    FREE_OBJ(handover);
}
