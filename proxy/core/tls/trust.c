#include "tls/trust.h"

#include "base/assert.h"
#include "tls/client.h"
#include "tls/context.h"
#include "tls/trust_files.h"
#include "tls/verify.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

struct tls_trust {
    unsigned magic;
#define TLS_TRUST_MAGIC 0x71574057u
    unsigned references;
    struct tls_trust_files *files;
    struct tls_verify_policy policy;
    SSL_CTX *context; /* NULL: it could not be made */
    bool verifies;
};

static bool trust_add_lists(X509_STORE *store, const STACK_OF(X509_CRL) * lists) {
    for (int i = 0; i < sk_X509_CRL_num(lists); i++)
        if (X509_STORE_add_crl(store, sk_X509_CRL_value(lists, i)) != 1)
            return false;
    return lists == NULL ||
           X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1;
}

/* An operator may name an intermediate in ca_file, and trusts then only what is below it. */
static bool trust_add_authorities(X509_STORE *store, const STACK_OF(X509) * authorities) {
    for (int i = 0; i < sk_X509_num(authorities); i++)
        if (X509_STORE_add_cert(store, sk_X509_value(authorities, i)) != 1)
            return false;
    if (authorities == NULL)
        return X509_STORE_set_default_paths(store) == 1;
    return X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN) == 1;
}

static bool trust_show(SSL_CTX *context, const struct tls_trust_files *files) {
    if (files->chain == NULL)
        return true;
    STACK_OF(X509) *above = sk_X509_dup(files->chain);
    X509 *ours = sk_X509_shift(above);
    bool good = SSL_CTX_use_cert_and_key(context, ours, files->key, above, 1) == 1;
    sk_X509_free(above);
    return good;
}

static bool trust_verify(struct tls_trust *trust) {
    X509_STORE *store = SSL_CTX_get_cert_store(trust->context);
    if (!trust->verifies)
        return true;
    tls_verify_install(trust->context, &trust->policy);
    return trust_add_authorities(store, trust->files->authorities) &&
           trust_add_lists(store, trust->files->lists);
}

static bool trust_set_up(struct tls_trust *trust, const struct tls_trust_settings *settings) {
    if (trust->context == NULL)
        return false;
    /* A server that asks for a certificate and has set no session id context, such as c-icap,
     * refuses to resume sessions (SSL_CTX_set_session_id_context(3)). */
    if (settings->certificate == NULL)
        tls_client_prepare(trust->context);
    if (settings->min_version == TLS_VERSION_1_3)
        SSL_CTX_set_min_proto_version(trust->context, TLS1_3_VERSION);
    return trust_show(trust->context, trust->files) && trust_verify(trust);
}

struct tls_trust *tls_trust_new(const struct tls_trust_settings *settings) {
    struct tls_trust *trust;
    ALLOC_OBJ(trust, TLS_TRUST_MAGIC);
    trust->references = 1;
    trust->files = tls_trust_files_take(settings->files);
    trust->verifies = settings->verify;
    trust->policy = (struct tls_verify_policy){
        .fetch_intermediates = settings->fetch_intermediates,
        .staple = settings->check_staple,
    };
    ERR_clear_error();
    trust->context = tls_context_new(TLS_client_method());
    if (!trust_set_up(trust, settings)) {
        SSL_CTX_free(trust->context);
        trust->context = NULL;
    }
    ERR_clear_error();
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
    tls_trust_files_release(&trust->files);
    FREE_OBJ(trust);
}

const char *tls_trust_error(const struct tls_trust *trust) {
    return trust->context == NULL ? "TLS can't be started: out of memory" : "";
}

SSL_CTX *tls_trust_context(const struct tls_trust *trust) {
    return trust->context;
}

bool tls_trust_shows(const struct tls_trust *trust) {
    return trust->files->chain != NULL;
}

bool tls_trust_verifies(const struct tls_trust *trust) {
    return trust->verifies;
}
