/*
 * Opens TLS connections as fast as a server takes them: each does a handshake, asks for one path,
 * reads the response, says goodbye and is followed by the next. The server is asked for by the name
 * bench.test.
 *
 *     tls_connect PORT CONNECTIONS SECONDS full|resumed 1.2|1.3 PATH [TUNNEL]
 *
 * resumed: each handshake goes on from the newest session that the server gave to the connection
 * before it. TUNNEL (HOST:PORT): the server is a proxy; each connection asks it for a tunnel to
 * there by CONNECT first, and inside it for bench.test:PORT. The server's certificate is not
 * verified.
 *
 * Prints {"requests", "seconds", "bytes" of the responses, "p50_ms", "p99_ms" from the begin of the
 * connect to the last byte, "resumed": how many were, "errors": {"failed"}}.
 */
#include "asker.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 256, TEXT = 65536, TIMES_MOST = 4 << 20, WAIT_MS = 100 };
enum step { TUNNELLING, SHAKING, READING };

struct connection {
    int fd;
    enum step step;
    bool asked_tunnel;
    SSL *ssl;
    SSL_SESSION *session;
    double since;
    size_t got, awaited; /* bytes of the response; awaited is 0 until its head is there */
    char head[2048];
};

static struct {
    SSL_CTX *context;
    uint16_t port;
    bool resumes;
    int epoll;
    char request[1024], tunnel[1024]; /* tunnel: empty for none */
    size_t requests, bytes, resumed, failed;
    float *times;
} all;

static int on_session(SSL *ssl, SSL_SESSION *session) {
    struct connection *connection = SSL_get_app_data(ssl);
    SSL_SESSION_free(connection->session);
    connection->session = session;
    return 1;
}

static void make_context(const char *version) {
    int number = strcmp(version, "1.2") == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
    all.context = SSL_CTX_new(TLS_client_method());
    asker_need(all.context != NULL, "SSL_CTX_new");
    SSL_CTX_set_min_proto_version(all.context, number);
    SSL_CTX_set_max_proto_version(all.context, number);
    SSL_CTX_set_read_ahead(all.context, 1);
    SSL_CTX_set_session_cache_mode(all.context,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(all.context, on_session);
}

static void begin(struct connection *connection) {
    int on = 1;
    connection->since = asker_now();
    connection->got = connection->awaited = 0;
    connection->asked_tunnel = false;
    connection->step = all.tunnel[0] != '\0' ? TUNNELLING : SHAKING;
    connection->fd = asker_connect(all.port, SOCK_NONBLOCK, all.epoll,
                                   EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, connection);
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection->ssl = SSL_new(all.context);
    asker_need(connection->ssl != NULL && SSL_set_fd(connection->ssl, connection->fd) == 1,
               "SSL_new");
    SSL_set_app_data(connection->ssl, connection);
    SSL_set_tlsext_host_name(connection->ssl, "bench.test");
    SSL_set_connect_state(connection->ssl);
    if (all.resumes && connection->session != NULL)
        SSL_set_session(connection->ssl, connection->session);
}

/* Closes, and opens the next in its place. */
static void next(struct connection *connection, bool good) {
    if (good)
        SSL_shutdown(connection->ssl);
    SSL_free(connection->ssl);
    close(connection->fd);
    all.failed += !good;
    begin(connection);
}

static void count(struct connection *connection) {
    if (all.requests < TIMES_MOST)
        all.times[all.requests] = (float)((asker_now() - connection->since) * 1e3);
    all.requests++;
    all.bytes += connection->got;
    all.resumed += SSL_session_reused(connection->ssl) == 1;
}

/* Takes bytes of the response; its length is known when its head is there. */
static void take(struct connection *connection, const char *bytes, size_t length) {
    size_t room = sizeof connection->head - 1;
    if (connection->awaited == 0 && connection->got < room) {
        size_t part = length < room - connection->got ? length : room - connection->got;
        memcpy(connection->head + connection->got, bytes, part);
        connection->head[connection->got + part] = '\0';
        const char *end = strstr(connection->head, "\r\n\r\n");
        const char *field = strcasestr(connection->head, "\r\nContent-Length:");
        if (end != NULL && field != NULL)
            connection->awaited = (size_t)(end + 4 - connection->head) +
                                  strtoul(field + strlen("\r\nContent-Length:"), NULL, 10);
    }
    connection->got += length;
}

static bool is_failed(const struct connection *connection) {
    int error = SSL_get_error(connection->ssl, 0);
    return error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
}

static void read_response(struct connection *connection) {
    static char text[TEXT];
    size_t got;
    while (SSL_read_ex(connection->ssl, text, sizeof text, &got) == 1) {
        take(connection, text, got);
        if (connection->awaited > 0 && connection->got >= connection->awaited) {
            count(connection);
            next(connection, true);
            return;
        }
    }
    if (is_failed(connection))
        next(connection, false);
}

static void shake_hands(struct connection *connection) {
    size_t put;
    if (SSL_do_handshake(connection->ssl) != 1) {
        if (is_failed(connection))
            next(connection, false);
        return;
    }
    if (SSL_write_ex(connection->ssl, all.request, strlen(all.request), &put) != 1) {
        next(connection, false);
        return;
    }
    connection->step = READING;
    read_response(connection);
}

/* Asks for the tunnel once the connection stands; its answer is one short head. */
static void open_tunnel(struct connection *connection) {
    char answer[1024];
    if (!connection->asked_tunnel) {
        size_t length = strlen(all.tunnel);
        connection->asked_tunnel =
            send(connection->fd, all.tunnel, length, MSG_NOSIGNAL) == (ssize_t)length;
        return;
    }
    ssize_t got = recv(connection->fd, answer, sizeof answer - 1, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got <= 0 || got < 12 || memcmp(answer + 8, " 200", 4) != 0) {
        next(connection, false);
        return;
    }
    connection->step = SHAKING;
    shake_hands(connection);
}

static void go_on(struct connection *connection) {
    switch (connection->step) {
    case TUNNELLING: open_tunnel(connection); return;
    case SHAKING: shake_hands(connection); return;
    case READING: read_response(connection); return;
    }
}

static void run(double seconds) {
    double end = asker_now() + seconds;
    while (asker_now() < end) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(all.epoll, events, BATCH, WAIT_MS);
        for (int i = 0; i < ready; i++)
            go_on(events[i].data.ptr);
    }
}

