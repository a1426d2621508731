#include "tls/mhd_tls.h"

#include "base/assert.h"
#include "tls/certificate_names.h"
#include "tls/certificate_text.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* As tls/server.h has it, in the words of GnuTLS. */
#define COMMON_PRIORITY                                                                            \
    "SECURE128:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:"             \
    "+CHACHA20-POLY1305:-MAC-ALL:+AEAD:-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:"                 \
    "+GROUP-SECP384R1:%SERVER_PRECEDENCE:-VERS-ALL:+VERS-TLS1.3"

enum { CHAIN_MOST = 16, SECURITY_LEVEL = 2 };

struct mhd_tls {
    unsigned magic;
#define MHD_TLS_MAGIC 0x6d544c53u
    _Atomic unsigned references;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priority;
    struct certificate_set *certificates;
    uint64_t number; /* the later it was made, the larger */
    enum client_certificate client_certificate;
    struct client_authority *authority; /* NULL: clients are not asked for certificates */
    X509_STORE *store;                  /* of the authority */
};

struct mhd_tls_session {
    unsigned magic;
#define MHD_TLS_SESSION_MAGIC 0x6d545353u
    struct mhd_tls *tls;
    int fd;
    bool begun; /* bytes have come */
    bool idle;  /* the last read found nothing */
    bool gone;  /* the client has closed the connection */
    enum mhd_tls_end end;
    const char *reason; /* lives for ever */
    char *subject;      /* NULL: no certificate */
    /* What the client has shown, to verify it again; NULL: none. */
    X509 *leaf;
    struct stack_st_X509 *chain;
};

/* Certificates. */

static gnutls_datum_t datum_of(unsigned char *bytes, int length) {
    return (gnutls_datum_t){.data = bytes, .size = (unsigned)length};
}

static bool import_one(gnutls_pcert_st *to, X509 *certificate) {
    unsigned char *der = NULL;
    int length = i2d_X509(certificate, &der);
    const gnutls_datum_t datum = datum_of(der, length);
    bool good = length > 0 && gnutls_pcert_import_x509_raw(to, &datum, GNUTLS_X509_FMT_DER, 0) == 0;
    OPENSSL_free(der);
    return good;
}

static void drop_chain(gnutls_pcert_st *chain, int count) {
    for (int i = 0; i < count; i++)
        gnutls_pcert_deinit(&chain[i]);
}

/* The leaf, and those of its issuers that the file has; 0: not all can be taken. */
static int import_chain(gnutls_pcert_st chain[CHAIN_MOST], const struct certificate *certificate) {
    const int issuers = sk_X509_num(certificate->chain);
    int count = 0;
    if (issuers >= CHAIN_MOST || !import_one(&chain[count], certificate->leaf))
        return 0;
    for (count = 1; count <= issuers; count++)
        if (!import_one(&chain[count], sk_X509_value(certificate->chain, count - 1))) {
            drop_chain(chain, count);
            return 0;
        }
    return count;
}

static gnutls_privkey_t import_key(EVP_PKEY *from) {
    gnutls_privkey_t key = NULL;
    unsigned char *pem;
    BIO *bio = BIO_new(BIO_s_mem()); /* which wipes its bytes */
    ASSERT(bio != NULL);
    PEM_write_bio_PKCS8PrivateKey(bio, from, NULL, NULL, 0, NULL, NULL);
    const long length = BIO_get_mem_data(bio, &pem);
    const gnutls_datum_t datum = datum_of(pem, (int)length);
    if (gnutls_privkey_init(&key) == 0 &&
        gnutls_privkey_import_x509_raw(key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0) != 0) {
        gnutls_privkey_deinit(key);
        key = NULL;
    }
    BIO_free(bio);
    return key;
}

/* GnuTLS owns the chain and the key when it has taken them. */
static bool add_certificate(struct mhd_tls *tls, const struct certificate *certificate) {
    gnutls_pcert_st *chain = gnutls_calloc(CHAIN_MOST, sizeof *chain);
    ASSERT(chain != NULL);
    int count = import_chain(chain, certificate);
    gnutls_privkey_t key = import_key(certificate->key);
    if (count > 0 && key != NULL &&
        gnutls_certificate_set_key(tls->credentials, (const char **)certificate->names,
                                   (int)certificate->name_count, chain, count, key) >= 0) {
        gnutls_free(chain);
        return true;
    }
    drop_chain(chain, count);
    gnutls_free(chain);
    if (key != NULL)
        gnutls_privkey_deinit(key);
    return false;
}

static bool add_certificates(struct mhd_tls *tls, char *error) {
    for (size_t i = 0; i < certificate_set_count(tls->certificates); i++) {
        const struct certificate *certificate = certificate_set_at(tls->certificates, i);
        if (add_certificate(tls, certificate))
            continue;
        snprintf(error, PEM_FILE_ERROR,
                 "%s: GnuTLS can't use it for the admin plane: take a certificate with a key of "
                 "ECDSA P-256 or RSA 2048, and leave issuers out that clients know",
                 certificate->file);
        return false;
    }
    return true;
}

