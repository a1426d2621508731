#include "tls/server.h"

#include "base/assert.h"
#include "base/clocks.h"
#include "base/failure.h"
#include "tls/context.h"
#include "tls/verify.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

enum { SERVER_ERROR_MAX = 400, DIGEST = 32, NAME_MOST = 255 };

/* Of TLS 1.2 those that browsers use: forward secrecy and AEAD. AES with 128 bits is faster, and
 * strong enough. */
static const char default_ciphers[] = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                                      "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                                      "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char default_ciphersuites[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
static const char default_groups[] = "X25519:P-256:P-384";

/* The protocols of ALPN (RFC 7301), the best one first: each with its length before it. */
static const unsigned char protocols[] = "\x02h2\x08http/1.1\x08http/1.0";
enum { HTTP2_PROTOCOL = 3 /* bytes of the first one */ };

struct tls_server {
    unsigned magic;
#define TLS_SERVER_MAGIC 0x715c5e4eu
    unsigned references;
    SSL_CTX *context; /* NULL: it could not be made; error says why */
    struct certificate_set *certificates;
    struct ticket_keys *tickets;
    bool refuse_unknown_names, http2;
    unsigned char policy[DIGEST];
    char error[SERVER_ERROR_MAX];
};

static struct tls_server *server_of(SSL *ssl) {
    struct tls_server *server;
    CAST_OBJ(server, SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)), TLS_SERVER_MAGIC);
    return server;
}

/* Writes a digest of a policy and of what belongs to it. */
static void note_digest(unsigned char digest[DIGEST], const void *first, size_t first_length,
                        const void *second, size_t second_length) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ASSERT(context != NULL);
    EVP_DigestInit_ex(context, algorithm_sha256(), NULL);
    EVP_DigestUpdate(context, first, first_length);
    EVP_DigestUpdate(context, second, second_length);
    EVP_DigestFinal_ex(context, digest, NULL);
    EVP_MD_CTX_free(context);
}

/* What decides whom a connection trusts, but for the name, which each connection adds. */
static void note_policy(struct tls_server *server, const struct tls_server_settings *settings) {
    const char *policy = settings->policy != NULL ? settings->policy : "";
    unsigned char own[1 + CLIENT_AUTHORITY_DIGEST] = {(unsigned char)settings->client_certificate};
    if (settings->client_authority != NULL)
        memcpy(own + 1, client_authority_digest(settings->client_authority),
               CLIENT_AUTHORITY_DIGEST);
    note_digest(server->policy, policy, strlen(policy) + 1, own, sizeof own);
}

/* Writes the name of the extension server_name (RFC 6066 §3) in lower case, and returns its length.
 * 0: there is none, or it is malformed, which OpenSSL answers itself later. */
static size_t read_name(SSL *ssl, char name[NAME_MOST]) {
    enum { HEAD = 5 }; /* length of the list, kind of the name, length of the name */
    const unsigned char *bytes;
    size_t length;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &bytes, &length) != 1 ||
        length <= HEAD || length > HEAD + NAME_MOST || bytes[2] != TLSEXT_NAMETYPE_host_name ||
        (size_t)(bytes[3] << 8 | bytes[4]) != length - HEAD)
        return 0;
    for (size_t i = 0; i < length - HEAD; i++) {
        char byte = (char)bytes[HEAD + i];
        name[i] = byte >= 'A' && byte <= 'Z' ? (char)(byte + 'a' - 'A') : byte;
    }
    return length - HEAD;
}

static bool server_show(SSL *ssl, const struct certificate_choice *choice) {
    SSL_certs_clear(ssl);
    for (int kind = 0; kind < CERTIFICATE_KINDS; kind++) {
        const struct certificate *certificate = choice->of[kind];
        if (certificate != NULL && SSL_use_cert_and_key(ssl, certificate->leaf, certificate->key,
                                                        certificate->chain, 1) != 1)
            return false;
    }
    return true;
}

/* Chooses the certificate before OpenSSL looks at the ticket, because the name decides whether the
 * ticket may be used. */
static int server_on_hello(SSL *ssl, int *alert, void *arg) {
    struct tls_server *server = server_of(ssl);
    char name[NAME_MOST];
    unsigned char digest[DIGEST];
    size_t length = read_name(ssl, name);
    (void)arg;
    note_digest(digest, server->policy, sizeof server->policy, name, length);
    SSL_set_session_id_context(ssl, digest, sizeof digest);
    if (server->certificates == NULL || length == 0)
        return SSL_CLIENT_HELLO_SUCCESS;
    const struct certificate_choice *choice =
        certificate_set_find(server->certificates, slice_make(name, length));
    if (choice == NULL && server->refuse_unknown_names) {
        *alert = SSL_AD_UNRECOGNIZED_NAME;
        return SSL_CLIENT_HELLO_ERROR;
    }
    bool shown = choice == NULL || choice == certificate_set_default(server->certificates) ||
                 server_show(ssl, choice);
    *alert = SSL_AD_INTERNAL_ERROR;
    return shown ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
}

