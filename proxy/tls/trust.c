#include "tls/trust.h"

#include "base/assert.h"
#include "tls/client.h"
#include "tls/context.h"

#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdarg.h>
#include <stdio.h>

struct tls_trust {
    unsigned magic;
#define TLS_TRUST_MAGIC 0x71574057u
    unsigned references;
    SSL_CTX *context; /* NULL: it could not be made; error says why */
    bool shows;
    char error[TLS_ERROR_MAX];
};

static bool trust_fail(struct tls_trust *trust, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool trust_fail(struct tls_trust *trust, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(trust->error, sizeof trust->error, format, arguments);
    va_end(arguments);
    return false;
}

static const char *trust_reason(void) {
    const char *text = ERR_reason_error_string(ERR_peek_last_error());
    return text != NULL ? text : "unknown error";
}

static bool trust_authorities(struct tls_trust *trust, const struct tls_trust_settings *settings) {
    SSL_CTX_set_verify(trust->context, settings->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    if (!settings->verify)
        return true;
    if (settings->ca_file == NULL)
        return SSL_CTX_set_default_verify_paths(trust->context) == 1;
    if (SSL_CTX_load_verify_locations(trust->context, settings->ca_file, NULL) == 1)
        return true;
    return trust_fail(trust, "ca_file %s can't be used (%s): it must hold certificates in PEM",
                      settings->ca_file, trust_reason());
}

static bool trust_lists(struct tls_trust *trust, const struct tls_trust_settings *settings) {
    X509_STORE *store = SSL_CTX_get_cert_store(trust->context);
    if (settings->crl_file == NULL || !settings->verify)
        return true;
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (lookup == NULL || X509_load_crl_file(lookup, settings->crl_file, X509_FILETYPE_PEM) < 1)
        return trust_fail(trust,
                          "crl_file %s can't be used (%s): it must hold revocation lists in PEM",
                          settings->crl_file, trust_reason());
    return X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK) == 1;
}

static bool trust_certificate(struct tls_trust *trust, const struct tls_trust_settings *settings) {
    if (settings->certificate == NULL)
        return true;
    trust->shows = true;
    if (SSL_CTX_use_certificate_chain_file(trust->context, settings->certificate) != 1)
        return trust_fail(trust,
                          "certificate %s can't be used (%s): it must hold a certificate in PEM",
                          settings->certificate, trust_reason());
    if (SSL_CTX_use_PrivateKey_file(trust->context, settings->certificate_key, SSL_FILETYPE_PEM) ==
            1 &&
        SSL_CTX_check_private_key(trust->context) == 1)
        return true;
    return trust_fail(trust,
                      "certificate_key %s can't be used (%s): it must hold the key of %s in PEM, "
                      "without a password",
                      settings->certificate_key, trust_reason(), settings->certificate);
}

static bool trust_version(struct tls_trust *trust, const struct tls_trust_settings *settings) {
    return settings->min_version != TLS_VERSION_1_3 ||
           SSL_CTX_set_min_proto_version(trust->context, TLS1_3_VERSION) == 1;
}

struct tls_trust *tls_trust_new(const struct tls_trust_settings *settings) {
    struct tls_trust *trust;
    ALLOC_OBJ(trust, TLS_TRUST_MAGIC);
    trust->references = 1;
    ERR_clear_error();
    trust->context = tls_context_new(TLS_client_method());
    if (trust->context == NULL) {
        trust_fail(trust, "TLS can't be started: out of memory");
        return trust;
    }
    /* A server that asks for a certificate and has set no session id context, such as c-icap,
     * refuses to resume sessions (SSL_CTX_set_session_id_context(3)). */
    if (settings->certificate == NULL)
        tls_client_prepare(trust->context);
    if (!trust_authorities(trust, settings) || !trust_lists(trust, settings) ||
        !trust_certificate(trust, settings) || !trust_version(trust, settings)) {
        SSL_CTX_free(trust->context);
        trust->context = NULL;
    }
    return trust;
}

struct tls_trust *tls_trust_take(struct tls_trust *trust) {
    CHECK_OBJ(trust, TLS_TRUST_MAGIC);
    trust->references++;
    return trust;
}

void tls_trust_release(struct tls_trust **trustp) {
    struct tls_trust *trust = *trustp;
    *trustp = NULL;
    if (trust == NULL)
        return;
    CHECK_OBJ(trust, TLS_TRUST_MAGIC);
    if (--trust->references > 0)
        return;
    SSL_CTX_free(trust->context);
    FREE_OBJ(trust);
}

const char *tls_trust_error(const struct tls_trust *trust) {
    return trust->error;
}

SSL_CTX *tls_trust_context(const struct tls_trust *trust) {
    return trust->context;
}

bool tls_trust_shows(const struct tls_trust *trust) {
    return trust->shows;
}
