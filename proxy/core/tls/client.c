#include "tls/client.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "tls/certificate_text.h"
#include "tls/verify.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* SESSIONS: those kept for connections that begin at the same time. SESSION_MOST, in milliseconds:
 * a session does not prove for longer that the server has the key of a good certificate. */
enum { SESSIONS = 4, SESSION_MOST = 3600 * 1000, PROTOCOL_MOST = 32 };

struct tls_client {
    unsigned magic;
#define TLS_CLIENT_MAGIC 0x715c11e0u
    unsigned references;
    struct tls_trust *trust;
    SSL_SESSION *sessions[SESSIONS]; /* the newest is the last */
    unsigned session_count;
    uint64_t verified_at; /* of the last whole handshake */
    int64_t expires; /* when the certificate of that handshake expires, in seconds since 1970 */
    unsigned char protocols[PROTOCOL_MOST]; /* each: its length, and the name (RFC 7301 §3.1) */
    unsigned protocols_length;
    bool asked; /* see tls_client_was_asked */
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

static pthread_once_t index_once = PTHREAD_ONCE_INIT;
static int client_index; /* of the client in the data of an SSL */

static void make_index(void) {
    client_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    ASSERT(client_index >= 0);
}

static void forget_sessions(struct tls_client *client) {
    while (client->session_count > 0)
        SSL_SESSION_free(client->sessions[--client->session_count]);
}

static void drop_session(struct tls_client *client, unsigned at) {
    SSL_SESSION_free(client->sessions[at]);
    client->session_count--;
    memmove(&client->sessions[at], &client->sessions[at + 1],
            (client->session_count - at) * sizeof client->sessions[0]);
}

static bool is_for_one_use(SSL_SESSION *session) {
    return SSL_SESSION_get_protocol_version(session) == TLS1_3_VERSION;
}

static int64_t expiry_of(const X509 *certificate) {
    return certificate != NULL ? certificate_text_expiry(certificate) : 0;
}

/* A session of TLS 1.2 resumes any number of connections, so one is enough. A copy is kept: OpenSSL
 * lets the connection's own resume nothing more when a server closes without a close_notify, which
 * RFC 5246 §7.2.1 does not ask for: "failure to properly close a connection no longer requires that
 * a session not be resumed". */
static int on_session(SSL *ssl, SSL_SESSION *session) {
    struct tls_client *client;
    CAST_OBJ(client, SSL_get_ex_data(ssl, client_index), TLS_CLIENT_MAGIC);
    if (SSL_session_reused(ssl) != 1) {
        client->verified_at = clocks_milliseconds(CLOCK_MONOTONIC);
        client->expires = expiry_of(SSL_get0_peer_certificate(ssl));
    }
    SSL_SESSION *copy = SSL_SESSION_dup(session);
    if (copy == NULL)
        return 0;
    if (!is_for_one_use(copy))
        forget_sessions(client);
    if (client->session_count == SESSIONS)
        drop_session(client, 0);
    client->sessions[client->session_count++] = copy;
    return 0;
}

/* RFC 5246 §7.2.2: "clients MUST forget any session-identifiers, keys, and secrets associated with
 * a failed connection"; a server may also fail because of what it is offered. To the end of a
 * connection without a close_notify OpenSSL says decode_error as well, which is no failure once the
 * handshake is complete. The version of the connection is not known before the ServerHello. */
static void on_alert(const SSL *ssl, int where, int what) {
    bool fatal = (where & SSL_CB_ALERT) != 0 && what >> 8 == SSL3_AL_FATAL;
    bool of_end = (where & SSL_CB_WRITE) != 0 && (what & 0xff) == SSL_AD_DECODE_ERROR &&
                  SSL_get_state(ssl) == TLS_ST_OK;
    struct tls_client *client = SSL_get_ex_data(ssl, client_index);
    if (fatal && !of_end && client != NULL && client->session_count > 0 &&
        !is_for_one_use(client->sessions[client->session_count - 1]))
        forget_sessions(client);
}

/* A ticket of TLS 1.3 is used once, so that nobody on the way can see that two connections come
 * from the same client (RFC 8446 Appendix C.4). */
static void tls_client_resume(struct tls_client *client, SSL *ssl) {
    if (clocks_milliseconds(CLOCK_MONOTONIC) - client->verified_at > SESSION_MOST ||
        time(NULL) >= client->expires)
        forget_sessions(client);
    if (client->session_count == 0)
        return;
    SSL_SESSION *newest = client->sessions[client->session_count - 1];
    if (is_for_one_use(newest)) {
        SSL_set_session(ssl, newest);
        drop_session(client, client->session_count - 1);
    } else {
        SSL_SESSION *copy = SSL_SESSION_dup(newest);
        SSL_set_session(ssl, copy);
        SSL_SESSION_free(copy);
    }
}

void tls_client_prepare(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(context, on_session);
    SSL_CTX_set_info_callback(context, on_alert);
}

/* Without the dots at its end, which only mark it as complete. */
static char *copy_host(struct slice host) {
    while (host.length > 0 && host.base[host.length - 1] == '.')
        host.length--;
    return slice_dup(host);
}

/* Writes the names, which stand apart by commas, as ALPN has them. */
static void write_protocols(struct tls_client *client, const char *names) {
    size_t length = names == NULL ? 0 : strlen(names), begin = 0;
    ASSERT(length + 1 < PROTOCOL_MOST);
    for (size_t i = 0; length > 0 && i <= length; i++) {
        bool ends = i == length || names[i] == ',';
        client->protocols[i + 1] = (unsigned char)names[i];
        if (!ends)
            continue;
        client->protocols[begin] = (unsigned char)(i - begin);
        begin = i + 1;
    }
    client->protocols_length = (unsigned)begin;
}

struct tls_client *tls_client_of(struct tls_trust *trust, struct slice host,
                                 const char *protocols) {
    struct tls_client *client;
    pthread_once(&index_once, make_index);
    ALLOC_OBJ(client, TLS_CLIENT_MAGIC);
    client->references = 1;
    client->trust = tls_trust_take(trust);
    client->host = copy_host(host);
    write_protocols(client, protocols);
    tls_client_note_error(client, tls_trust_error(trust));
    return client;
}

struct tls_client *tls_client_new(const struct tls_trust_settings *settings, struct slice host) {
    struct tls_trust *trust = tls_trust_new(settings);
    struct tls_client *client = tls_client_of(trust, host, NULL);
    tls_trust_release(&trust);
    return client;
}

struct tls_client *tls_client_take(struct tls_client *client) {
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    client->references++;
    return client;
}

void tls_client_release(struct tls_client **clientp) {
    struct tls_client *client = *clientp;
    *clientp = NULL;
    if (client == NULL)
        return;
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    if (--client->references > 0)
        return;
    forget_sessions(client);
    tls_trust_release(&client->trust);
    free(client->host);
    FREE_OBJ(client);
}

bool tls_client_was_asked(const struct tls_client *client) {
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    return client->asked;
}

const char *tls_client_error(const struct tls_client *client) {
    return client->error;
}

/* An IP address is not sent as a server name (RFC 6066 §3). */
static bool name_host(const struct tls_client *client, SSL *ssl) {
    unsigned char address[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, client->host, address) == 1 ||
        inet_pton(AF_INET6, client->host, address) == 1)
        return true;
    return SSL_set_tlsext_host_name(ssl, client->host) == 1;
}

