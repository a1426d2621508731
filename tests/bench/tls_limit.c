/*
 * The limit for TLS: what OpenSSL and this machine allow a server that does nothing but answer. A
 * loop of epoll in one thread that takes whatever it receives for one request and sends the same
 * response every time, with a bare SSL on each socket. What a listener with TLS is measured against.
 *
 *     tls_limit PORT PEM BYTES        PEM: a file with the certificate and its key
 */
#include "answerer.h"

#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static SSL_CTX *tls_context;

static void make_context(const char *pem) {
    SSL_CTX *context = tls_context = SSL_CTX_new(TLS_server_method());
    answerer_need(context != NULL, "SSL_CTX_new");
    answerer_need(SSL_CTX_use_certificate_chain_file(context, pem) == 1, pem);
    answerer_need(SSL_CTX_use_PrivateKey_file(context, pem, SSL_FILETYPE_PEM) == 1, pem);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_read_ahead(context, 1);
}

/* Sends the response from where it stopped; the place is kept in the SSL. False: it waits. */
static bool respond(SSL *ssl) {
    size_t at = (size_t)SSL_get_app_data(ssl), put;
    for (; at < answerer.length; at += put)
        if (SSL_write_ex(ssl, answerer.bytes + at, answerer.length - at, &put) != 1)
            break;
    SSL_set_app_data(ssl, (void *)(at < answerer.length ? at : 0));
    return at == answerer.length;
}

static void finish(SSL *ssl) {
    int fd = SSL_get_fd(ssl);
    SSL_shutdown(ssl);
    SSL_free(ssl);
    close(fd);
}

static void on_ready(void *owner) {
    SSL *ssl = owner;
    char request[ANSWERER_REQUEST];
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

static void on_accepted(int fd) {
    SSL *ssl = SSL_new(tls_context);
    answerer_need(ssl != NULL && SSL_set_fd(ssl, fd) == 1, "SSL_new");
    SSL_set_accept_state(ssl);
    answerer_watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, ssl);
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: %s PORT PEM BYTES\n", arguments[0]);
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN);
    make_context(arguments[2]);
    answerer_make_response(strtoul(arguments[3], NULL, 10), "");
    answerer_listen((uint16_t)atoi(arguments[1]), false);
    answerer_run(on_accepted, on_ready);
}