/* Makes OpenSSL keep the name in the session, so that a connection that goes on knows it. */
static int server_on_name(SSL *ssl, int *alert, void *arg) {
    (void)ssl;
    (void)alert;
    (void)arg;
    return SSL_TLSEXT_ERR_OK;
}

/* RFC 9113 §9.2.2: HTTP/2 needs an ephemeral key exchange and a cipher with AEAD, which all ciphers
 * of TLS 1.3 are. Appendix A lists the others. */
static bool cipher_allows_http2(SSL *ssl) {
    const SSL_CIPHER *cipher = SSL_get_pending_cipher(ssl);
    if (SSL_version(ssl) >= TLS1_3_VERSION)
        return true;
    if (cipher == NULL || !SSL_CIPHER_is_aead(cipher))
        return false;
    int exchange = SSL_CIPHER_get_kx_nid(cipher);
    return exchange == NID_kx_ecdhe || exchange == NID_kx_dhe;
}

/* OpenSSL calls this when it has chosen the version and the cipher. */
static int server_on_protocols(SSL *ssl, const unsigned char **chosen, unsigned char *length,
                               const unsigned char *offered, unsigned offered_length, void *arg) {
    unsigned char *protocol;
    size_t skipped = server_of(ssl)->http2 && cipher_allows_http2(ssl) ? 0 : HTTP2_PROTOCOL;
    (void)arg;
    if (SSL_select_next_proto(&protocol, length, protocols + skipped,
                              (unsigned)(sizeof protocols - 1 - skipped), offered,
                              offered_length) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *chosen = protocol;
    return SSL_TLSEXT_ERR_OK;
}

static int server_on_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv,
                                EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int protect) {
    int64_t now = (int64_t)(clocks_milliseconds(CLOCK_BOOTTIME) / 1000);
    return ticket_keys_use(server_of(ssl)->tickets, now, name, iv, cipher, mac, protect);
}

static int server_on_new_ticket(SSL *ssl, void *arg) {
    (void)ssl;
    (void)arg;
    return 1;
}

/* A session must not outlive the client's certificate. With TLS 1.3 each connection gets a new ticket,
 * because clients use a ticket only once (RFC 8446 appendix C.4). */
static SSL_TICKET_RETURN server_on_ticket(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
                                          size_t name_length, SSL_TICKET_STATUS status, void *arg) {
    (void)name;
    (void)name_length;
    (void)arg;
    if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    X509 *certificate = SSL_SESSION_get0_peer(session);
    if (certificate != NULL && X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        return SSL_TICKET_RETURN_IGNORE_RENEW;
    return status == SSL_TICKET_SUCCESS && SSL_version(ssl) < TLS1_3_VERSION
               ? SSL_TICKET_RETURN_USE
               : SSL_TICKET_RETURN_USE_RENEW;
}

static void set_tickets(struct tls_server *server) {
    SSL_CTX *context = server->context;
    if (server->tickets == NULL) {
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(context, 0);
        return;
    }
    SSL_CTX_set_num_tickets(context, 1);
    SSL_CTX_set_timeout(context, TICKET_KEYS_LIFETIME);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(context, server_on_ticket_key);
    SSL_CTX_set_session_ticket_cb(context, server_on_new_ticket, server_on_ticket, NULL);
}

static void set_callbacks(SSL_CTX *context) {
    SSL_CTX_set_client_hello_cb(context, server_on_hello, NULL);
    SSL_CTX_set_tlsext_servername_callback(context, server_on_name);
    SSL_CTX_set_alpn_select_cb(context, server_on_protocols, NULL);
}

static void set_client_certificate(SSL_CTX *context, const struct tls_server_settings *settings) {
    if (settings->client_certificate == CLIENT_CERTIFICATE_OFF)
        return;
    bool required = settings->client_certificate == CLIENT_CERTIFICATE_REQUIRED;
    client_authority_apply(settings->client_authority, context);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       NULL);
}

static bool server_fail(struct tls_server *server, const char *option, const char *value) {
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return failure(server->error, sizeof server->error,
                   "%s: OpenSSL does not accept \"%.200s\" (%s)", option, value,
                   reason != NULL ? reason : "unknown error");
}

