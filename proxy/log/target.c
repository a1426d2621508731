#include "log/target.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"
#include "base/slice.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* MESSAGE_MOST: bytes of a datagram; what is longer is cut. PAUSE: milliseconds before a place that
 * is away is tried again, and of one wait for room. COMPLAINT: seconds. */
enum { MESSAGE_MOST = 16384, PAUSE = 500, COMPLAINT = 60, ARGUMENTS = 32 };

struct target_chunk {
    struct target_chunk *next;
    size_t length;
    char bytes[];
};

struct log_target {
    unsigned magic;
#define LOG_TARGET_MAGIC 0x109fa43eu
    struct log_demand demand;
    struct list_link link;
    unsigned users;
    pthread_mutex_t lock; /* for what follows, up to `told` */
    pthread_cond_t changed;
    struct target_chunk *first, **last;
    size_t waiting; /* bytes */
    bool closing;
    struct timespec give_up; /* once closing: when what is left is lost */
    time_t told;             /* when the log last said that the queue is full */
    _Atomic uint64_t lost;   /* lines */
    /* The thread's. */
    int fd;              /* -1: the place is away */
    unsigned connection; /* counts them */
    pid_t program;
    bool failing;   /* the log has said so */
    time_t warned;  /* when it last said so; 0: never */
    char host[256]; /* of this machine */
};

/* All targets of the process. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct list_link list; /* those that are open */
    bool ready;
    unsigned live; /* threads */
} the_targets = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static size_t count_lines(const char *bytes, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += bytes[i] == '\n';
    return count;
}

/* Telling, and counting. */

static void target_lose(struct log_target *target, size_t lines) {
    atomic_fetch_add(&target->lost, lines);
}

static void target_fails(struct log_target *target, const char *reason) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (target->failing || (target->warned != 0 && now.tv_sec < target->warned + COMPLAINT))
        return;
    target->failing = true;
    target->warned = now.tv_sec;
    log_warn("cannot write the %s to %s%s%s: %s; lines wait, and are lost when %zu bytes "
             "wait (retort_access_log_lines_lost_total counts them): check that it runs",
             target->demand.kind, target->demand.place.host,
             target->demand.place.port[0] != '\0' ? " port " : "", target->demand.place.port,
             reason, target->demand.queue);
}

static void target_works(struct log_target *target) {
    if (!target->failing)
        return;
    log_info("writing the %s to %s works again", target->demand.kind, target->demand.place.host);
    target->failing = false;
}

/* Waiting. */

static bool is_past(const struct timespec *time) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec > time->tv_sec ||
           (now.tv_sec == time->tv_sec && now.tv_nsec >= time->tv_nsec);
}

/* Is it closing, and has it had its time? */
static bool target_gives_up(struct log_target *target) {
    pthread_mutex_lock(&target->lock);
    bool over = target->closing && is_past(&target->give_up);
    pthread_mutex_unlock(&target->lock);
    return over;
}

static void target_pause(void) {
    const struct timespec pause = {.tv_nsec = PAUSE * 1000000L};
    nanosleep(&pause, NULL);
}

/* Opening a place. */

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

