#include "net/local_socket.h"

#include "base/assert.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool local_socket_open(struct local_socket *local, const struct address *address, int type,
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

void local_socket_own(struct local_socket *local, const struct address *address) {
    struct stat status;
    if (local->path != NULL || stat(address->local.sun_path, &status) != 0)
        return;
    local->path = xstrdup(address->local.sun_path);
    local->device = status.st_dev;
    local->inode = status.st_ino;
}

int local_socket_accept(const struct local_socket *local, int stop) {
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

void local_socket_give_away(struct local_socket *local) {
    free(local->path);
    local->path = NULL;
}

void local_socket_close(struct local_socket *local) {
    struct stat status;
    if (local->path != NULL && lstat(local->path, &status) == 0 && status.st_dev == local->device &&
        status.st_ino == local->inode)
        unlink(local->path);
    local_socket_give_away(local);
    if (local->fd >= 0)
        close(local->fd);
    local->fd = -1;
}
