#include "tls/stream.h"

#include "base/assert.h"
#include "tls/bio.h"
#include "tls/client.h"
#include "tls/verify.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>

struct tls_stream {
    unsigned magic;
#define TLS_STREAM_MAGIC 0x7157ea40u
    unsigned idle_messages; /* handshake messages since the last data */
    SSL *ssl;
    struct tls_client *client; /* one of these two is NULL */
    struct tls_server *server;
    struct tls_facts *facts; /* NULL: nobody has asked */
    char *error;             /* NULL: none */
    size_t owed;             /* bytes of data that are encrypted but not reported as written */
    int alert;
    enum tls_failure failure;
    bool crossed, established, broken;
    struct tls_bio bio;
};

/* OpenSSL calls this for each message, and for the header of each record. The session tickets of
 * TLS 1.3 follow the handshake, and nobody waits for them: they leave with the first data. */
static void tls_on_message(int written, int version, int type, const void *bytes, size_t length,
                           SSL *ssl, void *owner) {
    struct tls_stream *stream;
    (void)ssl;
    CAST_OBJ(stream, owner, TLS_STREAM_MAGIC);
    if (type != SSL3_RT_HANDSHAKE || length == 0)
        return;
    unsigned char kind = *(const unsigned char *)bytes;
    if (written)
        stream->bio.lazy = version == TLS1_3_VERSION && kind == SSL3_MT_NEWSESSION_TICKET;
    else if (stream->established)
        stream->bio.stopped = ++stream->idle_messages > TLS_IDLE_MESSAGES ||
                              (stream->bio.in_kernel && kind == SSL3_MT_KEY_UPDATE);
}

static struct tls_stream *tls_stream_new(SSL *ssl, int fd, struct slice replay) {
    struct tls_stream *stream;
    ALLOC_OBJ(stream, TLS_STREAM_MAGIC);
    BIO *bio = tls_bio_open(&stream->bio, fd, replay);
    if (bio == NULL) {
        SSL_free(ssl);
        FREE_OBJ(stream);
        return NULL;
    }
    stream->alert = -1;
    stream->ssl = ssl;
    if (SSL_get_options(ssl) & SSL_OP_ENABLE_KTLS)
        tls_bio_offer_kernel(&stream->bio);
    stream->bio.gather = true; /* the records of a flight leave together */
    SSL_set_bio(ssl, bio, bio);
    SSL_set_app_data(ssl, stream);
    SSL_set_msg_callback(ssl, tls_on_message);
    SSL_set_msg_callback_arg(ssl, stream);
    return stream;
}

struct tls_stream *tls_stream_connect(struct tls_client *client, int fd,
                                      struct tls_stream **belowp) {
    ERR_clear_error();
    SSL *ssl = tls_client_open(client);
    struct tls_stream *stream = ssl != NULL ? tls_stream_new(ssl, fd, SLICE("")) : NULL;
    if (stream == NULL)
        return NULL;
    stream->client = tls_client_take(client);
    stream->bio.below = *belowp;
    *belowp = NULL;
    return stream;
}

struct tls_stream *tls_stream_accept(struct tls_server *server, int fd, struct slice replay) {
    ERR_clear_error();
    SSL *ssl = tls_server_open(server);
    struct tls_stream *stream = ssl != NULL ? tls_stream_new(ssl, fd, replay) : NULL;
    if (stream != NULL)
        stream->server = tls_server_take(server);
    return stream;
}

bool tls_stream_show(struct tls_stream *stream, X509 *leaf, STACK_OF(X509) * chain, EVP_PKEY *key) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    ERR_clear_error();
    return SSL_use_cert_and_key(stream->ssl, leaf, key, chain, 1) == 1;
}

void tls_stream_free(struct tls_stream **streamp) {
    struct tls_stream *stream = *streamp;
    *streamp = NULL;
    if (stream == NULL)
        return;
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    tls_stream_finish(stream);
    ERR_clear_error();
    SSL_free(stream->ssl);
    tls_bio_release(&stream->bio);
    tls_stream_free(&stream->bio.below);
    tls_server_release(&stream->server);
    tls_client_release(&stream->client);
    tls_facts_release(&stream->facts);
    free(stream->error);
    FREE_OBJ(stream);
}

