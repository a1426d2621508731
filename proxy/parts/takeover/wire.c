#include "takeover/wire.h"

#include "base/assert.h"
#include "base/findings.h"
#include "part.h"
#include "settings/load.h"
#include "settings/option_rows.h"
#include "settings/part_settings.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct option rows[] = {
    {ONE("", struct takeover_settings, socket), .name = "take_over_socket", STRING,
     BY_FILE_AT_START, .fallback_note = "the path of admin.listen with .take-over behind it",
     DOC "Sets the path of the Unix socket at which a new process asks to take over (retort "
         "--take-over, or SIGUSR2). Only processes of the same user are listened to. Where "
         "admin.listen is no path and this option is missing, nobody can take over. A reload does "
         "not change this setting.",
     .example = "\"/run/retort/take-over.sock\""},
    {.name = NULL},
};

static bool takeover_load(struct load *load, void *mine) {
    return load_values(load, document_section(load->document, "", NULL), "", mine);
}

static void takeover_compare(const void *first, const void *new, struct findings *left) {
    const char *before = ((const struct takeover_settings *)first)->socket;
    const char *after = ((const struct takeover_settings *)new)->socket;
    if (before != after && (before == NULL || after == NULL || strcmp(before, after) != 0))
        findings_add(left,
                     "take_over_socket is still as it was at the start: restart retort to apply "
                     "the change");
}

const struct part_settings takeover_part_settings = {
    .options = rows,
    .size = sizeof(struct takeover_settings),
    .load = takeover_load,
    .compare = takeover_compare,
};

bool takeover_address(const struct settings *settings, struct address *address) {
    const struct takeover_settings *mine = settings->parts[PART_TAKEOVER];
    const char *path = mine->socket, *other = part_socket_path(settings);
    char text[sizeof address->local.sun_path];
    if (path == NULL && other != NULL) {
        int length = snprintf(text, sizeof text, "%s.take-over", other);
        path = length > 0 && (size_t)length < sizeof text ? text : NULL;
    }
    return path != NULL && path[0] == '/' && address_parse(address, slice_from(path), 0);
}

bool takeover_is_same_user(int fd, int *pid) {
    struct ucred other;
    socklen_t length = sizeof other;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &length) != 0)
        return false;
    *pid = (int)other.pid;
    return other.uid == geteuid();
}

bool takeover_send(int fd, const char *text) {
    return takeover_send_fds(fd, text, NULL, 0);
}

bool takeover_send_fds(int fd, const char *text, const int *fds, unsigned count) {
    union {
        char bytes[CMSG_SPACE(TAKEOVER_FDS * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec piece = {(void *)text, strlen(text)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    ASSERT(count <= TAKEOVER_FDS);
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent >= 0;
}

static void take_fds(struct takeover_message *message, struct msghdr *received) {
    for (struct cmsghdr *header = CMSG_FIRSTHDR(received); header != NULL;
         header = CMSG_NXTHDR(received, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        message->fd_count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(message->fds, CMSG_DATA(header), message->fd_count * sizeof(int));
    }
}

bool takeover_receive(int fd, struct takeover_message *message, int patience) {
    union {
        char bytes[CMSG_SPACE(TAKEOVER_FDS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct pollfd event = {.fd = fd, .events = POLLIN};
    struct iovec piece = {message->bytes, TAKEOVER_MESSAGE};
    struct msghdr received = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    message->length = message->fd_count = 0;
    message->bytes[0] = '\0';
    int ready;
    do
        ready = poll(&event, 1, patience);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return false;
    ssize_t got = recvmsg(fd, &received, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == ECONNRESET;
    take_fds(message, &received);
    message->length = (size_t)got;
    message->bytes[got] = '\0';
    return (received.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
}

void takeover_shut(int fd) {
    shutdown(fd, SHUT_RDWR);
}

bool takeover_is(const struct takeover_message *message, const char *text) {
    return message->length > 0 && strcmp(message->bytes, text) == 0;
}
