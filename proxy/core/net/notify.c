#include "net/notify.h"

#include "base/assert.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE_MAX = 400, INTERVAL_LEAST = 10 };

/* A name that begins with @ is one of the abstract namespace. */
static socklen_t notify_address(struct sockaddr_un *address) {
    const char *path = getenv("NOTIFY_SOCKET");
    size_t length = path == NULL ? 0 : strlen(path);
    if (length < 2 || length >= sizeof address->sun_path || (path[0] != '/' && path[0] != '@'))
        return 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, length);
    if (path[0] == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static void notify_add_fds(struct msghdr *message, const int *fds, unsigned count) {
    struct cmsghdr *header = message->msg_control;
    message->msg_controllen = CMSG_SPACE(count * sizeof *fds);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof *fds);
    memcpy(CMSG_DATA(header), fds, count * sizeof *fds);
}

static void notify_put(const int *fds, unsigned count, const char *format, va_list arguments) {
    static const struct timeval patience = {.tv_sec = 1};
    char text[MESSAGE_MAX];
    union {
        char bytes[CMSG_SPACE(NOTIFY_FDS * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct sockaddr_un address;
    socklen_t length = notify_address(&address);
    int fd = length == 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    vsnprintf(text, sizeof text, format, arguments);
    struct iovec piece = {text, strlen(text)};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = length, .msg_iov = &piece, .msg_iovlen = 1};
    if (count > 0) {
        message.msg_control = control.bytes;
        notify_add_fds(&message, fds, count);
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sendmsg(fd, &message, MSG_NOSIGNAL);
    close(fd);
}

void notify_send(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    notify_put(NULL, 0, format, arguments);
    va_end(arguments);
}

static void notify_send_fds(const int *fds, unsigned count, const char *format, ...) {
    va_list arguments;
    ASSERT(count <= NOTIFY_FDS);
    va_start(arguments, format);
    notify_put(fds, count, format, arguments);
    va_end(arguments);
}

bool notify_is_heard(void) {
    struct sockaddr_un address;
    return notify_address(&address) > 0;
}

/* WATCHDOG_PID, where it is set, says which process is meant. */
unsigned notify_watchdog(void) {
    const char *interval = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (interval == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    unsigned long milliseconds = strtoul(interval, NULL, 10) / 2000;
    if (milliseconds == 0 || milliseconds > 24ul * 60 * 60 * 1000)
        return 0;
    return milliseconds < INTERVAL_LEAST ? INTERVAL_LEAST : (unsigned)milliseconds;
}

enum { STORE_NAME = ADDRESS_TEXT + 16 };

/* A name in the store has no colon. */
static void store_name_of(const struct address *address, char name[STORE_NAME]) {
    char text[ADDRESS_TEXT];
    address_format(address, text);
    snprintf(name, STORE_NAME, "listen-%s", text);
    for (char *at = name; *at != '\0'; at++)
        if (*at == ':')
            *at = '_';
}

static bool name_of_socket(int fd, char name[STORE_NAME]) {
    struct address address = {.length = sizeof address.local};
    if (getsockname(fd, &address.any, &address.length) != 0 || address.any.sa_family == AF_UNIX)
        return false;
    store_name_of(&address, name);
    return true;
}

void socket_store_add(struct socket_store *store, const int *fds, unsigned count) {
    if (!notify_is_heard())
        return;
    store->fds = xrealloc(store->fds, (store->count + count) * sizeof *fds);
    for (unsigned i = 0; i < count; i++) {
        int copy = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
        if (copy >= 0)
            store->fds[store->count++] = copy;
    }
}

/* Takes the sockets of one name out of the store, NOTIFY_FDS at most. */
static unsigned take_same(struct socket_store *store, const char *name, int fds[NOTIFY_FDS]) {
    char other[STORE_NAME];
    unsigned taken = 0, left = 0;
    for (unsigned i = 0; i < store->count; i++) {
        int fd = store->fds[i];
        if (taken < NOTIFY_FDS && name_of_socket(fd, other) && strcmp(name, other) == 0)
            fds[taken++] = fd;
        else
            store->fds[left++] = fd;
    }
    store->count = left;
    return taken;
}

/* A message for each name, since the queue of the manager is short. */
void socket_store_send(struct socket_store *store) {
    char name[STORE_NAME];
    int fds[NOTIFY_FDS];
    while (store->count > 0) {
        unsigned count = 0;
        if (name_of_socket(store->fds[0], name))
            count = take_same(store, name, fds);
        if (count > 0)
            notify_send_fds(fds, count, "FDSTORE=1\nFDNAME=%s", name);
        else
            fds[count++] = store->fds[--store->count];
        for (unsigned i = 0; i < count; i++)
            close(fds[i]);
    }
    free(store->fds);
    *store = (struct socket_store){0};
}

void socket_store_remove(const struct address *address) {
    char name[STORE_NAME];
    if (address->any.sa_family == AF_UNIX)
        return;
    store_name_of(address, name);
    notify_send("FDSTOREREMOVE=1\nFDNAME=%s", name);
}