/* A server that speaks several protocols then knows which one comes (RFC 9325 §3.7). */
static bool name_protocols(const struct tls_client *client, SSL *ssl) {
    return client->protocols_length == 0 ||
           SSL_set_alpn_protos(ssl, client->protocols, client->protocols_length) == 0;
}

/* The server wants a certificate. It gets the one of the trust, if there is one. */
static int on_certificate_request(SSL *ssl, void *arg) {
    struct tls_client *client;
    (void)ssl;
    CAST_OBJ(client, arg, TLS_CLIENT_MAGIC);
    client->asked = !tls_trust_shows(client->trust);
    return 1;
}

SSL *tls_client_open(struct tls_client *client) {
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    SSL_CTX *context = tls_trust_context(client->trust);
    SSL *ssl = context != NULL ? SSL_new(context) : NULL;
    if (context == NULL)
        return NULL;
    if (ssl == NULL || SSL_set_ex_data(ssl, client_index, client) != 1 || !name_host(client, ssl) ||
        !name_protocols(client, ssl) ||
        (tls_trust_verifies(client->trust) && !tls_verify_begin(ssl, client->host))) {
        SSL_free(ssl);
        tls_client_note_error(client, "TLS can't be started: out of memory");
        return NULL;
    }
    client->asked = false;
    SSL_set_cert_cb(ssl, on_certificate_request, client);
    SSL_set_connect_state(ssl);
    tls_client_resume(client, ssl);
    return ssl;
}

