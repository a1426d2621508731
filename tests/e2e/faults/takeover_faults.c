/*
 * Kills a process at a moment of a takeover (proxy/takeover/wire.h), for the end-to-end tests: a
 * library that is loaded into the proxy before all others.
 *
 *     LD_PRELOAD=takeover_faults.so RETORT_DIES_AT="after serving" retort ...
 *     LD_PRELOAD=takeover_faults.so RETORT_ORPHANED_AT="before connect" retort ...
 *
 * "before WORD" or "after WORD": kill -9 before or after the message that begins with WORD is sent,
 * or, for the words accept and connect, that call. The second form kills the process that has
 * started this one to be taken over by it, and waits for its end.
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

static bool is_meant(const char *variable, const char *when, const char *word, size_t length) {
    const char *at = getenv(variable);
    size_t first = strlen(when);
    return at != NULL && strncmp(at, when, first) == 0 && strlen(at + first) == length &&
           memcmp(at + first, word, length) == 0;
}

static void kill_starter(void) {
    const char *starter = getenv("RETORT_STARTED_BY");
    pid_t parent = getppid();
    if (starter == NULL || atoi(starter) != parent)
        return;
    kill(parent, SIGKILL);
    while (getppid() == parent)
        usleep(1000);
}

static void pass(const char *when, const char *word, size_t length) {
    if (is_meant("RETORT_DIES_AT", when, word, length))
        kill(getpid(), SIGKILL);
    if (is_meant("RETORT_ORPHANED_AT", when, word, length))
        kill_starter();
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (!is_takeover(fd) || message->msg_iovlen == 0)
        return syscall(SYS_sendmsg, fd, message, flags);
    const char *word = message->msg_iov->iov_base;
    const char *end = memchr(word, ' ', message->msg_iov->iov_len);
    size_t length = end == NULL ? message->msg_iov->iov_len : (size_t)(end - word);
    pass("before ", word, length);
    ssize_t sent = syscall(SYS_sendmsg, fd, message, flags);
    pass("after ", word, length);
    return sent;
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
    bool ours = is_takeover(fd);
    if (ours)
        pass("before ", "connect", strlen("connect"));
    int result = (int)syscall(SYS_connect, fd, address, length);
    if (ours)
        pass("after ", "connect", strlen("connect"));
    return result;
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    bool ours = is_takeover(fd);
    if (ours)
        pass("before ", "accept", strlen("accept"));
    int result = (int)syscall(SYS_accept4, fd, address, length, flags);
    if (ours)
        pass("after ", "accept", strlen("accept"));
    return result;
}