/* The client's certificate. */

/* The session of ours that GnuTLS calls about. */
static struct mhd_tls_session *mhd_tls_session_of(gnutls_session_t of) {
    struct mhd_tls_session *session;
    CAST_OBJ(session, gnutls_transport_get_ptr(of), MHD_TLS_SESSION_MAGIC);
    return session;
}

static gnutls_alert_description_t alert_of(int result) {
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: return GNUTLS_A_CERTIFICATE_EXPIRED;
    case X509_V_ERR_CERT_REVOKED: return GNUTLS_A_CERTIFICATE_REVOKED;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY: return GNUTLS_A_UNKNOWN_CA;
    case X509_V_ERR_INVALID_PURPOSE: return GNUTLS_A_UNSUPPORTED_CERTIFICATE;
    default: return GNUTLS_A_BAD_CERTIFICATE;
    }
}

static int refuse_certificate(struct mhd_tls_session *session, gnutls_session_t of,
                              gnutls_alert_description_t alert, const char *reason) {
    session->end = MHD_TLS_CERTIFICATE;
    session->reason = reason;
    gnutls_alert_send(of, GNUTLS_AL_FATAL, alert);
    return GNUTLS_E_CERTIFICATE_ERROR;
}

static X509 *mhd_tls_read_certificate(const gnutls_datum_t *from) {
    const unsigned char *der = from->data;
    return d2i_X509(NULL, &der, (long)from->size);
}

/* X509_V_OK, or the first thing that is wrong. */
static int verify_chain(const struct mhd_tls *tls, X509 *leaf, struct stack_st_X509 *chain) {
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    ASSERT(context != NULL);
    int result = X509_V_ERR_UNSPECIFIED;
    if (X509_STORE_CTX_init(context, tls->store, leaf, chain) == 1) {
        X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_CLIENT);
        X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context), SECURITY_LEVEL);
        result = X509_verify_cert(context) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(context);
    }
    X509_STORE_CTX_free(context);
    return result;
}

static void drop_certificate(struct mhd_tls_session *session) {
    free(session->subject);
    X509_free(session->leaf);
    sk_X509_pop_free(session->chain, X509_free);
    session->subject = NULL;
    session->leaf = NULL;
    session->chain = NULL;
}

/* Both belong to the session then. */
static void keep_certificate(struct mhd_tls_session *session, X509 *leaf,
                             struct stack_st_X509 *chain) {
    drop_certificate(session);
    session->subject = certificate_text_name(X509_get_subject_name(leaf));
    session->leaf = leaf;
    session->chain = chain;
}

static int verify_shown(struct mhd_tls_session *session, gnutls_session_t of,
                        const gnutls_datum_t *shown, unsigned count) {
    struct stack_st_X509 *chain = sk_X509_new_null();
    X509 *leaf = mhd_tls_read_certificate(&shown[0]);
    int result = X509_V_ERR_UNSPECIFIED;
    for (unsigned i = 1; i < count; i++) {
        X509 *issuer = mhd_tls_read_certificate(&shown[i]);
        if (issuer != NULL)
            sk_X509_push(chain, issuer);
    }
    if (leaf != NULL && count <= CHAIN_MOST)
        result = verify_chain(session->tls, leaf, chain);
    if (result == X509_V_OK) {
        keep_certificate(session, leaf, chain);
        return 0;
    }
    sk_X509_pop_free(chain, X509_free);
    X509_free(leaf);
    return refuse_certificate(session, of, alert_of(result), X509_verify_cert_error_string(result));
}

/* GnuTLS calls this in the handshake, also when the client shows no certificate. It checks by itself
 * that the client has the key. */
static int on_certificate(gnutls_session_t of) {
    struct mhd_tls_session *session = mhd_tls_session_of(of);
    unsigned count = 0;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(of, &count);
    if (shown != NULL && count > 0)
        return verify_shown(session, of, shown, count);
    if (session->tls->client_certificate != CLIENT_CERTIFICATE_REQUIRED)
        return 0;
    return refuse_certificate(session, of, GNUTLS_A_CERTIFICATE_REQUIRED,
                              "it showed no certificate, which admin.client_certificate = required "
                              "demands");
}

/* Makes and ends. */

static void name_authorities(struct mhd_tls *tls) {
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(tls->store);
    for (int i = 0; i < sk_X509_OBJECT_num(objects); i++) {
        X509 *authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
        unsigned char *der = NULL;
        int length = authority == NULL ? 0 : i2d_X509(authority, &der);
        const gnutls_datum_t datum = datum_of(der, length);
        /* For the list of names in the request for a certificate. */
        if (length > 0)
            gnutls_certificate_set_x509_trust_mem(tls->credentials, &datum, GNUTLS_X509_FMT_DER);
        OPENSSL_free(der);
    }
}

