#include "log/channel.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "tls/client.h"
#include "tls/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void log_frame_init(struct log_frame *frame) {
    if (gethostname(frame->host, sizeof frame->host - 1) != 0 || frame->host[0] == '\0')
        snprintf(frame->host, sizeof frame->host, "-");
}

size_t log_frame_syslog(const struct log_frame *frame, char out[LOG_FRAME_MOST],
                        struct slice line) {
    struct timespec now;
    struct tm calendar;
    char date[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &calendar);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &calendar);
    int length = snprintf(out, LOG_FRAME_MOST, "<%u>1 %s.%03ldZ %s retort %d %s - %.*s",
                          frame->facility * 8 + frame->severity, date, now.tv_nsec / 1000000,
                          frame->host, (int)getpid(), frame->kind, SLICE_PRINT(line));
    return length < LOG_FRAME_MOST ? (size_t)length : LOG_FRAME_MOST - 1;
}

size_t log_frame_counted(const struct log_frame *frame, char out[LOG_FRAME_COUNTED],
                         struct slice line) {
    char message[LOG_FRAME_MOST];
    size_t length = log_frame_syslog(frame, message, line);
    int before = snprintf(out, LOG_FRAME_COUNTED - LOG_FRAME_MOST, "%zu ", length);
    memcpy(out + before, message, length);
    return (size_t)before + length;
}

size_t log_frame_journald(const struct log_frame *frame, char out[LOG_FRAME_MOST],
                          struct slice line) {
    int length = snprintf(out, LOG_FRAME_MOST,
                          "SYSLOG_IDENTIFIER=retort\nPRIORITY=%u\nSYSLOG_FACILITY=%u\n"
                          "RETORT_LOG=%s\nMESSAGE=%.*s",
                          frame->severity, frame->facility, frame->kind, SLICE_PRINT(line));
    size_t used = length < LOG_FRAME_MOST - 1 ? (size_t)length : LOG_FRAME_MOST - 2;
    out[used] = '\n';
    return used + 1;
}

/* Milliseconds: CONNECT for each address, HANDSHAKE of TLS, VERDICT of the server behind it, FAREWELL
 * until the server has closed. */
enum { CONNECT = 1000, HANDSHAKE = 2000, VERDICT = 300, FAREWELL = 500, ARGUMENTS = 32 };

/* READS: of what a server sends, at a time; one that sends without end stops nobody. */
enum { READS = 16 };

void log_channel_pause(void) {
    const struct timespec pause = {.tv_nsec = LOG_CHANNEL_PAUSE * 1000000L};
    nanosleep(&pause, NULL);
}

/* Opening. */

/* Where a FIFO stands there, nobody waits for whoever reads it. */
static int open_log_file(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0640);
}

static int open_local(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    memcpy(address.sun_path, path, length < sizeof address.sun_path ? length : 0);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

static bool connect_soon(int fd, const struct addrinfo *to) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
        return true;
    if (errno != EINPROGRESS)
        return false;
    if (poll(&ready, 1, CONNECT) != 1) {
        errno = ETIMEDOUT;
        return false;
    }
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error == 0;
}

static int open_remote(const struct log_place *place, int type) {
    const struct addrinfo hints = {.ai_socktype = type, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int fd = -1, reason = EHOSTUNREACH;
    if (getaddrinfo(place->host, place->port, &hints, &found) != 0)
        found = NULL;
    for (const struct addrinfo *to = found; to != NULL && fd < 0; to = to->ai_next) {
        fd = socket(to->ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !connect_soon(fd, to)) {
            reason = errno;
            close(fd);
            fd = -1;
        }
    }
    if (found != NULL)
        freeaddrinfo(found);
    errno = reason;
    return fd;
}

/* Anything but a FIFO would be overwritten. */
static int open_pipe(const char *path) {
    struct stat status;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)))
        return fd;
    close(fd);
    errno = ESPIPE;
    return -1;
}

