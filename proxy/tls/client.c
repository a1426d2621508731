#include "tls/client.h"

#include "base/assert.h"
#include "tls/context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>

struct tls_client {
    unsigned magic;
#define TLS_CLIENT_MAGIC 0x715c11e0u
    SSL_CTX *context; /* NULL: it could not be made; error says why */
    SSL_SESSION *session;
    bool shows; /* we show a certificate to the server */
    char *host;
    char error[TLS_ERROR_MAX];
};

static void words(char text[TLS_ERROR_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void words(char text[TLS_ERROR_MAX], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, TLS_ERROR_MAX, format, arguments);
    va_end(arguments);
}

static const char *reason(void) {
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "unknown error";
}

/* Keeps the newest session for the next handshake. TLS 1.3 servers send several. */
static int on_session(SSL *ssl, SSL_SESSION *session) {
    struct tls_client *client;
    CAST_OBJ(client, SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)), TLS_CLIENT_MAGIC);
    SSL_SESSION_free(client->session);
    client->session = session;
    return 1;
}

static bool trust(struct tls_client *client, const struct tls_trust_settings *settings) {
    SSL_CTX_set_verify(client->context, settings->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (!settings->verify)
        return true;
    if (settings->ca_file == NULL)
        return SSL_CTX_set_default_verify_paths(client->context) == 1;
    if (SSL_CTX_load_verify_locations(client->context, settings->ca_file, NULL) == 1)
        return true;
    words(client->error, "ca_file %s can't be used (%s): it must hold certificates in PEM",
          settings->ca_file, reason());
    return false;
}

static bool tls_show(struct tls_client *client, const struct tls_trust_settings *settings) {
    if (settings->certificate == NULL)
        return true;
    if (SSL_CTX_use_certificate_chain_file(client->context, settings->certificate) != 1) {
        words(client->error, "certificate %s can't be used (%s): it must hold a certificate in PEM",
              settings->certificate, reason());
        return false;
    }
    if (SSL_CTX_use_PrivateKey_file(client->context, settings->certificate_key, SSL_FILETYPE_PEM) ==
            1 &&
        SSL_CTX_check_private_key(client->context) == 1)
        return true;
    words(client->error,
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
    SSL_CTX_set_app_data(client->context, client);
    if (!client->shows)
        tls_resume(client->context);
}

struct tls_client *tls_client_new(const struct tls_trust_settings *settings, struct slice host) {
    struct tls_client *client;
    ALLOC_OBJ(client, TLS_CLIENT_MAGIC);
    client->host = slice_dup(host);
    client->shows = settings->certificate != NULL;
    ERR_clear_error();
    client->context = tls_context_new(TLS_client_method());
    if (client->context == NULL) {
        words(client->error, "TLS can't be started: out of memory");
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

SSL *tls_client_open(struct tls_client *client) {
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    if (client->context == NULL)
        return NULL;
    SSL *ssl = SSL_new(client->context);
    if (ssl == NULL || !name_host(ssl, client->host)) {
        SSL_free(ssl);
        words(client->error, "TLS can't be started: out of memory");
        return NULL;
    }
    SSL_set_connect_state(ssl);
    if (client->session != NULL)
        SSL_set_session(ssl, client->session);
    return ssl;
}

void tls_client_note_error(struct tls_client *client, const char *text) {
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    snprintf(client->error, sizeof client->error, "%s", text);
}

/* Says what is wrong with the server's certificate, and what to do. */
static void tell_of_certificate(const struct tls_client *client, long result,
                                char text[TLS_ERROR_MAX]) {
    switch (result) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        words(text, "its certificate is not for %s: use the name from the certificate in uri",
              client->host);
        return;
    case X509_V_ERR_CERT_HAS_EXPIRED:
        words(text, "the certificate of %s has expired: renew it on that host", client->host);
        return;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        words(text, "the certificate of %s is not valid yet: check the clocks of both hosts",
              client->host);
        return;
    default:
        words(text,
              "the certificate of %s is not trusted (%s): set ca_file to the certificate of its "
              "issuer",
              client->host, X509_verify_cert_error_string(result));
    }
}

/* Says what the server's alert means for our certificate (RFC 8446 §6.2). With TLS 1.3 the alert
 * may come after the handshake. False: the alert is not about our certificate. */
static bool tell_of_ours(const struct tls_client *client, int code, char text[TLS_ERROR_MAX]) {
    switch (code) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        words(text, "it demands a certificate: set certificate and certificate_key");
        return true;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE: /* TLS 1.2 has no more exact alert */
        if (!client->shows)
            words(text, "it refuses the TLS handshake: if it demands a certificate, set "
                        "certificate and certificate_key");
        return !client->shows;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        words(text,
              "it does not accept our certificate (%s): check certificate, and the authority "
              "that the server trusts (c-icap: cafile and client_ca)",
              reason());
        return client->shows;
    default: return false;
    }
}

bool tls_client_explain(const struct tls_client *client, SSL *ssl, char text[TLS_ERROR_MAX]) {
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    unsigned long code = ERR_peek_last_error();
    long result = SSL_get_verify_result(ssl);
    if (ERR_GET_LIB(code) != ERR_LIB_SSL)
        return false;
    switch (ERR_GET_REASON(code)) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        if (result != X509_V_OK)
            tell_of_certificate(client, result, text);
        return result != X509_V_OK;
    case SSL_R_WRONG_VERSION_NUMBER:
        if (SSL_is_init_finished(ssl))
            return false;
        words(text, "it does not speak TLS at this port: use its port for TLS, or write icap://");
        return true;
    default: return tell_of_ours(client, ERR_GET_REASON(code), text);
    }
}