/* Connects within a second. */
static bool connect_soon(int fd, const struct addrinfo *to) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
        return true;
    if (errno != EINPROGRESS)
        return false;
    if (poll(&ready, 1, 2 * PAUSE) != 1) {
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

/* Runs the program; returns our end of its standard input. */
static int open_program(struct log_target *target) {
    char words[LOG_PLACE_TEXT], *argv[ARGUMENTS + 1] = {NULL}, *rest = NULL;
    unsigned count = 0;
    int ends[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    snprintf(words, sizeof words, "%s", target->demand.place.host);
    for (char *word = strtok_r(words, " ", &rest); word != NULL && count < ARGUMENTS;
         word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    if (count == 0 || pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1); /* of libraries */
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int error = posix_spawn(&target->program, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    if (error == 0) {
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        return ends[1];
    }
    target->program = 0;
    close(ends[1]);
    errno = error;
    return -1;
}

static int target_connect(struct log_target *target) {
    const struct log_place *place = &target->demand.place;
    switch (place->kind) {
    case LOG_PLACE_SYSLOG_UNIX:
    case LOG_PLACE_JOURNALD: return open_local(place->host);
    case LOG_PLACE_SYSLOG_UDP: return open_remote(place, SOCK_DGRAM);
    case LOG_PLACE_SYSLOG_TCP:
    case LOG_PLACE_TCP: return open_remote(place, SOCK_STREAM);
    case LOG_PLACE_PIPE: return open_pipe(place->host);
    case LOG_PLACE_PROGRAM: return open_program(target);
    case LOG_PLACE_FILE: break;
    }
    ASSERT(false);
    return -1;
}

/* The end of its input ends a program; one that stays is told to. */
static void target_disconnect(struct log_target *target) {
    if (target->fd >= 0)
        close(target->fd);
    target->fd = -1;
    target->connection++;
    for (unsigned tries = 0; target->program > 0; tries++) {
        if (waitpid(target->program, NULL, WNOHANG) != 0)
            target->program = 0;
        else if (tries == 2)
            kill(target->program, SIGTERM);
        else if (tries == 4)
            kill(target->program, SIGKILL);
        if (target->program > 0)
            target_pause();
    }
}

/* Sending. */

static const char *target_reason(void) {
    return errno == ENXIO ? "nobody reads it" : errno == ESPIPE ? "it is no FIFO" : strerror(errno);
}

/* Has the place room? A server that has closed the connection would still take some bytes, which
 * nobody would see. */
static bool target_has_room(struct log_target *target) {
    struct pollfd ready = {.fd = target->fd, .events = POLLOUT | POLLRDHUP};
    if (poll(&ready, 1, PAUSE) <= 0)
        return false;
    if ((ready.revents & (POLLRDHUP | POLLHUP | POLLERR)) == 0)
        return true;
    target_fails(target, "the other side has closed it");
    target_disconnect(target);
    target_pause();
    return false;
}

/* Waits until the place is there and takes bytes. False: it is time to give up. */
static bool target_await(struct log_target *target) {
    while (!target_gives_up(target)) {
        if (target->fd >= 0 && target_has_room(target))
            return true;
        if (target->fd >= 0)
            continue;
        target->fd = target_connect(target);
        if (target->fd >= 0)
            continue;
        target_fails(target, target_reason());
        target_pause();
    }
    return false;
}

/* Where the line begins that the byte belongs to. */
static size_t line_start(const char *bytes, size_t at) {
    while (at > 0 && bytes[at - 1] != '\n')
        at--;
    return at;
}

/* Sends all of it to a stream. After a break the line, or the message if `whole`, that was under
 * way begins anew. Returns what could not be sent. */
static size_t target_stream(struct log_target *target, const char *bytes, size_t length,
                            bool whole) {
    size_t at = 0;
    while (at < length) {
        unsigned connection = target->connection;
        if (!target_await(target))
            break;
        if (connection != target->connection)
            at = whole ? 0 : line_start(bytes, at);
        ssize_t put = write(target->fd, bytes + at, length - at);
        if (put > 0) {
            at += (size_t)put;
            target_works(target);
        } else if (errno != EAGAIN && errno != EINTR) {
            target_fails(target, strerror(errno));
            target_disconnect(target);
        }
    }
    return length - at;
}

/* One message; a place that is away loses it. */
static bool target_datagram(struct log_target *target, const char *bytes, size_t length) {
    if (target_gives_up(target))
        return false;
    while (target->fd >= 0 || (target->fd = target_connect(target)) >= 0) {
        struct pollfd ready = {.fd = target->fd, .events = POLLOUT};
        ssize_t put = send(target->fd, bytes, length, MSG_NOSIGNAL);
        if (put >= 0) {
            target_works(target);
            return true;
        }
        if (errno != EAGAIN && errno != ENOBUFS)
            break;
        if (target_gives_up(target))
            return false;
        poll(&ready, 1, PAUSE);
    }
    target_fails(target, target_reason());
    target_disconnect(target);
    return false;
}

/* RFC 5424 §6; the time is that of the sending. */
static size_t target_frame_syslog(const struct log_target *target, char *out, struct slice line) {
    struct timespec now;
    struct tm calendar;
    char date[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &calendar);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &calendar);
    int length =
        snprintf(out, MESSAGE_MOST, "<%u>1 %s.%03ldZ %s retort %d %s - %.*s",
                 target->demand.facility * 8 + target->demand.severity, date, now.tv_nsec / 1000000,
                 target->host, (int)getpid(), target->demand.kind, SLICE_PRINT(line));
    return length < MESSAGE_MOST ? (size_t)length : MESSAGE_MOST - 1;
}

/* journald's own protocol: a line a field. */
static size_t target_frame_journald(const struct log_target *target, char *out, struct slice line) {
    int length = snprintf(out, MESSAGE_MOST,
                          "SYSLOG_IDENTIFIER=retort\nPRIORITY=%u\nSYSLOG_FACILITY=%u\n"
                          "RETORT_LOG=%s\nMESSAGE=%.*s",
                          target->demand.severity, target->demand.facility, target->demand.kind,
                          SLICE_PRINT(line));
    size_t used = length < MESSAGE_MOST - 1 ? (size_t)length : MESSAGE_MOST - 2;
    out[used] = '\n';
    return used + 1;
}

/* RFC 6587 §3.4.1: the length, and the message. */
static bool target_send_counted(struct log_target *target, const char *message, size_t length) {
    char counted[MESSAGE_MOST + 16];
    int before = snprintf(counted, sizeof counted, "%zu ", length);
    memcpy(counted + before, message, length);
    return target_stream(target, counted, (size_t)before + length, true) == 0;
}

static bool target_send_line(struct log_target *target, struct slice line) {
    char message[MESSAGE_MOST];
    if (target->demand.place.kind == LOG_PLACE_JOURNALD)
        return target_datagram(target, message, target_frame_journald(target, message, line));
    size_t length = target_frame_syslog(target, message, line);
    return target->demand.place.kind == LOG_PLACE_SYSLOG_TCP
               ? target_send_counted(target, message, length)
               : target_datagram(target, message, length);
}

static void target_send(struct log_target *target, const char *bytes, size_t length) {
    struct slice rest = slice_make(bytes, length), line;
    switch (target->demand.place.kind) {
    case LOG_PLACE_TCP:
    case LOG_PLACE_PIPE:
    case LOG_PLACE_PROGRAM: {
        size_t left = target_stream(target, bytes, length, false);
        target_lose(target, count_lines(bytes + length - left, left));
        return;
    }
    default:
        while (slice_next_line(&rest, &line))
            if (!target_send_line(target, line))
                target_lose(target, 1);
    }
}

/* The thread. */

/* The next chunk; NULL: it is closing, and nothing is left. */
static struct target_chunk *target_take(struct log_target *target) {
    pthread_mutex_lock(&target->lock);
    while (target->first == NULL && !target->closing)
        pthread_cond_wait(&target->changed, &target->lock);
    struct target_chunk *chunk = target->first;
    if (chunk != NULL)
        target->first = chunk->next;
    if (target->first == NULL)
        target->last = &target->first;
    pthread_mutex_unlock(&target->lock);
    return chunk;
}

/* A chunk that is being sent still takes room. */
static void target_sent(struct log_target *target, struct target_chunk *chunk) {
    pthread_mutex_lock(&target->lock);
    target->waiting -= chunk->length;
    pthread_mutex_unlock(&target->lock);
    free(chunk);
}

static void target_release(struct log_target *target) {
    target_disconnect(target);
    pthread_cond_destroy(&target->changed);
    pthread_mutex_destroy(&target->lock);
    FREE_OBJ(target);
    pthread_mutex_lock(&the_targets.lock);
    the_targets.live--;
    pthread_cond_broadcast(&the_targets.ended);
    pthread_mutex_unlock(&the_targets.lock);
}

static void *target_main(void *arg) {
    struct log_target *target;
    struct target_chunk *chunk;
    CAST_OBJ(target, arg, LOG_TARGET_MAGIC);
    while ((chunk = target_take(target)) != NULL) {
        target_send(target, chunk->bytes, chunk->length);
        target_sent(target, chunk);
    }
    target_release(target);
    return NULL;
}

static bool target_start(struct log_target *target) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, target_main, target) != 0)
        return false;
    pthread_detach(thread);
    return true;
}