static void ask_for_certificates(struct mhd_tls *tls, const struct tls_server_settings *settings) {
    if (settings->client_certificate == CLIENT_CERTIFICATE_OFF ||
        settings->client_authority == NULL)
        return;
    tls->client_certificate = settings->client_certificate;
    tls->authority = client_authority_reference(settings->client_authority);
    tls->store = client_authority_store(tls->authority);
    name_authorities(tls);
    gnutls_certificate_set_verify_function(tls->credentials, on_certificate);
}

static bool set_priority(struct mhd_tls *tls, enum tls_version least) {
    return gnutls_priority_init(&tls->priority,
                                least == TLS_VERSION_1_3 ? COMMON_PRIORITY
                                                         : COMMON_PRIORITY ":+VERS-TLS1.2",
                                NULL) == 0;
}

static _Atomic uint64_t latest_number;

struct mhd_tls *mhd_tls_new(const struct tls_server_settings *settings,
                            char error[PEM_FILE_ERROR]) {
    struct mhd_tls *tls;
    ALLOC_OBJ(tls, MHD_TLS_MAGIC);
    tls->references = 1;
    tls->number = atomic_fetch_add(&latest_number, 1);
    tls->certificates = certificate_set_reference(settings->certificates);
    ASSERT(gnutls_certificate_allocate_credentials(&tls->credentials) == 0);
    if (!set_priority(tls, settings->min_version))
        snprintf(error, PEM_FILE_ERROR,
                 "GnuTLS of this machine does not allow TLS 1.2 or 1.3: look into "
                 "/etc/gnutls/config");
    else if (add_certificates(tls, error)) {
        ask_for_certificates(tls, settings);
        return tls;
    }
    mhd_tls_release(&tls);
    return NULL;
}

struct mhd_tls *mhd_tls_reference(struct mhd_tls *tls) {
    CHECK_OBJ(tls, MHD_TLS_MAGIC);
    atomic_fetch_add_explicit(&tls->references, 1, memory_order_relaxed);
    return tls;
}

void mhd_tls_release(struct mhd_tls **tlsp) {
    struct mhd_tls *tls = *tlsp;
    *tlsp = NULL;
    if (tls == NULL)
        return;
    CHECK_OBJ(tls, MHD_TLS_MAGIC);
    if (atomic_fetch_sub_explicit(&tls->references, 1, memory_order_acq_rel) != 1)
        return;
    gnutls_certificate_free_credentials(tls->credentials);
    if (tls->priority != NULL)
        gnutls_priority_deinit(tls->priority);
    certificate_set_release(&tls->certificates);
    client_authority_release(&tls->authority);
    X509_STORE_free(tls->store);
    FREE_OBJ(tls);
}

bool mhd_tls_is_newer(const struct mhd_tls *tls, const struct mhd_tls *other) {
    CHECK_OBJ(tls, MHD_TLS_MAGIC);
    CHECK_OBJ(other, MHD_TLS_MAGIC);
    return tls->number > other->number;
}

const struct certificate_set *mhd_tls_certificates(const struct mhd_tls *tls) {
    CHECK_OBJ(tls, MHD_TLS_MAGIC);
    return tls->certificates;
}

const struct client_authority *mhd_tls_client_authority(const struct mhd_tls *tls) {
    CHECK_OBJ(tls, MHD_TLS_MAGIC);
    return tls->authority;
}

bool mhd_tls_names(const struct mhd_tls *tls, struct slice host) {
    CHECK_OBJ(tls, MHD_TLS_MAGIC);
    char *text = slice_dup(host);
    bool found = false;
    for (size_t i = 0; !found && i < certificate_set_count(tls->certificates); i++)
        found = certificate_names_include(certificate_set_at(tls->certificates, i)->leaf, text);
    free(text);
    return found;
}

/* The bytes of a connection. */

/* What has come is taken, so that the socket is closed without a reset, which could take the answer
 * away. */
