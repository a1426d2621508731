/*
 * A TLS stream: one TLS connection on a connected socket, either side of it. net/connection.h keeps
 * one, and is read and written like a connection without TLS.
 *
 *     stream = tls_stream_connect(client, fd, &below);  to a server; see tls/client.h
 *     stream = tls_stream_accept(server, fd, peeked);   to a client; see tls/server.h
 *     while ((status = tls_stream_handshake(stream)) == IO_WAIT) ... wait for the socket
 *     tls_stream_write(stream, pieces, count, false, &put);
 *     tls_stream_read(stream, buffer, sizeof buffer, &got);
 *     tls_stream_finish(stream);                        our direction ends (close_notify)
 *     tls_stream_free(&stream);
 *
 * When the bytes end without a close_notify from the other side, the result of a read is IO_FAILED
 * and not IO_END: anybody on the way could have cut the connection.
 *
 * Written bytes count as written when the socket has them. A write may encrypt more bytes than it
 * reports; the caller must offer the same bytes again next, as after each write that took a part.
 *
 * A side that sends more than TLS_IDLE_MESSAGES handshake messages (key updates, tickets, requests
 * to negotiate anew) without a byte of data between them fails: each costs us time and brings
 * nothing.
 *
 * Threads: a stream belongs to the thread of its client or server. The socket belongs to the
 * caller.
 */
#ifndef RETORT_TLS_STREAM_H
#define RETORT_TLS_STREAM_H

#include "base/slice.h"
#include "event/loop.h"
#include "tls/facts.h"
#include "tls/server.h"

#include <openssl/safestack.h>
#include <openssl/types.h>
#include <sys/uio.h>

struct stack_st_X509;
struct tls_client;
struct tls_stream;

enum {
    TLS_RECORD_MOST = 16384,              /* bytes of data in one record (RFC 8446 §5.1) */
    TLS_WRITE_MOST = 4 * TLS_RECORD_MOST, /* that one write takes */
    TLS_IDLE_MESSAGES = 64,
};

/* `*belowp`: a stream that leads to the server, such as that to a proxy; it becomes part of the new
 * one. NULL: the socket leads there. */
/* NULL: tls_client_error, tls_server_error say why. The stream counts as a user of the client or
 * server. */
struct tls_stream *tls_stream_connect(struct tls_client *client, int fd,
                                      struct tls_stream **belowp);
/* `replay`: bytes that were read from the socket before; they are copied. */
struct tls_stream *tls_stream_accept(struct tls_server *server, int fd, struct slice replay);
/* Before the handshake of an accepted stream: shows this certificate instead of the server's own.
 * `chain` holds its issuers, without the root; NULL: none. All are counted. False: the key does
 * not belong to the certificate. */
bool tls_stream_show(struct tls_stream *stream, X509 *leaf, STACK_OF(X509) * chain, EVP_PKEY *key);
/* Sends a close_notify, if all before it is sent and the socket has room for it, and frees. */
void tls_stream_free(struct tls_stream **streamp);
/* The stream will be freed without a close_notify, so that the other side sees that bytes are
 * missing. */
void tls_stream_abandon(struct tls_stream *stream);

/* IO_DONE: the handshake is complete. IO_WAIT: call again when the socket is readable or
 * writable. */
enum io_status tls_stream_handshake(struct tls_stream *stream);
/* After IO_WAIT: the URL of the certificate that the handshake needs before it goes on, because the
 * server did not send it (tls/verify.h). NULL: it only waits for the socket. */
const char *tls_stream_wanted(const struct tls_stream *stream);
/* These two behave like connection_read and connection_write. `more`: another write follows at once,
 * and what is written leaves with it. */
enum io_status tls_stream_read(struct tls_stream *stream, char *buffer, size_t capacity,
                               size_t *got);
enum io_status tls_stream_write(struct tls_stream *stream, const struct iovec *pieces, int count,
                                bool more, size_t *put);
/* Ends our direction with a close_notify. IO_WAIT: call tls_stream_flush when the socket is
 * writable. */
enum io_status tls_stream_finish(struct tls_stream *stream);
/* Sends what a write, a read (its answers, such as a key update) or the finish left. */
enum io_status tls_stream_flush(struct tls_stream *stream);

/* Did the handshake fail because the server's certificate was not accepted? */
bool tls_stream_is_unverified(const struct tls_stream *stream);
/* Did the handshake agree on this protocol (RFC 7301)? */
bool tls_stream_speaks(const struct tls_stream *stream, struct slice protocol);
/* Did the handshake resume an earlier session? */
bool tls_stream_is_resumed(const struct tls_stream *stream);
/* The loop reports that the socket has become readable; hangup: that the other side has finished. A
 * read that has emptied the socket is only repeated after this. */
void tls_stream_note_event(struct tls_stream *stream, bool hangup);
/* Does the kernel encrypt what is sent? Then sendfile on the socket sends bytes of the stream, once
 * tls_stream_flush says that nothing is left. */
bool tls_stream_is_in_kernel(const struct tls_stream *stream);
/* May a read find bytes although the socket reports none? */
bool tls_stream_has_more(const struct tls_stream *stream);
/* Does the last read wait until the socket is writable, or the last write until it is readable?
 * Then the caller tries both directions again after each event. */
bool tls_stream_is_crossed(const struct tls_stream *stream);
/* A sentence that says why the stream failed and what to do. It lives as long as the stream, until
 * its next failure. Another stream of the same client has its own. */
const char *tls_stream_error(const struct tls_stream *stream);
/* The number of the alert that the other side sent when the stream failed (RFC 8446 §6); -1: none. */
int tls_stream_alert(const struct tls_stream *stream);
/* Why the handshake of an accepted stream failed. */
enum tls_failure tls_stream_failure(const struct tls_stream *stream);
/* Of an accepted stream after TLS_FAILURE_CERTIFICATE: why the client's certificate is not trusted;
 * NULL: it showed none. The text lives for ever. */
const char *tls_stream_distrust(const struct tls_stream *stream);
/* What the client of an accepted stream has shown, which the caller frees; NULL: nothing. */
struct shown_certificate *tls_stream_shown(const struct tls_stream *stream);
/* NULL: the handshake is not complete. */
const struct tls_facts *tls_stream_facts(struct tls_stream *stream);

#endif
