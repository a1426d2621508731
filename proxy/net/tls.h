/*
 * TLS toward servers, by OpenSSL, below connections: a connection that has a stream of it reads and
 * writes as others do (net/connection.h).
 *
 *     struct tls_settings settings = {.ca_file = "/etc/ssl/our.pem", .verify = true};
 *     struct tls_client *client = tls_client_new(&settings, SLICE("icap.example.com"));
 *     dial_start_tls(&dial, net, host, port, timeout, client, &waiter->task);
 *     tls_client_free(&client);                       when none of its streams is left
 *
 * A client is what all streams to one server have in common: what is trusted, the certificate that
 * we show, and, where we show none, the session that the next handshake resumes. TLS 1.2 at least;
 * no renegotiation. The server's certificate must be for the host's name, which is also told to the
 * server (SNI), or for its address. What goes wrong while a client is made fails its first
 * handshake.
 *
 * An end of the bytes that the server has not announced (close_notify) is IO_FAILED, never IO_END:
 * anybody could have made it.
 *
 * Threads: a client and its streams belong to one thread.
 */
#ifndef RETORT_NET_TLS_H
#define RETORT_NET_TLS_H

#include "base/slice.h"
#include "net/io.h"

#include <stdbool.h>
#include <sys/uio.h>

struct tls_settings {
    const char *ca_file;                       /* PEM; NULL: what the system trusts */
    const char *certificate, *certificate_key; /* ours, PEM; NULL: none */
    bool verify;                               /* the server's certificate */
};

struct tls_client;
struct tls_stream;

struct tls_client *tls_client_new(const struct tls_settings *settings, struct slice host);
void tls_client_free(struct tls_client **clientp);
/* Why something failed last, and what to do. Lives as long as the client. */
const char *tls_client_error(const struct tls_client *client);
const char *tls_stream_error(const struct tls_stream *stream);

/* On a socket that is connected, and stays its owner's. NULL: see tls_client_error. */
struct tls_stream *tls_stream_new(struct tls_client *client, int fd);
/* Tells the server that no more comes, if there is room for that. */
void tls_stream_free(struct tls_stream **streamp);
/* IO_DONE: bytes may go. IO_WAIT: again when the socket is readable or writable. IO_FAILED: see
 * tls_client_error. */
enum io_status tls_stream_handshake(struct tls_stream *stream);
/* These as in net/connection.h; one write takes no more than TLS_PIECE bytes. */
enum { TLS_PIECE = 16384 };
enum io_status tls_stream_read(struct tls_stream *stream, char *buffer, size_t capacity,
                               size_t *got);
enum io_status tls_stream_write(struct tls_stream *stream, const struct iovec *pieces, int count,
                                size_t *put);
/* A read waits for room to write, or a write for something to read (a key update): when there is,
 * the other direction may be tried again as well. */
bool tls_stream_is_crossed(const struct tls_stream *stream);

#endif
