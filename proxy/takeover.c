#include "takeover.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/lending.h"
#include "takeover_wire.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Milliseconds for an answer of the other process. */
enum {
    SOCKETS_PATIENCE = 60000,
    DISKS_PATIENCE = 120000, /* it writes what is queued */
    TAKEN_PATIENCE = 10000,
    FOR_EVER = -1,
};

struct takeover {
    unsigned magic;
#define TAKEOVER_MAGIC 0x7a4e0e45u
    int fd;
    int pid;
    bool gone; /* the other process */
    struct disk_pins pins;
    struct disk *disk;
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

/* False with a message: the sockets did not come. */
static bool receive_sockets(struct takeover *takeover, struct inherited *inherited,
                            char error[SETTINGS_ERROR]) {
    struct takeover_message *message = &takeover->message;
    static const char refused[] = "refused ";
    while (takeover_receive(takeover->fd, message, SOCKETS_PATIENCE)) {
        for (unsigned i = 0; i < message->fd_count; i++)
            inherited_add(inherited, message->fds[i]);
        if (takeover_is(message, "ready"))
            return true;
        if (message->length == 0)
            break;
        if (strncmp(message->bytes, refused, sizeof refused - 1) == 0) {
            takeover_refuse(error, takeover, message->bytes + sizeof refused - 1);
            return false;
        }
    }
    takeover_refuse(error, takeover, "it does not pass its sockets");
    return false;
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
    struct takeover *takeover;
    ALLOC_OBJ(takeover, TAKEOVER_MAGIC);
    takeover->fd = fd;
    if (!takeover_is_same_user(fd, &takeover->pid))
        takeover_refuse(error, takeover, "it belongs to another user: run this as that user");
    else if (!takeover_send(fd, TAKEOVER_HELLO))
        takeover_refuse(error, takeover, "it does not answer");
    else if (receive_sockets(takeover, inherited, error))
        return takeover;
    takeover_free(&takeover);
    return NULL;
}

static void other_is_gone(struct takeover *takeover) {
    takeover->gone = true;
    log_warn("process %d has ended while it handed over: this one goes on alone", takeover->pid);
}

bool takeover_get_disks(struct takeover *takeover, char error[SETTINGS_ERROR]) {
    struct takeover_message *message = &takeover->message;
    bool sent = takeover_send(takeover->fd, "give");
    while (sent && takeover_receive(takeover->fd, message, DISKS_PATIENCE)) {
        if (takeover_is(message, "given"))
            return true;
        if (message->length == 0)
            sent = false;
        else if (takeover_is(message, "pins") && message->length >= TAKEOVER_WORD)
            disk_pins_add(&takeover->pins,
                          (const struct disk_pin *)(const void *)(message->bytes + TAKEOVER_WORD),
                          (message->length - TAKEOVER_WORD) / sizeof *takeover->pins.all);
    }
    if (!sent) {
        other_is_gone(takeover);
        return true;
    }
    takeover_refuse(error, takeover, "it does not give up its disks");
    return false;
}

const struct disk_pins *takeover_pins(const struct takeover *takeover) {
    CHECK_OBJ(takeover, TAKEOVER_MAGIC);
    return &takeover->pins;
}

/* The other process sends nothing more, so only its end wakes the thread, or takeover_free. */
static void *wait_for_end(void *arg) {
    struct takeover *takeover;
    CAST_OBJ(takeover, arg, TAKEOVER_MAGIC);
    takeover_receive(takeover->fd, &takeover->message, (unsigned)FOR_EVER);
    disk_release_pins(takeover->disk, &takeover->pins);
    return NULL;
}

void takeover_finish(struct takeover *takeover, struct disk *disk) {
    CHECK_OBJ(takeover, TAKEOVER_MAGIC);
    takeover->disk = disk;
    bool taken = !takeover->gone && takeover_send(takeover->fd, "serving") &&
                 takeover_receive(takeover->fd, &takeover->message, TAKEN_PATIENCE) &&
                 takeover_is(&takeover->message, "taken");
    if (!taken && !takeover->gone)
        other_is_gone(takeover);
    if (taken)
        log_info("taken over from process %d", takeover->pid);
    takeover->waiting = pthread_create(&takeover->thread, NULL, wait_for_end, takeover) == 0;
}

void takeover_free(struct takeover **takeoverp) {
    struct takeover *takeover = *takeoverp;
    *takeoverp = NULL;
    if (takeover == NULL)
        return;
    CHECK_OBJ(takeover, TAKEOVER_MAGIC);
    shutdown(takeover->fd, SHUT_RDWR);
    if (takeover->waiting)
        pthread_join(takeover->thread, NULL);
    close(takeover->fd);
    disk_pins_release(&takeover->pins);
    FREE_OBJ(takeover);
}
