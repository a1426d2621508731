#include "service/helper_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BODY_SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

void helper_packet_init(struct helper_packet *packet, enum helper_kind kind, uint64_t id) {
    memset(&packet->message, 0, sizeof packet->message);
    packet->message.magic = HELPER_MAGIC;
    packet->message.version = HELPER_VERSION;
    packet->message.kind = (uint16_t)kind;
    packet->message.id = id;
    packet->body = -1;
    packet->origin = (struct helper_origin){0};
}

bool helper_packet_set_parameters(struct helper_packet *packet, struct slice bytes) {
    if (bytes.length > HELPER_INLINE_MAX)
        return false;
    if (bytes.length > 0)
        memcpy(packet->parameters, bytes.base, bytes.length);
    packet->message.inline_length = (uint32_t)bytes.length;
    return true;
}

bool helper_packet_set_pool(struct helper_packet *packet, struct slice name) {
    if (name.length >= sizeof packet->message.pool)
        return false;
    memset(packet->message.pool, 0, sizeof packet->message.pool);
    memcpy(packet->message.pool, name.base, name.length);
    return true;
}

void helper_packet_set_origin(struct helper_packet *packet, struct slice client, uint64_t cost) {
    size_t most = sizeof packet->origin.client - 1;
    packet->message.version = HELPER_VERSION_ORIGIN;
    packet->origin = (struct helper_origin){.cost = cost};
    if (client.length > 0)
        memcpy(packet->origin.client, client.base, client.length < most ? client.length : most);
}

/* The length of the origin behind the parameters; 0: the message has none. */
static size_t origin_length(const struct helper_message *message) {
    return message->version == HELPER_VERSION_ORIGIN ? sizeof(struct helper_origin) : 0;
}

enum helper_io helper_packet_send(int fd, const struct helper_packet *packet) {
    struct helper_message message = packet->message;
    message.has_body = packet->body >= 0;
    struct iovec parts[3] = {{&message, sizeof message},
                             {(void *)packet->parameters, message.inline_length},
                             {(void *)&packet->origin, origin_length(&message)}};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = 3};
    if (packet->body >= 0) {
        memset(&control, 0, sizeof control);
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(rights), &packet->body, sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return HELPER_IO_DONE;
    return errno == EAGAIN ? HELPER_IO_AGAIN : HELPER_IO_CLOSED;
}

/* Takes the first descriptor and closes the others, so that nobody can use up our descriptors. */
static int take_descriptor(struct msghdr *header) {
    int body = -1;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part != NULL;
         part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
            if (body < 0)
                body = fd;
            else
                close(fd);
        }
    }
    return body;
}

static bool version_valid(const struct helper_message *message) {
    return message->version == HELPER_VERSION ||
           (message->version == HELPER_VERSION_ORIGIN && message->kind == HELPER_JOB);
}

static bool message_valid(const struct helper_message *message, size_t received, int flags,
                          int body) {
    return (flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && received >= sizeof *message &&
           message->magic == HELPER_MAGIC && version_valid(message) &&
           (message->kind == HELPER_JOB || message->kind == HELPER_RESULT) &&
           message->status < HELPER_STATUS_COUNT && message->inline_length <= HELPER_INLINE_MAX &&
           message->inline_length + origin_length(message) == received - sizeof *message &&
           memchr(message->pool, 0, sizeof message->pool) != NULL &&
           (message->has_body != 0) == (body >= 0) &&
           (body < 0 || helper_body_usable(body, message->body_length));
}

/* Reads the origin behind the parameters. False: it is not valid. */
static bool take_origin(struct helper_packet *packet) {
    size_t length = origin_length(&packet->message);
    packet->origin = (struct helper_origin){0};
    memcpy(&packet->origin, packet->parameters + packet->message.inline_length, length);
    return memchr(packet->origin.client, 0, sizeof packet->origin.client) != NULL;
}

enum helper_io helper_packet_receive(int fd, struct helper_packet *packet) {
    struct iovec parts[2] = {{&packet->message, sizeof packet->message},
                             {packet->parameters, sizeof packet->parameters}};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct msghdr header = {.msg_iov = parts,
                            .msg_iovlen = 2,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    packet->body = -1;
    packet->received = 0;
    ssize_t received;
    do
        received = recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    if (received < 0)
        return errno == EAGAIN ? HELPER_IO_AGAIN : HELPER_IO_CLOSED;
    packet->received = (size_t)received;
    packet->body = take_descriptor(&header); /* may come with an empty packet, too */
    if (received == 0) {
        helper_packet_close_body(packet);
        return HELPER_IO_CLOSED;
    }
    if (message_valid(&packet->message, (size_t)received, header.msg_flags, packet->body) &&
        take_origin(packet))
        return HELPER_IO_DONE;
    helper_packet_close_body(packet);
    return HELPER_IO_BAD;
}

void helper_packet_close_body(struct helper_packet *packet) {
    if (packet->body >= 0)
        close(packet->body);
    packet->body = -1;
}

const char *helper_status_text(enum helper_status status) {
    switch (status) {
    case HELPER_DONE: return "done";
    case HELPER_UNCHANGED: return "unchanged";
    case HELPER_REFUSED: return "refused";
    case HELPER_FAILED: return "failed";
    case HELPER_TIMEOUT: return "timeout";
    case HELPER_UNUSABLE: return "unusable";
    default: return "unknown";
    }
}

int helper_body_create(const char *name) {
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool helper_body_seal(int fd) {
    return fcntl(fd, F_ADD_SEALS, BODY_SEALS) == 0;
}

bool helper_body_write(int fd, const void *data, size_t length) {
    const char *at = data;
    while (length > 0) {
        ssize_t written = write(fd, at, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        length -= (size_t)written;
    }
    return true;
}

bool helper_body_usable(int fd, uint64_t length) {
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat status;
    return seals >= 0 && (seals & BODY_SEALS) == BODY_SEALS && fstat(fd, &status) == 0 &&
           status.st_size >= 0 && (uint64_t)status.st_size == length;
}
