#include "ctl/http_call.h"

#include "base/assert.h"
#include "http/head.h"
#include "net/address.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static bool call_fail(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool call_fail(char *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, HTTP_CALL_ERROR, format, arguments);
    va_end(arguments);
    return false;
}

/* What the operator should look at, by the reason why connecting failed. */
static const char *advice(int reason, bool local) {
    switch (reason) {
    case ENOENT: return ": is retort running, and is admin.listen set to this path?";
    case ECONNREFUSED:
        return local ? ": nobody serves this socket any more: is retort running?"
                     : ": is retort running, and is admin.listen set to this address?";
    case EACCES: return ": only root and the user that retort runs as may; try sudo";
    default: return "";
    }
}

static int connect_to(const char *where, char *error) {
    struct address address;
    const struct timeval patience = {.tv_sec = HTTP_CALL_SECONDS};
    if (!address_parse(&address, slice_from(where), 0)) {
        call_fail(error, "\"%s\" is neither an absolute path nor ADDRESS:PORT%s", where,
                  where[0] == '/' ? ": it is too long for a Unix socket" : "");
        return -1;
    }
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(fd, &address.any, address.length) == 0)
            return fd;
    }
    int reason = errno;
    call_fail(error, "can't connect to %s: %s%s", where, strerror(reason),
              advice(reason, address.any.sa_family == AF_UNIX));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* Everything until the other side closes; NULL with errno. */
static char *receive_all(int fd, size_t *length) {
    size_t capacity = 0;
    char *bytes = NULL;
    for (*length = 0; *length < HTTP_CALL_MAX_BYTES;) {
        if (capacity - *length < 2) {
            capacity += 64 << 10;
            bytes = xrealloc(bytes, capacity);
        }
        ssize_t got = recv(fd, bytes + *length, capacity - *length - 1, 0);
        if (got == 0) {
            bytes[*length] = '\0';
            return bytes;
        }
        if (got > 0)
            *length += (size_t)got;
        else if (errno != EINTR)
            break;
    }
    free(bytes);
    return NULL;
}

/* The body must be as long as the head says: a cut answer is no answer. */
static bool take_answer(struct http_answer *answer, const char *bytes, size_t length) {
    struct http_head head;
    uint64_t body;
    ssize_t used = http_head_parse_response(&head, bytes, length, 0);
    if (used <= 0 || !slice_to_uint64(http_head_value(&head, HTTP_CONTENT_LENGTH), &body) ||
        body != length - (size_t)used)
        return false;
    answer->status = head.status;
    answer->length = (size_t)body;
    answer->body = slice_dup(slice_make(bytes + used, answer->length));
    return true;
}

static bool take_status(struct http_answer *answer, const char *bytes, size_t length) {
    struct http_head head;
    if (http_head_parse_response(&head, bytes, length, 0) <= 0)
        return false;
    answer->status = head.status;
    return true;
}

/* The caller frees it. */
static char *write_head(const char *where, const struct http_request *request) {
    char *head;
    const char *host = request->host;
    if (host == NULL)
        host = where[0] == '/' ? "localhost" : where;
    /* A listener takes a GET with a length for a request with a body: nothing for the cache. */
    char length[48] = "";
    if (!request->any_framing)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", request->length);
    ASSERT(asprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n%s\r\n",
                    request->method, request->target, host,
                    request->headers == NULL ? "" : request->headers, length) > 0);
    return head;
}

static bool exchange(struct http_answer *answer, int fd, const char *where,
                     const struct http_request *request, char *error) {
    size_t length;
    char *head = write_head(where, request);
    bool sent = send_all(fd, head, strlen(head)) && send_all(fd, request->body, request->length);
    free(head);
    if (!sent)
        return call_fail(error, "%s: can't send: %s", where, strerror(errno));
    char *bytes = receive_all(fd, &length);
    if (bytes == NULL && errno == EAGAIN)
        return call_fail(error, "%s: no answer within %d s", where, HTTP_CALL_SECONDS);
    if (bytes == NULL)
        return call_fail(error, "%s: can't receive: %s", where, strerror(errno));
    bool good = request->any_framing ? take_status(answer, bytes, length)
                                     : take_answer(answer, bytes, length);
    free(bytes);
    return good || call_fail(error,
                             "%s: the answer is not HTTP, or cut off: is this retort's "
                             "admin.listen?",
                             where);
}

bool http_call(struct http_answer *answer, const char *where, const char *method, const char *path,
               char error[HTTP_CALL_ERROR]) {
    const struct http_request request = {.method = method, .target = path};
    return http_call_send(answer, where, &request, error);
}

bool http_call_send(struct http_answer *answer, const char *where,
                    const struct http_request *request, char error[HTTP_CALL_ERROR]) {
    *answer = (struct http_answer){0};
    int fd = connect_to(where, error);
    if (fd < 0)
        return false;
    bool good = exchange(answer, fd, where, request, error);
    close(fd);
    return good;
}

void http_answer_release(struct http_answer *answer) {
    free(answer->body);
    *answer = (struct http_answer){0};
}
