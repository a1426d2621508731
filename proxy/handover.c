#include "handover.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/lending.h"
#include "net/local_socket.h"
#include "notify.h"
#include "takeover_wire.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Milliseconds for the next message of the other process. */
enum {
    HELLO_PATIENCE = 2000,
    CHECK_PATIENCE = 60000,
    START_PATIENCE = 600000, /* it reads the volumes */
    RECLAIM_PAUSE = 100,
    SOCKET_PATIENCE = 10000,
};

struct handover {
    unsigned magic;
#define HANDOVER_MAGIC 0x4a2d07e5u
    struct server *server;
    struct admin *admin;
    struct local_socket socket;
    int stop[2];          /* a pipe whose end wakes the thread */
    int connection;       /* of the process that takes over; -1: none */
    pthread_mutex_t lock; /* for connection */
    pthread_t thread;
    _Atomic bool stopping, done;
};

/* The sockets of all workers. Those that workers share are passed as often as workers have them;
 * the other process tells by the cookie which are the same. */
static bool pass_sockets(struct handover *handover, int fd) {
    struct server *server = handover->server;
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct worker_sockets sockets;
        if (atomic_load(&server->ended) ||
            !worker_ask_sockets(server->workers[i], &sockets, SOCKET_PATIENCE))
            return false;
        bool sent = true;
        for (size_t at = 0; sent && at < sockets.count; at += TAKEOVER_FDS) {
            size_t rest = sockets.count - at;
            sent = takeover_send_fds(fd, "sockets", sockets.fds + at,
                                     (unsigned)(rest < TAKEOVER_FDS ? rest : TAKEOVER_FDS));
        }
        worker_sockets_release(&sockets);
        if (!sent)
            return false;
    }
    int own[2] = {handover->socket.fd, admin_socket(handover->admin)};
    return takeover_send_fds(fd, "sockets", own, own[1] < 0 ? 1 : 2) && takeover_send(fd, "ready");
}

static bool pass_pins(int fd, const struct disk_pins *pins) {
    enum { SOME = (TAKEOVER_MESSAGE - TAKEOVER_WORD) / sizeof *pins->all };
    for (size_t at = 0; at < pins->count; at += SOME) {
        size_t rest = pins->count - at;
        if (!takeover_send_data(fd, "pins", pins->all + at,
                                (rest < SOME ? rest : SOME) * sizeof *pins->all))
            return false;
    }
    return takeover_send(fd, "given");
}

static bool handover_expect(int fd, const char *text, unsigned patience) {
    struct takeover_message *message = xmalloc(sizeof *message);
    bool came = takeover_receive(fd, message, patience) && takeover_is(message, text);
    for (unsigned i = 0; i < message->fd_count; i++)
        close(message->fds[i]);
    free(message);
    return came;
}

/* The other process keeps its locks until it has ended. */
static void take_disks_back(struct handover *handover) {
    char error[SETTINGS_ERROR];
    while (!disk_take_back(handover->server->disk, error)) {
        if (atomic_load(&handover->stopping))
            return;
        usleep(RECLAIM_PAUSE * 1000);
    }
}

/* True: the other process serves. */
static bool give_disks(struct handover *handover, int fd) {
    struct disk_pins pins = {0};
    disk_lend(handover->server->disk, &pins);
    bool serves = pass_pins(fd, &pins) && handover_expect(fd, "serving", START_PATIENCE);
    disk_pins_release(&pins);
    if (!serves)
        take_disks_back(handover);
    return serves;
}

/* The main thread ends the process as after SIGTERM, when the last connection has ended. */
static void handover_finish(struct handover *handover, int fd, int pid) {
    struct server *server = handover->server;
    admin_give_away(handover->admin);
    local_socket_give_away(&handover->socket);
    notify_send("MAINPID=%d", pid);
    log_info("process %d has taken over: this one finishes what is under way, and ends", pid);
    atomic_store(&handover->done, true);
    server_retire(server);
    takeover_send(fd, "taken");
    if (!atomic_exchange(&server->draining, true))
        kill(getpid(), SIGTERM);
}