/* Starts the program with `input` as its standard input. Returns errno. */
static int spawn(struct log_channel *channel, char *const *argv, int input) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1); /* of libraries */
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(&channel->program, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Runs the program; returns our end of its standard input. */
static int open_program(struct log_channel *channel) {
    char words[LOG_PLACE_TEXT], *argv[ARGUMENTS + 1] = {NULL}, *rest = NULL;
    unsigned count = 0;
    int ends[2];
    snprintf(words, sizeof words, "%s", channel->place.host);
    for (char *word = strtok_r(words, " ", &rest); word != NULL && count < ARGUMENTS;
         word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    if (count == 0 || pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    int error = spawn(channel, argv, ends[0]);
    close(ends[0]);
    if (error == 0) {
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        return ends[1];
    }
    channel->program = 0;
    close(ends[1]);
    errno = error;
    return -1;
}

static int open_place(struct log_channel *channel) {
    const struct log_place *place = &channel->place;
    switch (place->kind) {
    case LOG_PLACE_FILE: return open_log_file(channel->path);
    case LOG_PLACE_SYSLOG_UNIX:
    case LOG_PLACE_JOURNALD: return open_local(place->host);
    case LOG_PLACE_SYSLOG_UDP: return open_remote(place, SOCK_DGRAM);
    case LOG_PLACE_SYSLOG_TCP:
    case LOG_PLACE_SYSLOG_TLS:
    case LOG_PLACE_TLS:
    case LOG_PLACE_TCP: return open_remote(place, SOCK_STREAM);
    case LOG_PLACE_PIPE: return open_pipe(place->host);
    case LOG_PLACE_PROGRAM: return open_program(channel);
    }
    ASSERT(false);
    return -1;
}

/* TLS. */

/* Waits for what TLS waits for. False: not in time. */
static bool await_tls(const struct log_channel *channel, uint64_t end) {
    uint64_t now = clocks_milliseconds(CLOCK_MONOTONIC);
    struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
    if (now >= end || poll(&ready, 1, (int)(end - now)) <= 0)
        return false;
    tls_stream_note_event(channel->stream, (ready.revents & (POLLHUP | POLLRDHUP)) != 0);
    return true;
}

static bool read_tls(struct log_channel *channel);

/* With TLS 1.3 a server that refuses our certificate says so only when we think that all is done
 * (RFC 8446 §4.4.2.4). Lines that were sent by then would be lost. */
static bool is_accepted(struct log_channel *channel) {
    struct pollfd ready = {.fd = channel->fd, .events = POLLIN};
    if (poll(&ready, 1, VERDICT) <= 0 || read_tls(channel))
        return true;
    const char *error = tls_client_error(channel->client);
    channel->reason = error[0] != '\0' ? error : "the server has ended the TLS connection at once";
    return false;
}

static bool channel_shake_hands(struct log_channel *channel) {
    uint64_t end = clocks_milliseconds(CLOCK_MONOTONIC) + HANDSHAKE;
    enum io_status status;
    struct tls_stream *below = NULL;
    channel->stream = tls_stream_connect(channel->client, channel->fd, &below);
    if (channel->stream == NULL) {
        channel->reason = tls_client_error(channel->client);
        return false;
    }
    while ((status = tls_stream_handshake(channel->stream)) == IO_WAIT && await_tls(channel, end)) {
    }
    channel->reason = status == IO_DONE   ? NULL
                      : status == IO_WAIT ? "the TLS handshake took more than two seconds"
                                          : tls_client_error(channel->client);
    return status == IO_DONE && is_accepted(channel);
}

/* What the server sends, such as tickets, is read: else a close would be a reset, and lines that are
 * on their way would be lost. False: the server has ended the connection. */
static bool read_tls(struct log_channel *channel) {
    char bytes[4096];
    size_t got;
    enum io_status status = IO_DONE;
    tls_stream_note_event(channel->stream, false);
    for (unsigned n = 0; n < READS && status == IO_DONE; n++)
        status = tls_stream_read(channel->stream, bytes, sizeof bytes, &got);
    return status == IO_WAIT || status == IO_DONE;
}

static ssize_t write_tls(struct log_channel *channel, const char *bytes, size_t length) {
    const struct iovec piece = {.iov_base = (void *)bytes, .iov_len = length};
    size_t put = 0;
    enum io_status status = tls_stream_write(channel->stream, &piece, 1, false, &put);
    if (put > 0)
        return (ssize_t)put;
    if (status == IO_WAIT || status == IO_DONE) {
        errno = EAGAIN;
        return -1;
    }
    channel->reason = tls_client_error(channel->client);
    errno = EPROTO;
    return -1;
}

/* RFC 5425 §4.4: a close_notify, and then the end. */
static void end_tls(struct log_channel *channel) {
    uint64_t end = clocks_milliseconds(CLOCK_MONOTONIC) + FAREWELL;
    tls_stream_finish(channel->stream);
    shutdown(channel->fd, SHUT_WR);
    while (read_tls(channel) && await_tls(channel, end)) {
    }
    tls_stream_free(&channel->stream);
}

/* All kinds. */

bool log_channel_open(struct log_channel *channel) {
    channel->reason = NULL;
    channel->fd = open_place(channel);
    if (channel->fd < 0)
        return false;
    if (channel->client == NULL || channel_shake_hands(channel))
        return true;
    tls_stream_free(&channel->stream);
    close(channel->fd);
    channel->fd = -1;
    return false;
}

bool log_channel_is_moved(const struct log_channel *channel) {
    struct stat now, then;
    return channel->fd >= 0 && (stat(channel->path, &now) != 0 || fstat(channel->fd, &then) != 0 ||
                                now.st_dev != then.st_dev || now.st_ino != then.st_ino);
}

/* The channel's own descriptor can't be read, and need not be readable: a log may be written by whom it
 * does not let read. */
bool log_channel_ends_torn(const struct log_channel *channel, off_t *length) {
    struct stat status;
    char last = '\n';
    if (fstat(channel->fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return false;
    int fd = open(channel->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool read = pread(fd, &last, 1, status.st_size - 1) == 1;
    close(fd);
    *length = status.st_size;
    return read && last != '\n';
}

/* A server that has closed the connection would still take some bytes, which nobody would see. */
enum log_channel_status log_channel_wait(struct log_channel *channel, int milliseconds) {
    bool crossed = channel->stream != NULL && tls_stream_is_crossed(channel->stream);
    struct pollfd ready = {.fd = channel->fd,
                           .events = (short)((crossed ? 0 : POLLOUT) | POLLRDHUP |
                                             (channel->stream != NULL ? POLLIN : 0))};
    if (poll(&ready, 1, milliseconds) <= 0)
        return LOG_CHANNEL_BUSY;
    channel->reason = "the other side has closed it";
    if ((ready.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
        return LOG_CHANNEL_GONE;
    if ((ready.revents & POLLIN) != 0 && !read_tls(channel))
        return LOG_CHANNEL_GONE;
    channel->reason = NULL;
    return LOG_CHANNEL_READY;
}

ssize_t log_channel_write(struct log_channel *channel, const char *bytes, size_t length) {
    channel->reason = NULL;
    if (channel->stream != NULL)
        return write_tls(channel, bytes, length);
    return write(channel->fd, bytes, length);
}

const char *log_channel_reason(const struct log_channel *channel) {
    if (channel->reason != NULL)
        return channel->reason;
    return errno == ENXIO ? "nobody reads it" : errno == ESPIPE ? "it is no FIFO" : strerror(errno);
}

/* The end of its input ends a program; one that stays is told to. */
static void end_program(struct log_channel *channel) {
    for (unsigned tries = 0; channel->program > 0; tries++) {
        if (waitpid(channel->program, NULL, WNOHANG) != 0)
            channel->program = 0;
        else if (tries == 2)
            kill(channel->program, SIGTERM);
        else if (tries == 4)
            kill(channel->program, SIGKILL);
        if (channel->program > 0)
            log_channel_pause();
    }
}

void log_channel_close(struct log_channel *channel) {
    if (channel->stream != NULL)
        end_tls(channel);
    if (channel->fd >= 0)
        close(channel->fd);
    channel->fd = -1;
    channel->opened++;
    end_program(channel);
}