static bool set_algorithms(struct tls_server *server, const struct tls_server_settings *settings) {
    SSL_CTX *context = server->context;
    const char *ciphers = settings->ciphers != NULL ? settings->ciphers : default_ciphers;
    const char *suites =
        settings->ciphersuites != NULL ? settings->ciphersuites : default_ciphersuites;
    const char *groups = settings->groups != NULL ? settings->groups : default_groups;
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    if (settings->ktls)
        SSL_CTX_set_options(context, SSL_OP_ENABLE_KTLS);
    if (SSL_CTX_set_cipher_list(context, ciphers) != 1)
        return server_fail(server, "ciphers", ciphers);
    if (SSL_CTX_set_ciphersuites(context, suites) != 1)
        return server_fail(server, "ciphersuites", suites);
    if (SSL_CTX_set1_groups_list(context, groups) != 1)
        return server_fail(server, "groups", groups);
    if (settings->min_version == TLS_VERSION_1_3)
        SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    return true;
}

static bool set_default_certificates(struct tls_server *server) {
    if (server->certificates == NULL)
        return true;
    const struct certificate_choice *choice = certificate_set_default(server->certificates);
    for (int kind = 0; kind < CERTIFICATE_KINDS; kind++) {
        const struct certificate *certificate = choice->of[kind];
        if (certificate != NULL &&
            SSL_CTX_use_cert_and_key(server->context, certificate->leaf, certificate->key,
                                     certificate->chain, 1) != 1)
            return server_fail(server, "certificates", certificate->file);
    }
    return true;
}

static bool server_set_up(struct tls_server *server, const struct tls_server_settings *settings) {
    SSL_CTX_set_app_data(server->context, server);
    SSL_CTX_set_session_id_context(server->context, server->policy, sizeof server->policy);
    set_callbacks(server->context);
    if (settings->staples && tls_pki() != NULL)
        tls_pki()->staple(server->context);
    set_tickets(server);
    set_client_certificate(server->context, settings);
    return set_algorithms(server, settings) && set_default_certificates(server);
}

struct tls_server *tls_server_new(const struct tls_server_settings *settings) {
    struct tls_server *server;
    ALLOC_OBJ(server, TLS_SERVER_MAGIC);
    server->references = 1;
    server->refuse_unknown_names = settings->refuse_unknown_names;
    server->http2 = settings->http2;
    if (settings->certificates != NULL)
        server->certificates = certificate_set_reference(settings->certificates);
    if (settings->tickets != NULL)
        server->tickets = ticket_keys_reference(settings->tickets);
    note_policy(server, settings);
    ERR_clear_error();
    server->context = tls_context_new(TLS_server_method());
    if (server->context == NULL) {
        snprintf(server->error, sizeof server->error, "TLS can't be started: out of memory");
    } else if (!server_set_up(server, settings)) {
        SSL_CTX_free(server->context);
        server->context = NULL;
    }
    ERR_clear_error();
    return server;
}

struct tls_server *tls_server_take(struct tls_server *server) {
    CHECK_OBJ(server, TLS_SERVER_MAGIC);
    server->references++;
    return server;
}

void tls_server_release(struct tls_server **serverp) {
    struct tls_server *server = *serverp;
    *serverp = NULL;
    if (server == NULL)
        return;
    CHECK_OBJ(server, TLS_SERVER_MAGIC);
    if (--server->references > 0)
        return;
    SSL_CTX_free(server->context);
    certificate_set_release(&server->certificates);
    ticket_keys_release(&server->tickets);
    FREE_OBJ(server);
}

const char *tls_server_error(const struct tls_server *server) {
    return server->error;
}

SSL *tls_server_open(struct tls_server *server) {
    CHECK_OBJ(server, TLS_SERVER_MAGIC);
    SSL *ssl = server->context != NULL ? SSL_new(server->context) : NULL;
    if (ssl != NULL)
        SSL_set_accept_state(ssl);
    return ssl;
}

enum tls_failure tls_server_failure(void) {
    switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return TLS_FAILURE_CERTIFICATE;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SHARED_GROUPS:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
    case SSL_R_INAPPROPRIATE_FALLBACK:
    case SSL_R_CALLBACK_FAILED: return TLS_FAILURE_MISMATCH;
    default: return TLS_FAILURE_OTHER;
    }
}

const char *tls_server_explain(SSL *ssl) {
    long result = SSL_get_verify_result(ssl);
    switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return "the client showed no certificate, which client_certificate = required demands";
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return X509_verify_cert_error_string(result);
    case SSL_R_CALLBACK_FAILED: return "no certificate is for the name that the client asks for";
    default: return NULL;
    }
}