static void handover_run(struct handover *handover, int fd, int pid) {
    struct server *server = handover->server;
    log_info("process %d is about to take over", pid);
    server_forbid_reload(server, true);
    if (pass_sockets(handover, fd) && handover_expect(fd, "give", CHECK_PATIENCE) &&
        give_disks(handover, fd)) {
        handover_finish(handover, fd, pid);
        return;
    }
    log_warn("process %d did not take over: this one goes on as before", pid);
    server_forbid_reload(server, false);
}

/* The hello is read first: the close of a connection with unread messages takes the answer away. */
static void handover_meet(struct handover *handover, int fd) {
    int pid = 0;
    bool good = handover_expect(fd, TAKEOVER_HELLO, HELLO_PATIENCE);
    if (!takeover_is_same_user(fd, &pid)) {
        log_warn("process %d of another user wanted to take over, and was refused", pid);
        takeover_send(fd, "refused only a process of the same user may take over");
    } else if (!good) {
        takeover_send(fd, "refused the versions of both programs do not fit: stop the old one and "
                          "start the new one");
    } else if (atomic_load(&handover->server->draining)) {
        takeover_send(fd, "refused it is stopping: wait for its end and start without --take-over");
    } else {
        handover_run(handover, fd, pid);
    }
}

static void set_connection(struct handover *handover, int fd) {
    pthread_mutex_lock(&handover->lock);
    handover->connection = fd;
    pthread_mutex_unlock(&handover->lock);
}

/* After the handover the connection stays open until this process ends: the other one waits for
 * that before it overwrites what is being sent from the volumes. */
static void *handover_main(void *arg) {
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
    return NULL;
}

static struct handover *handover_new(struct server *server, struct admin *admin) {
    struct handover *handover;
    ALLOC_OBJ(handover, HANDOVER_MAGIC);
    handover->server = server;
    handover->admin = admin;
    handover->connection = -1;
    pthread_mutex_init(&handover->lock, NULL);
    return handover;
}

struct handover *handover_start(struct server *server, struct admin *admin,
                                struct inherited *inherited, char error[SETTINGS_ERROR]) {
    struct address address;
    error[0] = '\0';
    /* The admin plane is there already, and may read the configuration again meanwhile. */
    if (!takeover_address(server->first, &address))
        return NULL;
    struct handover *handover = handover_new(server, admin);
    int fd = -1;
    inherited_take(inherited, &address, &fd, 1);
    if (!local_socket_open(&handover->socket, &address, SOCK_SEQPACKET, fd, "take_over_socket",
                           error) ||
        pipe2(handover->stop, O_CLOEXEC) != 0 ||
        pthread_create(&handover->thread, NULL, handover_main, handover) != 0) {
        if (error[0] == '\0')
            snprintf(error, SETTINGS_ERROR, "cannot start a thread");
        local_socket_close(&handover->socket);
        pthread_mutex_destroy(&handover->lock);
        FREE_OBJ(handover);
        return NULL;
    }
    return handover;
}

bool handover_is_done(const struct handover *handover) {
    return handover != NULL && atomic_load(&handover->done);
}

void handover_stop(struct handover **handoverp) {
    struct handover *handover = *handoverp;
    *handoverp = NULL;
    if (handover == NULL)
        return;
    CHECK_OBJ(handover, HANDOVER_MAGIC);
    atomic_store(&handover->stopping, true);
    close(handover->stop[1]);
    pthread_mutex_lock(&handover->lock);
    if (handover->connection >= 0 && !atomic_load(&handover->done))
        shutdown(handover->connection, SHUT_RDWR);
    pthread_mutex_unlock(&handover->lock);
    pthread_join(handover->thread, NULL);
    close(handover->stop[0]);
    local_socket_close(&handover->socket);
    pthread_mutex_destroy(&handover->lock);
    FREE_OBJ(handover);
}
