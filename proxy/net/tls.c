#include "net/tls.h"

#include "base/assert.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>

enum { ERROR_MAX = 400 };

struct tls_client {
    unsigned magic;
#define TLS_CLIENT_MAGIC 0x715c11e0u
    SSL_CTX *context; /* NULL: it could not be made; error says why */
    SSL_SESSION *session;
    bool shows; /* we show a certificate to the server */
    char *host;
    char error[ERROR_MAX];
};

struct tls_stream {
    unsigned magic;
#define TLS_STREAM_MAGIC 0x7157ea40u
    struct tls_client *client;
    SSL *ssl;
    bool crossed;
    bool established, broken;
};

static void tls_fail(struct tls_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void tls_fail(struct tls_client *client, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(client->error, sizeof client->error, format, arguments);
    va_end(arguments);
}

static const char *reason(void) {
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "unknown error";
}

/* Keeps the newest session for the next handshake. TLS 1.3 servers send several. */
static int on_session(SSL *ssl, SSL_SESSION *session) {
    struct tls_stream *stream = SSL_get_app_data(ssl);
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    SSL_SESSION_free(stream->client->session);
    stream->client->session = session;
    return 1;
}

static bool trust(struct tls_client *client, const struct tls_settings *settings) {
    SSL_CTX_set_verify(client->context, settings->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (!settings->verify)
        return true;
    if (settings->ca_file == NULL)
        return SSL_CTX_set_default_verify_paths(client->context) == 1;
    if (SSL_CTX_load_verify_locations(client->context, settings->ca_file, NULL) == 1)
        return true;
    tls_fail(client, "ca_file %s can't be used (%s): it must hold certificates in PEM",
             settings->ca_file, reason());
    return false;
}

static bool tls_show(struct tls_client *client, const struct tls_settings *settings) {
    if (settings->certificate == NULL)
        return true;
    if (SSL_CTX_use_certificate_chain_file(client->context, settings->certificate) != 1) {
        tls_fail(client, "certificate %s can't be used (%s): it must hold a certificate in PEM",
                 settings->certificate, reason());
        return false;
    }
    if (SSL_CTX_use_PrivateKey_file(client->context, settings->certificate_key, SSL_FILETYPE_PEM) ==
            1 &&
        SSL_CTX_check_private_key(client->context) == 1)
        return true;
    tls_fail(client,
             "certificate_key %s can't be used (%s): it must hold the key of %s in PEM, without "
             "a password",
             settings->certificate_key, reason(), settings->certificate);
    return false;
}

/* This is not called when we show a certificate. A server that asks for a certificate and has set
 * no session id context, such as c-icap, refuses to resume sessions
 * (SSL_CTX_set_session_id_context(3)). */
static void tls_resume(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(context, on_session);
}

static void tls_set_up(struct tls_client *client) {
    SSL_CTX *context = client->context;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (!client->shows)
        tls_resume(context);
}

struct tls_client *tls_client_new(const struct tls_settings *settings, struct slice host) {
    struct tls_client *client;
    ALLOC_OBJ(client, TLS_CLIENT_MAGIC);
    client->host = slice_dup(host);
    client->shows = settings->certificate != NULL;
    client->context = SSL_CTX_new(TLS_client_method());
    ERR_clear_error();
    if (client->context == NULL) {
        tls_fail(client, "TLS can't be started: out of memory");
        return client;
    }
    tls_set_up(client);
    if (!trust(client, settings) || !tls_show(client, settings)) {
        SSL_CTX_free(client->context);
        client->context = NULL;
    }
    return client;
}

void tls_client_free(struct tls_client **clientp) {
    struct tls_client *client = *clientp;
    *clientp = NULL;
    if (client == NULL)
        return;
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    SSL_SESSION_free(client->session);
    SSL_CTX_free(client->context);
    free(client->host);
    FREE_OBJ(client);
}

const char *tls_client_error(const struct tls_client *client) {
    return client->error;
}

/* Sets the host that the server's certificate must be for. An IP address is not sent as a server
 * name (RFC 6066 §3). */
static bool name_host(SSL *ssl, const char *host) {
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1)
        return true;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

struct tls_stream *tls_stream_new(struct tls_client *client, int fd) {
    struct tls_stream *stream;
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    if (client->context == NULL)
        return NULL;
    SSL *ssl = SSL_new(client->context);
    if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || !name_host(ssl, client->host)) {
        SSL_free(ssl);
        tls_fail(client, "TLS can't be started: out of memory");
        return NULL;
    }
    ERR_clear_error();
    ALLOC_OBJ(stream, TLS_STREAM_MAGIC);
    stream->client = client;
    stream->ssl = ssl;
    SSL_set_app_data(ssl, stream);
    if (client->session != NULL)
        SSL_set_session(ssl, client->session);
    return stream;
}

void tls_stream_free(struct tls_stream **streamp) {
    struct tls_stream *stream = *streamp;
    *streamp = NULL;
    if (stream == NULL)
        return;
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    if (stream->established && !stream->broken)
        SSL_shutdown(stream->ssl);
    ERR_clear_error();
    SSL_free(stream->ssl);
    FREE_OBJ(stream);
}

/* Says what is wrong with the server's certificate, and what to do. */
static void tell_of_certificate(struct tls_client *client, long result) {
    switch (result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        tls_fail(client, "its certificate is not for %s: use the name from the certificate in uri",
                 client->host);
        return;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        tls_fail(client, "the certificate of %s has expired: renew it on that host", client->host);
        return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        tls_fail(client, "the certificate of %s is not valid yet: check the clocks of both hosts",
                 client->host);
        return;
    default:
        tls_fail(client,
                 "the certificate of %s is not trusted (%s): set ca_file to the certificate of its "
                 "issuer",
                 client->host, X509_verify_cert_error_string(result));
    }
}

/* Says what the server's alert means for our certificate (RFC 8446 §6.2). With TLS 1.3 the alert
 * may come after the handshake. False: the alert is not about our certificate. */
static bool tell_of_ours(struct tls_client *client, int code) {
    switch (code) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        tls_fail(client, "it demands a certificate: set certificate and certificate_key");
        return true;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE: /* TLS 1.2 has no more exact alert */
        if (!client->shows)
            tls_fail(client, "it refuses the TLS handshake: if it demands a certificate, set "
                             "certificate and certificate_key");
        return !client->shows;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        tls_fail(client,
                 "it does not accept our certificate (%s): check certificate, and the authority "
                 "that the server trusts (c-icap: cafile and client_ca)",
                 reason());
        return client->shows;
    default: return false;
    }
}

