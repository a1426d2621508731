/*
 * TLS to clients: what the streams of one listener share in one worker.
 *
 *     const struct tls_server_settings settings = {.certificate = "/etc/retort/www.pem"};
 *     struct tls_server *server = tls_server_new(&settings);
 *     status = connection_accept_secure(connection, server, SLICE(""));
 *     tls_server_release(&server);                    the streams keep it for as long as they live
 *
 * tls_server_new always returns a server; an error in its settings makes the first handshake fail.
 * The version is TLS 1.2 or later, without renegotiation and compression.
 *
 * Threads: a server and its streams belong to one thread. Ownership: counted; each stream counts.
 */
#ifndef RETORT_TLS_SERVER_H
#define RETORT_TLS_SERVER_H

#include <openssl/types.h>
#include <stddef.h>

struct tls_server_settings {
    const char *certificate; /* PEM: the chain and its key; NULL: each stream is shown its own */
};

struct tls_server;

struct tls_server *tls_server_new(const struct tls_server_settings *settings);
struct tls_server *tls_server_take(struct tls_server *server);
void tls_server_release(struct tls_server **serverp);
/* A sentence that says why the server can't be used; empty: it can. */
const char *tls_server_error(const struct tls_server *server);

/* For streams: a new SSL of the server. NULL: see tls_server_error. */
SSL *tls_server_open(struct tls_server *server);

#endif