void tls_stream_abandon(struct tls_stream *stream) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    stream->broken = true;
    if (stream->bio.below != NULL)
        tls_stream_abandon(stream->bio.below);
}

/* The number of an alert that was received stands in the reason (openssl/sslerr.h). */
static int received_alert(int error) {
    unsigned long code = ERR_peek_last_error();
    int alert = ERR_GET_REASON(code) - SSL_AD_REASON_OFFSET;
    return error == SSL_ERROR_SSL && ERR_GET_LIB(code) == ERR_LIB_SSL && alert >= 0 && alert < 256
               ? alert
               : -1;
}

static const char *plain_reason(const struct tls_stream *stream, int error, int number) {
    if (stream->bio.stopped)
        return stream->idle_messages > TLS_IDLE_MESSAGES
                   ? "it sends messages of TLS without end, and no data"
                   : "it changes its keys, which TLS in the kernel can't follow: set ktls = false";
    if (error == SSL_ERROR_SYSCALL && number != 0)
        return strerrordesc_np(number);
    if (error == SSL_ERROR_SYSCALL ||
        ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return stream->established ? "it closed the connection without a close_notify of TLS"
                                   : "it closed the connection in the TLS handshake";
    return NULL;
}

/* What the metrics count. */
static enum tls_failure failure_of(const struct tls_stream *stream, int error, int number) {
    if (stream->established)
        return TLS_FAILURE_NONE;
    if (stream->alert >= 0)
        return TLS_FAILURE_ALERT;
    if (plain_reason(stream, error, number) != NULL)
        return stream->bio.stopped ? TLS_FAILURE_OTHER : TLS_FAILURE_CLOSED;
    return tls_server_failure();
}

/* Says what happened. The client knows best what is wrong with a server. */
static void stream_explain(const struct tls_stream *stream, int error, int number,
                           char text[TLS_ERROR_MAX]) {
    const char *reason = plain_reason(stream, error, number);
    if (stream->client != NULL && tls_client_explain(stream->client, stream->ssl, text))
        return;
    if (reason != NULL) {
        snprintf(text, TLS_ERROR_MAX, "%s", reason);
        return;
    }
    if (stream->server != NULL)
        reason = tls_server_explain(stream->ssl);
    if (reason == NULL)
        reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(text, TLS_ERROR_MAX, "%s: %s",
             stream->established ? "TLS" : "the TLS handshake failed",
             reason != NULL ? reason : "unknown error");
}

static void stream_fail(struct tls_stream *stream, int error) {
    char text[TLS_ERROR_MAX];
    int number = errno;
    stream_explain(stream, error, number, text);
    stream->broken = true;
    stream->alert = received_alert(error);
    stream->failure = failure_of(stream, error, number);
    if (stream->client != NULL)
        tls_client_note_error(stream->client, text);
    free(stream->error);
    stream->error = xstrdup(text);
    errno = EPROTO;
}

/* The status of an operation that OpenSSL did not finish. */
static enum io_status outcome(struct tls_stream *stream, int result, int expected) {
    int error = SSL_get_error(stream->ssl, result);
    switch (error) {
    case SSL_ERROR_WANT_RETRY_VERIFY: return IO_WAIT;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        stream->crossed = expected != SSL_ERROR_NONE && error != expected;
        return IO_WAIT;
    case SSL_ERROR_ZERO_RETURN: return IO_END;
    default: stream_fail(stream, error); return IO_FAILED;
    }
}

/* Clears the error queue first. The whole thread shares it, so older errors of other streams would
 * be taken for errors of this one. To look is much quicker than to clear. */
static void tls_begin(struct tls_stream *stream) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    if (ERR_peek_error() != 0)
        ERR_clear_error();
    errno = 0;
    stream->crossed = false;
}

static enum io_status flush_kept(struct tls_stream *stream) {
    enum io_status status = tls_bio_flush(&stream->bio);
    if (status == IO_FAILED)
        stream_fail(stream, SSL_ERROR_SYSCALL);
    return status;
}

