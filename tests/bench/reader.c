/*
 * Asks a server and looks at every byte of what it gets: the load where right answers count as much
 * as many. The files are 0123456789 over and over; a path's last part is how long its file is.
 *
 *     reader PORT CONNECTIONS SECONDS close|keep|RATE PATH...
 *
 * Each connection asks for one path after another, with `close` on a connection of its own each,
 * else as soon as it is answered, or at a RATE: so many requests a second in all, each at its time
 * whatever became of those before. After so many seconds it prints a line of JSON: what was
 * answered wholly and rightly ("requests", "p50_ms", "p99_ms", "p999_ms" from connecting or asking,
 * or from when it should have been asked, to the last byte), all "bytes" of bodies, those of the
 * connection that got "least", and what was wrong: "refused" connections, "broken" off ones, bad
 * "heads", "lengths" and "contents". Exit status 0 in any case; 2 when it can not measure.
 */
#include "asker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD = 4096, PIECE = 256 << 10, BATCH = 256, TIMES = 4 << 20, REPEAT = 10 };

struct connection {
    int fd;
    unsigned path; /* which is asked for */
    size_t head;   /* bytes in `text`, until the head is whole */
    bool in_body;  /* the head is whole */
    uint64_t got;  /* bytes of this body */
    uint64_t all;  /* bytes of all bodies */
    double since;  /* when it was asked for */
    double due;    /* at a rate: when the next one is to be asked for */
    bool idle;     /* and nothing is asked for now */
    char text[HEAD];
};

static struct { uint64_t requests, bytes, refused, broken, heads, lengths, contents; } seen;

static struct {
    uint16_t port;
    bool closes;
    double rate;     /* 0: as soon as it is answered */
    double interval; /* of a connection's requests at that rate */
    unsigned paths;
    char **path;
    uint64_t *size;
    int epoll;
    char expected[PIECE + REPEAT];
    float *times; /* milliseconds */
} reader;

static void ask(struct connection *connection) {
    char request[1024];
    connection->head = 0;
    connection->got = 0;
    connection->in_body = false;
    int length = snprintf(
        request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s\r\n",
        reader.path[connection->path], reader.port, reader.closes ? "Connection: close\r\n" : "");
    send(connection->fd, request, (size_t)length, MSG_NOSIGNAL); /* reading tells what failed */
}

/* What is asked goes with the connection's events: the first one says that it may be written. */
static void open_connection(struct connection *connection) {
    connection->since = asker_now();
    connection->head = SIZE_MAX; /* nothing was asked yet */
    connection->fd = asker_connect(reader.port, SOCK_NONBLOCK, reader.epoll,
                                   EPOLLIN | EPOLLOUT | EPOLLET, connection);
}

/* At a rate, a request that is late already counts from when it was due. */
static void ask_in_time(struct connection *connection) {
    double at = asker_now();
    connection->idle = reader.rate > 0 && connection->due > at;
    if (connection->idle)
        return;
    connection->since = reader.rate > 0 ? connection->due : at;
    connection->due += reader.interval;
    ask(connection);
}

static void next(struct connection *connection, bool open_again) {
    connection->path = (connection->path + 1) % reader.paths;
    if (open_again) {
        close(connection->fd);
        open_connection(connection);
    } else {
        ask_in_time(connection);
    }
}

/* A response that is wrong or broken off: on with another connection. */
static void failed(struct connection *connection, uint64_t *count) {
    ++*count;
    next(connection, true);
}

static void finished(struct connection *connection) {
    if (seen.requests < TIMES)
        reader.times[seen.requests] = (float)((asker_now() - connection->since) * 1e3);
    seen.requests++;
    next(connection, reader.closes);
}

/* False: it is over with this response. */
static bool take_body(struct connection *connection, const char *bytes, size_t length) {
    if (connection->got + length > reader.size[connection->path])
        return failed(connection, &seen.lengths), false;
    if (memcmp(bytes, reader.expected + connection->got % REPEAT, length) != 0)
        return failed(connection, &seen.contents), false;
    connection->got += length;
    connection->all += length;
    seen.bytes += length;
    if (connection->got < reader.size[connection->path])
        return true;
    if (!reader.closes)
        return finished(connection), false;
    return true;
}

static bool take_head(struct connection *connection, const char *bytes, size_t length) {
    size_t before = connection->head;
    size_t room = HEAD - 1 - before, taken = length < room ? length : room;
    memcpy(connection->text + before, bytes, taken);
    connection->head += taken;
    connection->text[connection->head] = '\0';
    char *end = strstr(connection->text, "\r\n\r\n");
    if (end == NULL) {
        if (connection->head < HEAD - 1)
            return true;
        return failed(connection, &seen.heads), false;
    }
    end[2] = '\0';
    char *field = strcasestr(connection->text, "\r\nContent-Length:");
    if (strncmp(connection->text, "HTTP/1.1 200 ", 13) != 0 || field == NULL)
        return failed(connection, &seen.heads), false;
    if (strtoull(field + 17, NULL, 10) != reader.size[connection->path])
        return failed(connection, &seen.lengths), false;
    connection->in_body = true;
    size_t used = (size_t)(end + 4 - connection->text) - before;
    return length == used || take_body(connection, bytes + used, length - used);
}

