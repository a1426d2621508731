/*
 * Kills a process at a message of a takeover (proxy/takeover/wire.h), for the end-to-end tests: a
 * library that is loaded into the proxy before all others.
 *
 *     LD_PRELOAD=takeover_faults.so RETORT_DIES_AT="after serving" retort ...
 *
 * "before WORD" or "after WORD": kill -9 before or after the message that begins with WORD is sent.
 *
 * Threads: any.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_takeover(int fd) {
    int type = 0;
    socklen_t length = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET;
}

static bool is_meant(const struct msghdr *message, const char *when) {
    const char *at = getenv("RETORT_DIES_AT");
    size_t length = strlen(when);
    if (at == NULL || strncmp(at, when, length) != 0 || message->msg_iovlen == 0)
        return false;
    const struct iovec *piece = message->msg_iov;
    const char *word = at + length, *end = memchr(piece->iov_base, ' ', piece->iov_len);
    size_t said = end == NULL ? piece->iov_len : (size_t)(end - (const char *)piece->iov_base);
    return strlen(word) == said && memcmp(word, piece->iov_base, said) == 0;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    bool ours = is_takeover(fd);
    if (ours && is_meant(message, "before "))
        kill(getpid(), SIGKILL);
    ssize_t sent = syscall(SYS_sendmsg, fd, message, flags);
    if (ours && is_meant(message, "after "))
        kill(getpid(), SIGKILL);
    return sent;
}
