/*
 * Asks a server at a steady pace, whatever its answers take: how long does a response take that
 * comes to a server at work?
 *
 *     pace PORT RATE SECONDS CONNECTIONS SHARE HITS HIT MISS LENGTH [FIELD]
 *
 * RATE requests a second, at random times (a Poisson process; 0: each connection asks as soon as it
 * is answered). SHARE percent of them are for one of HITS objects, HIT with "%u" for its number,
 * the others for MISS. LENGTH is the body that a miss must have, 0 for any; FIELD is sent with each
 * request: "Accept-Encoding: gzip". A request for which no connection is free waits, and its time
 * runs.
 *
 * After so many seconds it prints a line of JSON: what was answered wholly and with 200
 * ("requests"), "rate", mean and 99 % of both kinds in milliseconds, and what was wrong: "broken"
 * off, other "status", other "lengths". Exit status 2 when it can not measure.
 */
#include "asker.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD = 8192, BATCH = 256, TIMES = 1 << 22, WAITING = 1 << 16, CONNECTIONS = 1024 };

enum kind { HIT, MISS, KINDS };

struct asked {
    double since;
    enum kind kind;
};

struct connection {
    int fd;
    bool busy;
    struct asked asked;
    size_t head;   /* bytes in `text`, until the head is whole */
    bool in_body;  /* the head is whole */
    bool good;     /* its status is 200 */
    bool chunked;  /* then `left` counts what is left of a chunk, with its line end */
    uint64_t left; /* of the body */
    uint64_t body; /* its length so far */
    char text[HEAD];
};

static struct {
    uint16_t port;
    double rate, share;
    unsigned hits, connections;
    const char *hit, *miss, *field;
    uint64_t length;
    int epoll;
    struct asked waiting[WAITING]; /* a ring */
    unsigned first, count;
    float *times[KINDS];
    uint64_t answered[KINDS], broken, status, lengths;
} pace;

static struct connection connections[CONNECTIONS];

static double chance(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0;
}

static void open_connection(struct connection *connection) {
    connection->fd = asker_connect(pace.port, 0, pace.epoll, EPOLLIN, connection);
    connection->busy = false;
}

static void ask(struct connection *connection, struct asked asked) {
    char path[256], request[1024];
    if (asked.kind == HIT) {
        const char *number = strstr(pace.hit, "%u");
        snprintf(path, sizeof path, "%.*s%u%s", (int)(number - pace.hit), pace.hit,
                 (unsigned)(chance() * pace.hits), number + 2);
    } else
        snprintf(path, sizeof path, "%s", pace.miss);
    int length =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s\r\n", path,
                 pace.port, pace.field, pace.field[0] != 0 ? "\r\n" : "");
    connection->busy = true;
    connection->asked = asked;
    connection->head = 0;
    connection->in_body = connection->chunked = false;
    connection->left = connection->body = 0;
    asker_need(send(connection->fd, request, (size_t)length, MSG_NOSIGNAL) == length, "send");
}

static struct asked next_request(double since) {
    return (struct asked){since, chance() * 100 < pace.share ? HIT : MISS};
}

/* The connection is free for what waits, or for its next request. */
static void go_on(struct connection *connection) {
    connection->busy = false;
    if (pace.rate == 0)
        ask(connection, next_request(asker_now()));
    else if (pace.count > 0) {
        ask(connection, pace.waiting[pace.first]);
        pace.first = (pace.first + 1) % WAITING;
        pace.count--;
    }
}

static void answered(struct connection *connection) {
    enum kind kind = connection->asked.kind;
    if (!connection->good)
        pace.status++;
    else if (kind == MISS && pace.length > 0 && connection->body != pace.length)
        pace.lengths++;
    else if (pace.answered[kind] < TIMES)
        pace.times[kind][pace.answered[kind]++] =
            (float)(asker_now() - connection->asked.since) * 1e3f;
    go_on(connection);
}

static const char *field(const char *head, const char *name) {
    const char *at = strcasestr(head, name);
    return at == NULL ? NULL : at + strlen(name);
}

/* Of chunks only their lines are looked at, one after another; the last one is of length 0. */
static bool chunks_end(struct connection *connection, const char *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        if (connection->left > 0) {
            size_t part = length - at < connection->left ? length - at : connection->left;
            connection->left -= part;
            at += part;
            continue;
        }
        char c = bytes[at++];
        connection->text[connection->head++] = c;
        asker_need(connection->head < HEAD, "chunk line");
        if (c != '\n')
            continue;
        connection->text[connection->head] = 0;
        uint64_t size = strtoull(connection->text, NULL, 16);
        bool blank = connection->head == 2;
        connection->head = 0;
        if (blank)
            return true; /* behind the last chunk */
        connection->body += size;
        connection->left = size > 0 ? size + 2 : 0;
    }
    return false;
}

static bool body_ends(struct connection *connection, const char *bytes, size_t length) {
    if (connection->chunked)
        return chunks_end(connection, bytes, length);
    connection->left -= length < connection->left ? length : connection->left;
    connection->body += length;
    return connection->left == 0;
}