void tls_client_note_error(struct tls_client *client, const char *text) {
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    snprintf(client->error, sizeof client->error, "%s", text);
}

/* Says what the server's alert means for our certificate (RFC 8446 §6.2). With TLS 1.3 the alert
 * may come after the handshake. False: the alert is not about our certificate. */
static bool tell_of_ours(const struct tls_client *client, int code, char text[TLS_ERROR_MAX]) {
    switch (code) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        words(text, "it demands a certificate: set certificate and certificate_key");
        return true;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE: /* TLS 1.2 has no more exact alert */
        if (!tls_trust_shows(client->trust))
            words(text, "it refuses the TLS handshake: if it demands a certificate, set "
                        "certificate and certificate_key");
        return !tls_trust_shows(client->trust);
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
        return tls_trust_shows(client->trust);
    default: return false;
    }
}

/* What the server offers is too weak, or too old. */
static bool tell_of_weakness(int code, char text[TLS_ERROR_MAX]) {
    switch (code) {
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_NO_PROTOCOLS_AVAILABLE:
        words(text, "it does not speak TLS in a version that min_version allows: switch on TLS 1.2 "
                    "and TLS 1.3 on that host");
        return true;
    case SSL_R_DH_KEY_TOO_SMALL:
        words(text, "its key exchange is too weak (DH needs 2048 bits): switch on ECDHE on that "
                    "host");
        return true;
    case SSL_R_EE_KEY_TOO_SMALL:
        words(text, "the key of its certificate is too weak (RSA needs 2048 bits): get a new "
                    "certificate for that host");
        return true;
    case SSL_R_CA_MD_TOO_WEAK:
        words(text, "its certificate is signed with a digest that is too weak: get a new "
                    "certificate for that host");
        return true;
    default: return false;
    }
}

bool tls_client_explain(const struct tls_client *client, SSL *ssl, char text[TLS_ERROR_MAX]) {
    CHECK_OBJ(client, TLS_CLIENT_MAGIC);
    unsigned long code = ERR_peek_last_error();
    const char *error = tls_verify_error(ssl);
    if (error[0] != '\0' && !SSL_is_init_finished(ssl)) {
        words(text, "%s", error);
        return true;
    }
    if (ERR_GET_LIB(code) != ERR_LIB_SSL)
        return false;
    if (ERR_GET_REASON(code) == SSL_R_WRONG_VERSION_NUMBER && !SSL_is_init_finished(ssl)) {
        words(text, "it does not speak TLS at this port: use its port for TLS, or write "
                    "http:// (for a service icap://)");
        return true;
    }
    return tell_of_weakness(ERR_GET_REASON(code), text) ||
           tell_of_ours(client, ERR_GET_REASON(code), text);
}
