/*
 * The bytes below a TLS stream: a BIO of our own between an SSL and its socket. tls/stream.h is its
 * only user.
 *
 *     stream->ssl = SSL_new(context);
 *     BIO *bio = tls_bio_open(&stream->bio, fd, replay);
 *     SSL_set_bio(stream->ssl, bio, bio);              the SSL frees the BIO
 *     ...
 *     SSL_free(stream->ssl);  tls_bio_release(&stream->bio);
 *
 * Reads give the replayed bytes first: bytes of the connection that somebody has read from the
 * socket before, to see what they are. Then they read the socket, as much as the SSL has room for.
 * After a read that emptied the socket, the next one only looks at the socket again when
 * tls_bio_note_event has been called: the loop reports each arrival of bytes.
 *
 * A write never fails because the socket is full: what the socket does not take is kept here until
 * tls_bio_flush. So an SSL that only reads is not stopped by an answer that it has to give, such as
 * a key update. Only when more than TLS_BIO_KEPT_MOST bytes are kept, the SSL has to wait. While
 * `gather` is set, writes are kept as well, and the write after them sends all with one system
 * call. Memory is only used while there are bytes in it.
 *
 * Linux may encrypt in the kernel (tls.ko). After tls_bio_offer_kernel OpenSSL hands the keys for
 * what we send to the kernel, if it can; from then on OpenSSL writes clear text, which the kernel
 * frames and encrypts, and sendfile works on the socket. What is read is decrypted here as before.
 *
 * Threads: that of the stream.
 */
#ifndef RETORT_TLS_BIO_H
#define RETORT_TLS_BIO_H

#include "base/slice.h"
#include "event/loop.h"

#include <openssl/types.h>

/* TLS_BIO_GATHER is the room for four full records and their framing. */
enum { TLS_BIO_GATHER = 68 * 1024, TLS_BIO_KEPT_MOST = 2 * TLS_BIO_GATHER };

struct tls_bio {
    unsigned magic;
#define TLS_BIO_MAGIC 0x7b10b10bu
    int fd;
    struct tls_stream *below; /* set and freed by the stream; in place of the socket; or NULL */
    bool gather;              /* set by the stream: another write follows at once */
    bool lazy;                /* set by the stream: a flush of OpenSSL does nothing */
    bool drained;   /* the last read took all that the socket had: the next one has to wait */
    bool hangup;    /* set by the stream: what is left can be read without waiting */
    bool in_kernel; /* the kernel encrypts what is written */
    bool ended;     /* the other side has finished */
    bool stopped;   /* set by the stream: every read and write fails with EPROTO */
    char *replay;   /* owned; NULL: none left */
    char *kept;     /* bytes that are not sent yet; owned; NULL: none */
    size_t replay_at, replay_end;
    size_t kept_at, kept_end, kept_capacity;
    BIO *keys;                 /* of the socket; hands the keys to the kernel. NULL: not offered */
    unsigned char record_type; /* of the next write in the kernel; 0: data */
    uint64_t sent;             /* bytes that the socket took, in all */
};

/* Makes the BIO. The socket belongs to the caller. `replay` is copied. NULL: no memory. */
BIO *tls_bio_open(struct tls_bio *bio, int fd, struct slice replay);
void tls_bio_release(struct tls_bio *bio);
/* Before the handshake: lets the kernel encrypt, where it can. */
void tls_bio_offer_kernel(struct tls_bio *bio);

/* Sends what is kept. IO_DONE: nothing is kept any more. IO_FAILED: errno says why. */
enum io_status tls_bio_flush(struct tls_bio *bio);

/* The socket has become readable, or the other side has finished (hangup). */
static inline void tls_bio_note_event(struct tls_bio *bio, bool hangup) {
    bio->drained = false;
    bio->hangup = bio->hangup || hangup;
}

static inline size_t tls_bio_kept(const struct tls_bio *bio) {
    return bio->kept_end - bio->kept_at;
}

#endif