enum io_status tls_stream_flush(struct tls_stream *stream) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    if (stream->bio.below != NULL && tls_stream_flush(stream->bio.below) == IO_FAILED)
        return IO_FAILED;
    if (tls_bio_kept(&stream->bio) == 0)
        return IO_DONE;
    tls_begin(stream);
    return stream->broken ? IO_FAILED : flush_kept(stream);
}

enum io_status tls_stream_handshake(struct tls_stream *stream) {
    tls_begin(stream);
    if (flush_kept(stream) == IO_FAILED)
        return IO_FAILED;
    int result;
    do
        result = SSL_do_handshake(stream->ssl);
    while (result != 1 && SSL_want(stream->ssl) == SSL_RETRY_VERIFY &&
           tls_verify_wanted(stream->ssl) == NULL);
    if (result != 1)
        return outcome(stream, result, SSL_ERROR_NONE);
    stream->established = true;
    stream->bio.gather = false;
    if (!stream->bio.lazy && flush_kept(stream) == IO_FAILED)
        return IO_FAILED;
    stream->bio.lazy = false;
    return IO_DONE;
}

const char *tls_stream_wanted(const struct tls_stream *stream) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    return tls_verify_wanted(stream->ssl);
}

enum io_status tls_stream_read(struct tls_stream *stream, char *buffer, size_t capacity,
                               size_t *got) {
    *got = 0;
    tls_begin(stream);
    if (SSL_read_ex(stream->ssl, buffer, capacity, got) == 1) {
        stream->idle_messages = 0;
        return IO_DONE;
    }
    enum io_status status = outcome(stream, 0, SSL_ERROR_WANT_READ);
    if (status == IO_WAIT && stream->owed == 0 && flush_kept(stream) == IO_FAILED)
        return IO_FAILED;
    return status;
}

/* Where a write stands in its pieces. */
struct cursor {
    const struct iovec *piece, *end;
    size_t at; /* in the piece */
};

static void cursor_skip(struct cursor *cursor, size_t length) {
    cursor->at += length;
    while (cursor->piece < cursor->end && cursor->at >= cursor->piece->iov_len) {
        cursor->at -= cursor->piece->iov_len;
        cursor->piece++;
    }
}

/* The data of the next record: where it stands if one piece has enough, else copied together. */
static struct slice next_record(struct cursor *cursor, char joined[TLS_RECORD_MOST]) {
    const struct iovec *piece = cursor->piece;
    size_t length = piece->iov_len - cursor->at;
    const char *first = (const char *)piece->iov_base + cursor->at;
    if (length >= TLS_RECORD_MOST || piece + 1 == cursor->end) {
        length = length < TLS_RECORD_MOST ? length : TLS_RECORD_MOST;
        cursor_skip(cursor, length);
        return slice_make(first, length);
    }
    for (length = 0; cursor->piece < cursor->end && length < TLS_RECORD_MOST;) {
        size_t part = cursor->piece->iov_len - cursor->at;
        if (part > TLS_RECORD_MOST - length)
            part = TLS_RECORD_MOST - length;
        memcpy(joined + length, (const char *)cursor->piece->iov_base + cursor->at, part);
        length += part;
        cursor_skip(cursor, part);
    }
    return slice_make(joined, length);
}

/* Encrypts records of the pieces and sends them together. IO_DONE: owed tells how many bytes. */
static enum io_status encrypt(struct tls_stream *stream, const struct iovec *pieces, int count,
                              bool more) {
    char joined[TLS_RECORD_MOST];
    struct cursor cursor = {pieces, pieces + count, 0};
    cursor_skip(&cursor, 0);
    while (cursor.piece < cursor.end && stream->owed < TLS_WRITE_MOST) {
        size_t put;
        struct slice record = next_record(&cursor, joined);
        bool last = cursor.piece == cursor.end || stream->owed + record.length >= TLS_WRITE_MOST;
        stream->bio.gather = more || !last;
        if (SSL_write_ex(stream->ssl, record.base, record.length, &put) != 1)
            return outcome(stream, 0, SSL_ERROR_WANT_WRITE);
        stream->owed += put;
    }
    return IO_DONE;
}