static struct log_target *target_new(const struct log_demand *demand) {
    struct log_target *target;
    ALLOC_OBJ(target, LOG_TARGET_MAGIC);
    target->demand = *demand;
    target->last = &target->first;
    target->fd = -1;
    pthread_mutex_init(&target->lock, NULL);
    pthread_cond_init(&target->changed, NULL);
    list_init(&target->link);
    if (gethostname(target->host, sizeof target->host - 1) != 0 || target->host[0] == '\0')
        snprintf(target->host, sizeof target->host, "-");
    return target;
}

static bool same_demand(const struct log_demand *a, const struct log_demand *b) {
    return a->place.kind == b->place.kind && strcmp(a->place.host, b->place.host) == 0 &&
           strcmp(a->place.port, b->place.port) == 0 && a->queue == b->queue &&
           a->facility == b->facility && a->severity == b->severity &&
           strcmp(a->kind, b->kind) == 0;
}

static struct log_target *find_target(const struct log_demand *demand) {
    if (!the_targets.ready)
        list_init(&the_targets.list);
    the_targets.ready = true;
    LIST_FOR_EACH (link, &the_targets.list) {
        struct log_target *target = CONTAINER_OF(link, struct log_target, link);
        if (same_demand(&target->demand, demand))
            return target;
    }
    return NULL;
}

