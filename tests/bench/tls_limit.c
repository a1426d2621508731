/*
 * The limit for TLS: what OpenSSL and this machine allow a server that does nothing but answer. A
 * loop of epoll in one thread that takes whatever it receives for one request and sends the same
 * response every time, with a bare SSL on each socket. What a listener with TLS is measured against.
 *
 *     tls_limit PORT PEM BYTES        PEM: a file with the certificate and its key
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096, BATCH = 256, REQUEST = 16384, HEAD = 512, ACCEPT_BATCH = 64 };

static struct {
    int listener, epoll;
    SSL_CTX *context;
    char *bytes; /* the response */
    size_t length;
} limit;

static void need(bool good, const char *what) {
    if (good)
        return;
    perror(what);
    exit(EXIT_FAILURE);
}

static void make_response(size_t body) {
    limit.bytes = malloc(HEAD + body);
    need(limit.bytes != NULL, "malloc");
    int head = snprintf(limit.bytes, HEAD,
                        "HTTP/1.1 200 OK\r\n"
                        "Server: limit\r\n"
                        "Date: Sat, 21 Nov 2026 07:00:00 GMT\r\n"
                        "Content-Type: text/plain\r\n"
                        "Cache-Control: max-age=86400\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        body);
    for (size_t i = 0; i < body; i++)
        limit.bytes[(size_t)head + i] = (char)('0' + i % 10);
    limit.length = (size_t)head + body;
}

static void make_context(const char *pem) {
    limit.context = SSL_CTX_new(TLS_server_method());
    need(limit.context != NULL, "SSL_CTX_new");
    need(SSL_CTX_use_certificate_chain_file(limit.context, pem) == 1, pem);
    need(SSL_CTX_use_PrivateKey_file(limit.context, pem, SSL_FILETYPE_PEM) == 1, pem);
    SSL_CTX_set_mode(limit.context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                        SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                        SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(limit.context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(limit.context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(limit.context, 1);
    SSL_CTX_set_read_ahead(limit.context, 1);
}

static void open_listener(uint16_t port) {
    int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = limit.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    need(bind(fd, (struct sockaddr *)&address, sizeof address) == 0, "bind");
    need(listen(fd, BACKLOG) == 0, "listen");
}

static void watch(int fd, uint32_t events, void *owner) {
    struct epoll_event event = {.events = events, .data.ptr = owner};
    need(epoll_ctl(limit.epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

/* Sends the response from where it stopped; the place is kept in the SSL. False: it waits. */
static bool respond(SSL *ssl) {
    size_t at = (size_t)SSL_get_app_data(ssl), put;
    for (; at < limit.length; at += put)
        if (SSL_write_ex(ssl, limit.bytes + at, limit.length - at, &put) != 1)
            break;
    SSL_set_app_data(ssl, (void *)(at < limit.length ? at : 0));
    return at == limit.length;
}

static void finish(SSL *ssl) {
    int fd = SSL_get_fd(ssl);
    SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
}

static void serve(SSL *ssl) {
    char request[REQUEST];
    size_t got;
    if (SSL_get_app_data(ssl) != NULL && !respond(ssl))
        return;
    while (SSL_read_ex(ssl, request, sizeof request, &got) == 1)
        if (!respond(ssl))
            return;
    int error = SSL_get_error(ssl, 0);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        finish(ssl);
}

static void accept_some(void) {
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd = accept4(limit.listener, NULL, NULL, SOCK_NONBLOCK);
        if (fd < 0)
            return;
        SSL *ssl = SSL_new(limit.context);
        need(ssl != NULL && SSL_set_fd(ssl, fd) == 1, "SSL_new");
        SSL_set_accept_state(ssl);
        watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, ssl);
    }
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: %s PORT PEM BYTES\n", arguments[0]);
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN);
    make_context(arguments[2]);
    make_response(strtoul(arguments[3], NULL, 10));
    open_listener((uint16_t)atoi(arguments[1]));
    limit.epoll = epoll_create1(0);
    need(limit.epoll >= 0, "epoll_create1");
    watch(limit.listener, EPOLLIN, NULL);
    for (;;) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(limit.epoll, events, BATCH, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr == NULL)
                accept_some();
            else
                serve(events[i].data.ptr);
        }
    }
}