/* Reports as many of the owed bytes as stands for the part of their records that the socket has
 * taken since it had taken `before`, and at most as many as are offered. The last byte is only
 * reported when all are sent, or are kept for a write that follows. */
static enum io_status settle(struct tls_stream *stream, uint64_t before, bool more, size_t offered,
                             size_t *put) {
    uint64_t sent = stream->bio.sent - before, kept = tls_bio_kept(&stream->bio);
    *put = kept == 0 || more ? stream->owed : (size_t)(stream->owed * sent / (sent + kept));
    if (*put > offered)
        *put = offered;
    stream->owed -= *put;
    return *put > 0 ? IO_DONE : IO_WAIT;
}

static size_t stream_sum_of(const struct iovec *pieces, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += pieces[i].iov_len;
    return sum;
}

enum io_status tls_stream_write(struct tls_stream *stream, const struct iovec *pieces, int count,
                                bool more, size_t *put) {
    bool owing = stream->owed > 0;
    uint64_t before = stream->bio.sent;
    *put = 0;
    tls_begin(stream);
    enum io_status status = owing ? flush_kept(stream) : encrypt(stream, pieces, count, more);
    stream->bio.gather = false;
    if (status != IO_FAILED && stream->owed > 0)
        status = settle(stream, before, more && !owing, stream_sum_of(pieces, count), put);
    return status;
}

enum io_status tls_stream_finish(struct tls_stream *stream) {
    tls_begin(stream);
    if (!stream->established || stream->broken || stream->owed > 0)
        return IO_FAILED;
    if (!(SSL_get_shutdown(stream->ssl) & SSL_SENT_SHUTDOWN))
        SSL_shutdown(stream->ssl);
    ERR_clear_error();
    return flush_kept(stream);
}

bool tls_stream_is_unverified(const struct tls_stream *stream) {
    return !stream->established && tls_verify_error(stream->ssl)[0] != '\0';
}

bool tls_stream_speaks(const struct tls_stream *stream, struct slice protocol) {
    const unsigned char *chosen;
    unsigned length;
    SSL_get0_alpn_selected(stream->ssl, &chosen, &length);
    return slice_equal(slice_make((const char *)chosen, length), protocol);
}

bool tls_stream_is_resumed(const struct tls_stream *stream) {
    return SSL_session_reused(stream->ssl) == 1;
}

void tls_stream_note_event(struct tls_stream *stream, bool hangup) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    tls_bio_note_event(&stream->bio, hangup);
    if (stream->bio.below != NULL)
        tls_stream_note_event(stream->bio.below, hangup);
}

bool tls_stream_is_in_kernel(const struct tls_stream *stream) {
    return stream->bio.in_kernel;
}

bool tls_stream_has_more(const struct tls_stream *stream) {
    return !stream->bio.drained || SSL_has_pending(stream->ssl) == 1;
}

bool tls_stream_is_crossed(const struct tls_stream *stream) {
    return stream->crossed ||
           (stream->bio.below != NULL && tls_stream_is_crossed(stream->bio.below));
}

const char *tls_stream_error(const struct tls_stream *stream) {
    if (stream->error != NULL)
        return stream->error;
    return stream->client != NULL ? tls_client_error(stream->client) : "";
}

int tls_stream_alert(const struct tls_stream *stream) {
    return stream->alert;
}

enum tls_failure tls_stream_failure(const struct tls_stream *stream) {
    return stream->failure;
}

const char *tls_stream_distrust(const struct tls_stream *stream) {
    long result = SSL_get_verify_result(stream->ssl);
    return result == X509_V_OK ? NULL : X509_verify_cert_error_string(result);
}

struct shown_certificate *tls_stream_shown(const struct tls_stream *stream) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    return shown_certificate_new(stream->ssl);
}

const struct tls_facts *tls_stream_facts(struct tls_stream *stream) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    if (stream->facts == NULL && stream->established)
        stream->facts = tls_facts_new(stream->ssl);
    return stream->facts;
}