static void ended(struct connection *connection) {
    if (!reader.closes || !connection->in_body)
        failed(connection, &seen.broken);
    else if (connection->got != reader.size[connection->path])
        failed(connection, &seen.lengths);
    else
        finished(connection);
}

static void on_event(struct connection *connection, uint32_t events) {
    static char bytes[PIECE];
    if (connection->head == SIZE_MAX && events & (EPOLLERR | EPOLLHUP))
        return failed(connection, &seen.refused);
    if (connection->head == SIZE_MAX) {
        connection->head = 0;
        return reader.rate > 0 ? ask_in_time(connection) : ask(connection);
    }
    for (;;) {
        ssize_t got = recv(connection->fd, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got < 0)
            return failed(connection, &seen.broken);
        if (got == 0)
            return ended(connection);
        bool goes_on = connection->in_body ? take_body(connection, bytes, (size_t)got)
                                           : take_head(connection, bytes, (size_t)got);
        if (!goes_on)
            return;
    }
}

static size_t known_times(void) {
    return seen.requests < TIMES ? seen.requests : TIMES;
}

static void report(struct connection *connections, unsigned count, double seconds) {
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < count; i++)
        if (connections[i].all < least)
            least = connections[i].all;
    asker_sort(reader.times, known_times());
    printf("{\"requests\": %ju, \"seconds\": %f, \"bytes\": %ju, \"least\": %ju, "
           "\"p50_ms\": %f, \"p99_ms\": %f, \"p999_ms\": %f, \"errors\": {\"refused\": %ju, "
           "\"broken\": %ju, "
           "\"heads\": %ju, \"lengths\": %ju, \"contents\": %ju}}\n",
           seen.requests, seconds, seen.bytes, least, asker_part(reader.times, known_times(), 500),
           asker_part(reader.times, known_times(), 990),
           asker_part(reader.times, known_times(), 999), seen.refused, seen.broken, seen.heads,
           seen.lengths, seen.contents);
}

static void prepare(int count, char **arguments) {
    reader.port = (uint16_t)atoi(arguments[1]);
    reader.closes = strcmp(arguments[4], "close") == 0;
    reader.rate = atof(arguments[4]); /* of a word it makes 0 */
    reader.interval = reader.rate > 0 ? atof(arguments[2]) / reader.rate : 0;
    reader.paths = (unsigned)count - 5;
    reader.path = arguments + 5;
    reader.size = calloc(reader.paths, sizeof *reader.size);
    reader.times = calloc(TIMES, sizeof *reader.times);
    asker_need(reader.size != NULL && reader.times != NULL, "calloc");
    for (unsigned i = 0; i < reader.paths; i++)
        reader.size[i] = strtoull(strrchr(reader.path[i], '/') + 1, NULL, 10);
    for (size_t i = 0; i < sizeof reader.expected; i++)
        reader.expected[i] = (char)('0' + i % REPEAT);
    reader.epoll = epoll_create1(0);
    asker_need(reader.epoll >= 0, "epoll_create1");
}

/* Those whose time has come; who still waits for an answer asks when it is there. */
static void ask_due(struct connection *connections, unsigned count) {
    double at = asker_now();
    for (unsigned i = 0; i < count; i++)
        if (connections[i].idle && connections[i].due <= at)
            ask_in_time(&connections[i]);
}

int main(int count, char **arguments) {
    if (count < 6) {
        fprintf(stderr, "usage: %s PORT CONNECTIONS SECONDS close|keep|RATE PATH...\n",
                arguments[0]);
        return 2;
    }
    prepare(count, arguments);
    unsigned parallel = (unsigned)atoi(arguments[2]);
    struct connection *connections = calloc(parallel, sizeof *connections);
    asker_need(connections != NULL, "calloc");
    double begin = asker_now(), end = begin + atof(arguments[3]);
    for (unsigned i = 0; i < parallel; i++) {
        connections[i].path = i % reader.paths;
        connections[i].due = begin + reader.interval * (1 + (double)i / parallel);
        open_connection(&connections[i]);
    }
    while (asker_now() < end) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(reader.epoll, events, BATCH, reader.rate > 0 ? 0 : 100);
        for (int i = 0; i < ready; i++)
            on_event(events[i].data.ptr, events[i].events);
        if (reader.rate > 0)
            ask_due(connections, parallel);
    }
    report(connections, parallel, asker_now() - begin);
    free(connections);
    free(reader.size);
    free(reader.times);
    return 0;
}