struct log_target *log_target_open(const struct log_demand *demand) {
    pthread_mutex_lock(&the_targets.lock);
    struct log_target *target = find_target(demand);
    if (target == NULL) {
        target = target_new(demand);
        if (target_start(target)) {
            list_append(&the_targets.list, &target->link);
            the_targets.live++;
        } else {
            log_error("cannot start a thread for the %s %s: its lines are lost until a reload",
                      demand->kind, demand->place.host);
            FREE_OBJ(target);
            target = NULL;
        }
    }
    if (target != NULL)
        target->users++;
    pthread_mutex_unlock(&the_targets.lock);
    return target;
}

/* Under the lock. */
static bool is_to_be_told(struct log_target *target) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (target->told != 0 && now.tv_sec < target->told + COMPLAINT)
        return false;
    target->told = now.tv_sec;
    return true;
}

bool log_target_post(struct log_target *target, const char *bytes, size_t length) {
    CHECK_OBJ(target, LOG_TARGET_MAGIC);
    struct target_chunk *chunk = malloc(sizeof *chunk + length);
    if (chunk == NULL)
        return false;
    *chunk = (struct target_chunk){.length = length};
    memcpy(chunk->bytes, bytes, length);
    pthread_mutex_lock(&target->lock);
    bool fits = length <= target->demand.queue - target->waiting;
    bool tell = !fits && is_to_be_told(target);
    if (fits) {
        target->waiting += length;
        *target->last = chunk;
        target->last = &chunk->next;
        pthread_cond_signal(&target->changed);
    }
    pthread_mutex_unlock(&target->lock);
    if (!fits)
        free(chunk);
    if (tell)
        log_warn("%s takes the lines of the %s too slowly: %zu bytes wait, and further lines are "
                 "lost (retort_access_log_lines_lost_total counts them)",
                 target->demand.place.host, target->demand.kind, target->demand.queue);
    return fits;
}

uint64_t log_target_take_lost(struct log_target *target) {
    CHECK_OBJ(target, LOG_TARGET_MAGIC);
    return atomic_exchange(&target->lost, 0);
}

void log_target_close(struct log_target **targetp) {
    struct log_target *target = *targetp;
    *targetp = NULL;
    if (target == NULL)
        return;
    CHECK_OBJ(target, LOG_TARGET_MAGIC);
    pthread_mutex_lock(&the_targets.lock);
    bool last = --target->users == 0;
    if (last)
        list_remove(&target->link);
    pthread_mutex_unlock(&the_targets.lock);
    if (!last)
        return;
    pthread_mutex_lock(&target->lock);
    clock_gettime(CLOCK_REALTIME, &target->give_up);
    target->give_up.tv_sec += LOG_TARGET_PATIENCE;
    target->closing = true;
    pthread_cond_signal(&target->changed);
    pthread_mutex_unlock(&target->lock);
}

void log_targets_finish(void) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 3 * LOG_TARGET_PATIENCE;
    pthread_mutex_lock(&the_targets.lock);
    while (the_targets.live > 0 &&
           pthread_cond_timedwait(&the_targets.ended, &the_targets.lock, &end) == 0) {
    }
    pthread_mutex_unlock(&the_targets.lock);
}
