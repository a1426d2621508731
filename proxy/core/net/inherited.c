#include "net/inherited.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/notify.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_FD = 3, FDS_MOST = 4096 };

struct inherited_socket {
    int fd;          /* -1: taken */
    uint64_t cookie; /* the same for all descriptors of a socket */
    struct address address;
};

struct inherited {
    unsigned magic;
#define INHERITED_MAGIC 0x1e4e217du
    unsigned count;
    struct inherited_socket *all;
};

struct inherited *inherited_new(void) {
    struct inherited *inherited;
    ALLOC_OBJ(inherited, INHERITED_MAGIC);
    return inherited;
}

static bool inherited_is_listening(int fd) {
    int on = 0;
    socklen_t length = sizeof on;
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &length) == 0 && on != 0;
}

static uint64_t inherited_cookie(int fd) {
    uint64_t cookie = 0;
    socklen_t length = sizeof cookie;
    getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length);
    return cookie;
}

void inherited_add(struct inherited *inherited, int fd) {
    CHECK_OBJ(inherited, INHERITED_MAGIC);
    struct inherited_socket socket = {.fd = fd, .address = {.length = sizeof socket.address.local}};
    if (!inherited_is_listening(fd) ||
        getsockname(fd, &socket.address.any, &socket.address.length) != 0) {
        log_warn("an inherited descriptor is no listening socket and is closed");
        close(fd);
        return;
    }
    socket.cookie = inherited_cookie(fd);
    for (unsigned i = 0; i < inherited->count; i++)
        if (inherited->all[i].cookie == socket.cookie) {
            close(fd); /* workers share it */
            return;
        }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    inherited->all = xrealloc(inherited->all, (inherited->count + 1) * sizeof inherited->all[0]);
    inherited->all[inherited->count++] = socket;
}

void inherited_read_environment(struct inherited *inherited) {
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    if (pid != NULL && count != NULL && strtol(pid, NULL, 10) == (long)getpid()) {
        long fds = strtol(count, NULL, 10);
        for (int fd = FIRST_FD; fd < FIRST_FD + (fds < FDS_MOST ? fds : FDS_MOST); fd++)
            if (fcntl(fd, F_GETFD) >= 0)
                inherited_add(inherited, fd);
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

/* The kernel counts a zero behind a path or not. */
static bool inherited_is_at(const struct inherited_socket *socket, const struct address *address) {
    if (socket->address.any.sa_family != address->any.sa_family)
        return false;
    if (address->any.sa_family == AF_UNIX)
        return strncmp(socket->address.local.sun_path, address->local.sun_path,
                       sizeof address->local.sun_path) == 0;
    return address_equal(&socket->address, address);
}

unsigned inherited_take(struct inherited *inherited, const struct address *address, int *fds,
                        unsigned most) {
    unsigned count = 0;
    for (unsigned i = 0; inherited != NULL && i < inherited->count && count < most; i++) {
        struct inherited_socket *socket = &inherited->all[i];
        if (socket->fd < 0 || !inherited_is_at(socket, address))
            continue;
        fds[count++] = socket->fd;
        socket->fd = -1;
    }
    return count;
}

bool inherited_has_port(const struct inherited *inherited, uint16_t port) {
    for (unsigned i = 0; inherited != NULL && i < inherited->count; i++)
        if (inherited->all[i].fd >= 0 && inherited->all[i].address.any.sa_family != AF_UNIX &&
            address_port(&inherited->all[i].address) == port)
            return true;
    return false;
}

void inherited_drop(const struct inherited *inherited) {
    for (unsigned i = 0; i < inherited->count; i++)
        if (inherited->all[i].fd >= 0 && inherited->all[i].address.any.sa_family == AF_UNIX)
            unlink(inherited->all[i].address.local.sun_path);
}

void inherited_discard(const struct inherited *inherited) {
    char text[ADDRESS_TEXT];
    for (unsigned i = 0; i < inherited->count; i++) {
        if (inherited->all[i].fd < 0)
            continue;
        address_format(&inherited->all[i].address, text);
        log_warn("an inherited socket listens at %s, where the configuration has no listener: it "
                 "is closed",
                 text);
        socket_store_remove(&inherited->all[i].address);
    }
}

void inherited_free(struct inherited **inheritedp) {
    struct inherited *inherited = *inheritedp;
    *inheritedp = NULL;
    if (inherited == NULL)
        return;
    CHECK_OBJ(inherited, INHERITED_MAGIC);
    for (unsigned i = 0; i < inherited->count; i++)
        if (inherited->all[i].fd >= 0)
            close(inherited->all[i].fd);
    free(inherited->all);
    FREE_OBJ(inherited);
}