static void report(double seconds) {
    size_t timed = all.requests < TIMES_MOST ? all.requests : TIMES_MOST;
    asker_sort(all.times, timed);
    printf("{\"requests\": %zu, \"seconds\": %f, \"bytes\": %zu, \"p50_ms\": %f, \"p99_ms\": %f, "
           "\"resumed\": %zu, \"errors\": {\"failed\": %zu}}\n",
           all.requests, seconds, all.bytes, asker_part(all.times, timed, 500),
           asker_part(all.times, timed, 990), all.resumed, all.failed);
}

int main(int argument_count, char **arguments) {
    if (argument_count < 7) {
        fprintf(stderr,
                "usage: %s PORT CONNECTIONS SECONDS full|resumed 1.2|1.3 PATH [HOST:PORT]\n",
                arguments[0]);
        return EXIT_FAILURE;
    }
    size_t connections = strtoul(arguments[2], NULL, 10);
    double seconds = strtod(arguments[3], NULL), since = asker_now();
    const char *tunnel = argument_count > 7 ? arguments[7] : "";
    signal(SIGPIPE, SIG_IGN);
    all.port = (uint16_t)atoi(arguments[1]);
    all.resumes = strcmp(arguments[4], "resumed") == 0;
    make_context(arguments[5]);
    snprintf(all.request, sizeof all.request, "GET %s HTTP/1.1\r\nHost: bench.test%s\r\n\r\n",
             arguments[6], argument_count > 7 ? strrchr(tunnel, ':') : "");
    if (argument_count > 7)
        snprintf(all.tunnel, sizeof all.tunnel, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", tunnel,
                 tunnel);
    all.times = malloc(TIMES_MOST * sizeof *all.times);
    all.epoll = epoll_create1(0);
    struct connection *opened = calloc(connections, sizeof *opened);
    asker_need(all.times != NULL && opened != NULL && all.epoll >= 0, "memory");
    for (size_t i = 0; i < connections; i++)
        begin(&opened[i]);
    run(seconds);
    report(asker_now() - since);
    return EXIT_SUCCESS;
}