static void answer_clear_text(const struct mhd_tls_session *session) {
    static const char body[] = "{\"error\": \"the admin plane speaks TLS at this address: write "
                               "https:// in place of http://\"}\n";
    char answer[512], dropped[4096];
    int length = snprintf(answer, sizeof answer,
                          "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                          "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                          sizeof body - 1, body);
    send(session->fd, answer, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (int i = 0; i < 16 && recv(session->fd, dropped, sizeof dropped, MSG_DONTWAIT) > 0; i++)
        continue;
}

static bool speaks_clear_text(const char *bytes) {
    return bytes[0] >= 'A' && bytes[0] <= 'Z';
}

static ssize_t on_pull(gnutls_transport_ptr_t arg, void *to, size_t room) {
    struct mhd_tls_session *session;
    CAST_OBJ(session, arg, MHD_TLS_SESSION_MAGIC);
    if (session->end == MHD_TLS_CLEAR_TEXT) {
        errno = ECONNRESET;
        return -1;
    }
    ssize_t got = recv(session->fd, to, room, 0);
    session->idle = got < 0 && (errno == EAGAIN || errno == EINTR);
    session->gone = got <= 0 && !session->idle;
    if (got <= 0 || session->begun)
        return got;
    session->begun = true;
    if (!speaks_clear_text(to))
        return got;
    session->end = MHD_TLS_CLEAR_TEXT;
    answer_clear_text(session);
    errno = ECONNRESET;
    return -1;
}

static ssize_t on_push(gnutls_transport_ptr_t arg, const void *from, size_t length) {
    struct mhd_tls_session *session;
    CAST_OBJ(session, arg, MHD_TLS_SESSION_MAGIC);
    return send(session->fd, from, length, MSG_NOSIGNAL);
}

/* A Finished that comes in is the client's, which is the last message of a handshake in TLS 1.3. In
 * 1.2 the server's follows, which nothing can refuse. */
static int on_finished(gnutls_session_t of, unsigned type, unsigned when, unsigned incoming,
                       const gnutls_datum_t *message) {
    struct mhd_tls_session *session = mhd_tls_session_of(of);
    (void)type;
    (void)when;
    (void)message;
    if (incoming)
        session->end = MHD_TLS_DONE;
    return 0;
}

struct mhd_tls_session *mhd_tls_session_new(struct mhd_tls *tls, gnutls_session_t with, int fd) {
    static const gnutls_datum_t protocol = {(unsigned char *)"http/1.1", 8};
    struct mhd_tls_session *session;
    ALLOC_OBJ(session, MHD_TLS_SESSION_MAGIC);
    session->tls = mhd_tls_reference(tls);
    session->fd = fd;
    session->end = MHD_TLS_OTHER;
    gnutls_transport_set_ptr(with, session);
    gnutls_transport_set_pull_function(with, on_pull);
    gnutls_transport_set_push_function(with, on_push);
    gnutls_handshake_set_hook_function(with, GNUTLS_HANDSHAKE_FINISHED, GNUTLS_HOOK_POST,
                                       on_finished);
    gnutls_priority_set(with, tls->priority);
    gnutls_credentials_set(with, GNUTLS_CRD_CERTIFICATE, tls->credentials);
    gnutls_alpn_set_protocols(with, &protocol, 1, 0);
    /* on_certificate decides about a client without one. */
    gnutls_certificate_server_set_request(with, tls->authority == NULL ? GNUTLS_CERT_IGNORE
                                                                       : GNUTLS_CERT_REQUEST);
    return session;
}

void mhd_tls_session_free(struct mhd_tls_session **sessionp) {
    struct mhd_tls_session *session = *sessionp;
    *sessionp = NULL;
    if (session == NULL)
        return;
    CHECK_OBJ(session, MHD_TLS_SESSION_MAGIC);
    drop_certificate(session);
    mhd_tls_release(&session->tls);
    FREE_OBJ(session);
}

/* A session is idle when its time is over: its last read found nothing. */
enum mhd_tls_end mhd_tls_session_end(const struct mhd_tls_session *session) {
    CHECK_OBJ(session, MHD_TLS_SESSION_MAGIC);
    if (session->end == MHD_TLS_OTHER && (session->idle || session->gone))
        return MHD_TLS_LATE;
    return session->end;
}

const char *mhd_tls_session_reason(const struct mhd_tls_session *session) {
    CHECK_OBJ(session, MHD_TLS_SESSION_MAGIC);
    return session->reason;
}

const char *mhd_tls_session_subject(const struct mhd_tls_session *session) {
    CHECK_OBJ(session, MHD_TLS_SESSION_MAGIC);
    return session->subject == NULL ? "" : session->subject;
}

static bool same_authority(const struct mhd_tls *a, const struct mhd_tls *b) {
    return a->authority != NULL && b->authority != NULL &&
           memcmp(client_authority_digest(a->authority), client_authority_digest(b->authority),
                  CLIENT_AUTHORITY_DIGEST) == 0;
}

bool mhd_tls_session_holds(const struct mhd_tls_session *session, const struct mhd_tls *now) {
    CHECK_OBJ(session, MHD_TLS_SESSION_MAGIC);
    CHECK_OBJ(now, MHD_TLS_MAGIC);
    if (session->subject == NULL)
        return now->client_certificate != CLIENT_CERTIFICATE_REQUIRED;
    return same_authority(session->tls, now) &&
           verify_chain(now, session->leaf, session->chain) == X509_V_OK;
}