static void tell_of_handshake(struct tls_stream *stream, int error) {
    struct tls_client *client = stream->client;
    long result = SSL_get_verify_result(stream->ssl);
    unsigned long code = ERR_peek_last_error();
    if (error == SSL_ERROR_SYSCALL || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        tls_fail(client, "it closed the connection in the TLS handshake");
    else if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED && result != X509_V_OK)
        tell_of_certificate(client, result);
    else if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER)
        tls_fail(client,
                 "it does not speak TLS at this port: use its port for TLS, or write icap://");
    else if (!tell_of_ours(client, ERR_GET_REASON(code)))
        tls_fail(client, "the TLS handshake failed: %s", reason());
}

static void tell_of_failure(struct tls_client *client, int error) {
    int code = ERR_GET_REASON(ERR_peek_last_error());
    if (error == SSL_ERROR_SYSCALL && errno != 0)
        tls_fail(client, "%s", strerrordesc_np(errno));
    else if (error == SSL_ERROR_SYSCALL || code == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        tls_fail(client, "it closed the connection without a close_notify of TLS");
    else if (!tell_of_ours(client, code))
        tls_fail(client, "TLS: %s", reason());
    errno = EPROTO;
}

/* The status of a read or write that moved no bytes. */
static enum io_status outcome(struct tls_stream *stream, int error, int expected) {
    switch (error) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: stream->crossed = error != expected; return IO_WAIT;
    case SSL_ERROR_ZERO_RETURN: return IO_END;
    default: break;
    }
    stream->broken = true;
    tell_of_failure(stream->client, error);
    return IO_FAILED;
}

/* Clears the error queue first. The whole thread shares it, so older errors of other streams would
 * be taken for errors of this one. */
static void tls_begin(struct tls_stream *stream) {
    CHECK_OBJ(stream, TLS_STREAM_MAGIC);
    ERR_clear_error();
    errno = 0;
    stream->crossed = false;
}

enum io_status tls_stream_handshake(struct tls_stream *stream) {
    tls_begin(stream);
    int result = SSL_connect(stream->ssl);
    if (result == 1) {
        stream->established = true;
        return IO_DONE;
    }
    int error = SSL_get_error(stream->ssl, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return IO_WAIT;
    tell_of_handshake(stream, error);
    return IO_FAILED;
}

enum io_status tls_stream_read(struct tls_stream *stream, char *buffer, size_t capacity,
                               size_t *got) {
    *got = 0;
    tls_begin(stream);
    if (SSL_read_ex(stream->ssl, buffer, capacity, got) == 1)
        return IO_DONE;
    return outcome(stream, SSL_get_error(stream->ssl, 0), SSL_ERROR_WANT_READ);
}

/* Copies the pieces into one record, up to TLS_PIECE bytes. The caller writes the rest with its
 * next call. */
static size_t tls_join(char *joined, const struct iovec *pieces, int count) {
    size_t length = 0;
    for (int i = 0; i < count && length < TLS_PIECE; i++) {
        size_t piece = pieces[i].iov_len;
        if (piece > TLS_PIECE - length)
            piece = TLS_PIECE - length;
        memcpy(joined + length, pieces[i].iov_base, piece);
        length += piece;
    }
    return length;
}

enum io_status tls_stream_write(struct tls_stream *stream, const struct iovec *pieces, int count,
                                size_t *put) {
    char joined[TLS_PIECE];
    const char *bytes = pieces->iov_base;
    size_t length = pieces->iov_len < TLS_PIECE ? pieces->iov_len : TLS_PIECE;
    *put = 0;
    tls_begin(stream);
    if (count > 1 && length < TLS_PIECE) {
        length = tls_join(joined, pieces, count);
        bytes = joined;
    }
    if (SSL_write_ex(stream->ssl, bytes, length, put) == 1)
        return IO_DONE;
    return outcome(stream, SSL_get_error(stream->ssl, 0), SSL_ERROR_WANT_WRITE);
}

bool tls_stream_is_crossed(const struct tls_stream *stream) {
    return stream->crossed;
}

const char *tls_stream_error(const struct tls_stream *stream) {
    return stream->client->error;
}
