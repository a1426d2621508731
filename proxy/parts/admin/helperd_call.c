#include "admin/helperd_call.h"

#include "base/assert.h"
#include "base/clocks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { PACKET = 65536 };

/* Calls of the socket from now on last until the deadline at most. False: it has passed. */
static bool helperd_call_await(int fd, uint64_t deadline) {
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    if (now >= deadline) {
        errno = ETIMEDOUT;
        return false;
    }
    uint64_t left = deadline - now;
    const struct timeval timeout = {(time_t)(left / 1000), (suseconds_t)(left % 1000) * 1000};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0;
}

/* False: it is too long. */
static bool helperd_call_address(const char *path, struct sockaddr_un *address) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    bool fits = strlen(path) < sizeof address->sun_path;
    if (fits)
        strcpy(address->sun_path, path);
    return fits;
}

static int helperd_call_connect(const char *path, uint64_t deadline,
                                char error[HELPERD_CALL_ERROR]) {
    struct sockaddr_un address;
    if (!helperd_call_address(path, &address)) {
        snprintf(error, HELPERD_CALL_ERROR, "%s: the path is too long for a socket", path);
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && helperd_call_await(fd, deadline) &&
        connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    snprintf(error, HELPERD_CALL_ERROR,
             "%s: %s: is retort-helperd running, and may you use its socket?", path,
             strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Reads an answer of several packets; a newline ends the last one. */
static char *helperd_call_read(int fd, uint64_t deadline, size_t most, size_t *length,
                               char error[HELPERD_CALL_ERROR]) {
    char *text = NULL;
    for (*length = 0; *length < most;) {
        text = xrealloc(text, *length + PACKET);
        ssize_t got =
            helperd_call_await(fd, deadline) ? recv(fd, text + *length, PACKET, 0) : (ssize_t)-1;
        if (got <= 0) {
            bool late = got < 0 && (errno == EAGAIN || errno == ETIMEDOUT);
            snprintf(error, HELPERD_CALL_ERROR, "retort-helperd does not answer: %s",
                     got == 0 ? "it closed the connection"
                     : late   ? "it took too long"
                              : strerror(errno));
            free(text);
            return NULL;
        }
        *length += (size_t)got;
        if (text[*length - 1] == '\n')
            return text;
    }
    snprintf(error, HELPERD_CALL_ERROR, "the answer of retort-helperd is too long");
    free(text);
    return NULL;
}

/* NULL: it is a refusal, or nothing that can be read. */
static json_t *helperd_call_judge(json_t *answer, char error[HELPERD_CALL_ERROR]) {
    if (json_is_true(json_object_get(answer, "ok")))
        return answer;
    const char *reason = json_string_value(json_object_get(answer, "error"));
    snprintf(error, HELPERD_CALL_ERROR, "%s",
             reason != NULL ? reason : "retort-helperd sent an answer that can't be read");
    json_decref(answer);
    return NULL;
}

json_t *helperd_call_within(const char *path, const json_t *command, uint64_t milliseconds,
                            size_t most, char error[HELPERD_CALL_ERROR]) {
    size_t length = 0;
    uint64_t deadline = clocks_milliseconds(CLOCK_MONOTONIC) + milliseconds;
    char *text = NULL, *line = json_dumps(command, JSON_COMPACT);
    int fd = line == NULL ? -1 : helperd_call_connect(path, deadline, error);
    if (line == NULL)
        snprintf(error, HELPERD_CALL_ERROR, "out of memory: try again later");
    else if (fd >= 0 && send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
        snprintf(error, HELPERD_CALL_ERROR, "retort-helperd does not take the command: %s",
                 strerror(errno));
    else if (fd >= 0)
        text = helperd_call_read(fd, deadline, most, &length, error);
    if (fd >= 0)
        close(fd);
    free(line);
    if (text == NULL)
        return NULL;
    json_t *answer = json_loadb(text, length, 0, NULL);
    free(text);
    return helperd_call_judge(answer, error);
}

json_t *helperd_call(const char *path, const json_t *command, char error[HELPERD_CALL_ERROR]) {
    return helperd_call_within(path, command, HELPERD_CALL_MILLISECONDS, HELPERD_CALL_MOST, error);
}

bool helperd_call_finds_one(const char *path) {
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool none = !helperd_call_address(path, &address);
    if (fd >= 0 && !none && connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        none = errno == ENOENT || errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return !none;
}