static void read_head(struct connection *connection) {
    connection->text[connection->head - 1] = 0;
    const char *size = field(connection->text, "\r\nContent-Length:");
    connection->good = strncmp(connection->text, "HTTP/1.1 200 ", 13) == 0;
    connection->chunked = size == NULL;
    connection->left = size == NULL ? 0 : strtoull(size, NULL, 10);
    connection->in_body = true;
    connection->head = 0;
}

static void reconnect(struct connection *connection) {
    pace.broken++;
    close(connection->fd);
    open_connection(connection);
    go_on(connection);
}

static void on_bytes(struct connection *connection) {
    static char bytes[1 << 18];
    ssize_t got = recv(connection->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0 || !connection->busy) {
        reconnect(connection);
        return;
    }
    size_t at = 0;
    while (!connection->in_body && at < (size_t)got) {
        connection->text[connection->head++] = bytes[at++];
        asker_need(connection->head < HEAD, "head");
        const char *end = connection->text + connection->head;
        if (connection->head >= 4 && memcmp(end - 4, "\r\n\r\n", 4) == 0)
            read_head(connection);
    }
    bool has_body = connection->chunked || connection->left > 0;
    if (connection->in_body &&
        (!has_body || (at < (size_t)got && body_ends(connection, bytes + at, (size_t)got - at))))
        answered(connection);
}

static void on_due(double at) {
    for (unsigned i = 0; i < pace.connections; i++)
        if (!connections[i].busy) {
            ask(&connections[i], next_request(at));
            return;
        }
    asker_need(pace.count < WAITING, "too many requests wait");
    pace.waiting[(pace.first + pace.count++) % WAITING] = next_request(at);
}

static void wait_until(double due) {
    struct epoll_event events[BATCH];
    double left = due - asker_now();
    struct timespec timeout = {0, 0};
    if (left > 0) {
        timeout.tv_sec = (time_t)left;
        timeout.tv_nsec = (long)((left - (double)timeout.tv_sec) * 1e9);
    }
    int count = epoll_pwait2(pace.epoll, events, BATCH, &timeout, NULL);
    for (int i = 0; i < count; i++)
        on_bytes(events[i].data.ptr);
}

static void run(double seconds) {
    double end = asker_now() + seconds, due = pace.rate > 0 ? asker_now() : end;
    if (pace.rate == 0)
        for (unsigned i = 0; i < pace.connections; i++)
            ask(&connections[i], next_request(asker_now()));
    for (double at = asker_now(); at < end; at = asker_now()) {
        for (; due <= at && pace.rate > 0; due -= log(1 - chance()) / pace.rate)
            on_due(at);
        wait_until(due < end ? due : end);
    }
}

static void print_times(enum kind kind, const char *name) {
    uint64_t count = pace.answered[kind];
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += pace.times[kind][i];
    if (count == 0)
        return;
    asker_sort(pace.times[kind], count);
    printf("\"%s_ms\": %.4f, \"%s_p50_ms\": %.4f, \"%s_p99_ms\": %.4f, ", name, sum / (double)count,
           name, asker_part(pace.times[kind], count, 500), name,
           asker_part(pace.times[kind], count, 990));
}

int main(int count, char **arguments) {
    if (count < 10) {
        fprintf(stderr,
                "usage: pace PORT RATE SECONDS CONNECTIONS SHARE HITS HIT MISS LENGTH [FIELD]\n");
        return 2;
    }
    pace.port = (uint16_t)atoi(arguments[1]);
    pace.rate = atof(arguments[2]);
    double seconds = atof(arguments[3]);
    pace.connections = (unsigned)atoi(arguments[4]);
    pace.share = atof(arguments[5]);
    pace.hits = (unsigned)atoi(arguments[6]);
    pace.hit = arguments[7];
    pace.miss = arguments[8];
    pace.length = strtoull(arguments[9], NULL, 10);
    pace.field = count > 10 ? arguments[10] : "";
    asker_need(pace.connections > 0 && pace.connections <= CONNECTIONS, "number of connections");
    asker_need(pace.share == 0 || strstr(pace.hit, "%u") != NULL, "HIT without %u");
    prctl(PR_SET_TIMERSLACK, 1000ul);
    pace.epoll = epoll_create1(EPOLL_CLOEXEC);
    asker_need(pace.epoll >= 0, "epoll_create1");
    for (enum kind kind = HIT; kind < KINDS; kind++)
        asker_need((pace.times[kind] = malloc(TIMES * sizeof(float))) != NULL, "malloc");
    for (unsigned i = 0; i < pace.connections; i++)
        open_connection(&connections[i]);
    double begin = asker_now();
    run(seconds);
    double elapsed = asker_now() - begin;
    uint64_t all = pace.answered[HIT] + pace.answered[MISS];
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"rate\": %.3f, ", (unsigned long long)all,
           elapsed, (double)all / elapsed);
    print_times(HIT, "hit");
    print_times(MISS, "miss");
    printf("\"errors\": {\"broken\": %llu, \"status\": %llu, \"lengths\": %llu}}\n",
           (unsigned long long)pace.broken, (unsigned long long)pace.status,
           (unsigned long long)pace.lengths);
    return 0;
}
