/*
 * TLS to servers, with OpenSSL. ICAP services with TLS make clients; connections and dials use the
 * streams. A connection (net/connection.h) with a TLS stream is read and written like any other.
 *
 *     struct tls_settings settings = {.ca_file = "/etc/ssl/our.pem", .verify = true};
 *     struct tls_client *client = tls_client_new(&settings, SLICE("icap.example.com"));
 *     dial_start(&dial, net, &(struct dial_target){..., .tls = client}, &waiter->task);
 *     tls_client_free(&client);                       when none of its streams is left
 *
 * A client holds what all streams to one server share: the trusted certificates, the certificate
 * that we show, and the session that the next handshake resumes. A client that shows a certificate
 * resumes no session. The version is TLS 1.2 or later, without renegotiation. The server's
 * certificate must be for the host's name, which is also sent to the server (SNI), or for its
 * address. tls_client_new always returns a client; an error in its settings makes the first
 * handshake fail.
 *
 * When the bytes end without a close_notify from the server, the result is IO_FAILED and not
 * IO_END: anybody on the way could have cut the connection.
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
/* A sentence that says why the last failure happened and what to do. It lives as long as the
 * client. */
const char *tls_client_error(const struct tls_client *client);
const char *tls_stream_error(const struct tls_stream *stream);

/* Makes a stream on a connected socket. The socket still belongs to the caller. NULL: see
 * tls_client_error. */
struct tls_stream *tls_stream_new(struct tls_client *client, int fd);
/* Sends a close_notify, if the socket has room for it, and frees the stream. */
void tls_stream_free(struct tls_stream **streamp);
/* IO_DONE: the handshake is complete. IO_WAIT: call again when the socket is readable or writable.
 * IO_FAILED: see tls_client_error. */
enum io_status tls_stream_handshake(struct tls_stream *stream);
/* These two behave like connection_read and connection_write. One write takes at most TLS_PIECE
 * bytes. */
enum { TLS_PIECE = 16384 };
enum io_status tls_stream_read(struct tls_stream *stream, char *buffer, size_t capacity,
                               size_t *got);
enum io_status tls_stream_write(struct tls_stream *stream, const struct iovec *pieces, int count,
                                size_t *put);
/* Does the last read wait until the socket is writable, or the last write until it is readable (a
 * key update)? Then the caller tries both directions again after each event. */
bool tls_stream_is_crossed(const struct tls_stream *stream);

#endif
