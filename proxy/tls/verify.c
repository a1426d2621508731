#include "tls/verify.h"

#include "base/assert.h"
#include "tls/aia.h"
#include "tls/certificate_names.h"
#include "tls/ocsp.h"
#include "tls/verify_words.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { SECURITY_LEVEL = 2 };

/* The verification of one connection. */
struct tls_verification {
    unsigned magic;
#define TLS_VERIFICATION_MAGIC 0x7e41f1edu
    const struct tls_verify_policy *policy;
    const char *host;
    unsigned hops;                      /* requests that the fetched certificates took */
    char *wanted;                       /* URL; NULL: none */
    char *last_used;                    /* URL whose certificates were added last; NULL: none */
    STACK_OF(X509) * fetched, *offered; /* offered: the server's and the fetched */
    char error[TLS_VERIFY_ERROR];
};

static pthread_once_t verify_once = PTHREAD_ONCE_INIT;
static int verify_slot, policy_slot; /* of SSL and of SSL_CTX */

static void verify_free(void *parent, void *pointer, CRYPTO_EX_DATA *data, int slot, long argl,
                        void *argp) {
    struct tls_verification *verification = pointer;
    (void)parent, (void)data, (void)slot, (void)argl, (void)argp;
    if (verification == NULL)
        return;
    CHECK_OBJ(verification, TLS_VERIFICATION_MAGIC);
    sk_X509_pop_free(verification->fetched, X509_free);
    sk_X509_free(verification->offered);
    free(verification->wanted);
    free(verification->last_used);
    FREE_OBJ(verification);
}

static void verify_make_slots(void) {
    verify_slot = SSL_get_ex_new_index(0, NULL, NULL, NULL, verify_free);
    policy_slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    ASSERT(verify_slot >= 0 && policy_slot >= 0);
}

static struct tls_verification *verify_of(const SSL *ssl) {
    struct tls_verification *verification = SSL_get_ex_data(ssl, verify_slot);
    CHECK_OBJ(verification, TLS_VERIFICATION_MAGIC);
    return verification;
}

/* Missing intermediates. */

static bool is_unfinished(int error) {
    return error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
           error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
           error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

static void verify_add_fetched(struct tls_verification *verification, char *url,
                               struct intermediates_found *found) {
    verification->hops += found->hops;
    free(verification->last_used);
    verification->last_used = url;
    if (verification->fetched == NULL) {
        verification->fetched = found->certificates;
        return;
    }
    for (X509 *each; (each = sk_X509_shift(found->certificates)) != NULL;)
        if (sk_X509_push(verification->fetched, each) <= 0)
            X509_free(each);
    sk_X509_free(found->certificates);
}

/* Looks for the issuer of the last certificate of the chain. Returns true when the handshake is to
 * be suspended: to fetch the issuer, or only to verify once more. Takes `url`. */
static bool verify_seek(struct tls_verification *verification, char *url, const char *issuer) {
    struct intermediates_found found = {.certificates = NULL};
    const char *failure = "";
    switch (intermediates_find(verification->policy->intermediates, url, &found)) {
    case INTERMEDIATES_UNKNOWN:
        if (verification->hops < TLS_VERIFY_HOPS) {
            verification->wanted = url;
            return true;
        }
        failure = "too many certificates are missing";
        break;
    case INTERMEDIATES_KNOWN:
        if (verification->hops + found.hops <= TLS_VERIFY_HOPS) {
            verify_add_fetched(verification, url, &found);
            return true;
        }
        sk_X509_pop_free(found.certificates, X509_free);
        failure = "too many requests and redirects are needed";
        break;
    case INTERMEDIATES_FAILED: failure = found.error; break;
    }
    verify_words_for_missing(verification->error, issuer, url, failure);
    free(url);
    return false;
}

/* The chain ends before a root. */
static bool verify_complete(struct tls_verification *verification, X509_STORE_CTX *context) {
    X509 *last = X509_STORE_CTX_get_current_cert(context);
    char *issuer = verify_words_issuer(last);
    char *url = aia_issuer_url(last);
    bool suspend = false;
    if (!verification->policy->fetch_intermediates || verification->policy->intermediates == NULL)
        verify_words_for_missing(verification->error, issuer, NULL, NULL);
    else if (url == NULL)
        verify_words_for_missing(verification->error, issuer, NULL,
                                 "the certificate names no http URL for it");
    else if (verification->last_used != NULL && strcmp(url, verification->last_used) == 0)
        verify_words_for_missing(verification->error, issuer, url, "it is not what is there");
    else {
        suspend = verify_seek(verification, url, issuer);
        url = NULL;
    }
    free(issuer);
    free(url);
    return suspend;
}

/* Offers the fetched certificates together with those of the server. */
static bool verify_offer(struct tls_verification *verification, X509_STORE_CTX *context) {
    STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(context);
    if (verification->fetched == NULL)
        return true;
    STACK_OF(X509) *offered = sent != NULL ? sk_X509_dup(sent) : sk_X509_new_null();
    sk_X509_free(verification->offered);
    verification->offered = offered;
    for (int i = 0; offered != NULL && i < sk_X509_num(verification->fetched); i++)
        if (sk_X509_push(offered, sk_X509_value(verification->fetched, i)) <= 0)
            return false;
    X509_STORE_CTX_set0_untrusted(context, offered);
    return offered != NULL;
}

static struct tls_verification *verify_of_context(X509_STORE_CTX *context) {
    return verify_of(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
}

/* OpenSSL calls this for each problem of a chain while the revocation list that it is about is at
 * hand. Lists of the authorities above the certificate's issuer are not needed. */
static int verify_on_problem(int good, X509_STORE_CTX *context) {
    if (good)
        return good;
    if (X509_STORE_CTX_get_error(context) == X509_V_ERR_UNABLE_TO_GET_CRL &&
        X509_STORE_CTX_get_error_depth(context) > 0) {
        X509_STORE_CTX_set_error(context, X509_V_OK);
        return 1;
    }
    if (!is_unfinished(X509_STORE_CTX_get_error(context)))
        verify_words_for_chain(verify_of_context(context)->error, context);
    return 0;
}

/* OpenSSL calls this instead of X509_verify_cert, and again when a suspended handshake goes on. */
static int verify_on_certificate(X509_STORE_CTX *context, void *owner) {
    SSL *ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_verification *verification = verify_of(ssl);
    (void)owner;
    free(verification->wanted);
    verification->wanted = NULL;
    if (!verify_offer(verification, context)) {
        X509_STORE_CTX_set_error(context, X509_V_ERR_OUT_OF_MEM);
        return 0;
    }
    X509_STORE_CTX_set_verify_cb(context, verify_on_problem);
    if (X509_verify_cert(context) == 1) {
        X509 *leaf = X509_STORE_CTX_get0_cert(context);
        if (certificate_names_include(leaf, verification->host))
            return 1;
        verify_words_for_names(verification->error, leaf, verification->host);
        X509_STORE_CTX_set_error(context, X509_V_ERR_HOSTNAME_MISMATCH);
        return 0;
    }
    if (!is_unfinished(X509_STORE_CTX_get_error(context)) ||
        !verify_complete(verification, context))
        return 0;
    ERR_clear_error(); /* otherwise SSL_get_error reports a failure */
    SSL_set_retry_verify(ssl);
    return 1;
}

/* Stapled OCSP responses. */

static bool verify_judge_staple(struct tls_verification *verification, SSL *ssl, X509 *leaf,
                                const unsigned char *bytes, long length) {
    STACK_OF(X509) *chain = SSL_get0_verified_chain(ssl);
    X509 *issuer = sk_X509_num(chain) > 1 ? sk_X509_value(chain, 1) : leaf;
    struct ocsp_finding finding =
        ocsp_judge(bytes, (size_t)length, leaf, issuer, chain, time(NULL));
    if (finding.verdict == OCSP_GOOD)
        return true;
    if (finding.verdict != OCSP_REVOKED && verification->policy->staple != TLS_STAPLE_STRICT &&
        !ocsp_is_demanded(leaf))
        return true;
    verify_words_for_staple(verification->error, &finding);
    return false;
}

/* OpenSSL calls this when the first flight of the server is complete, also without a response. */
static int verify_on_staple(SSL *ssl, void *owner) {
    struct tls_verification *verification = verify_of(ssl);
    const unsigned char *bytes = NULL;
    (void)owner;
    X509 *leaf = SSL_get0_peer_certificate(ssl);
    if (SSL_session_reused(ssl) || leaf == NULL)
        return 1;
    long length = SSL_get_tlsext_status_ocsp_resp(ssl, &bytes);
    if (bytes != NULL && length > 0)
        return verify_judge_staple(verification, ssl, leaf, bytes, length);
    if (!ocsp_is_demanded(leaf))
        return 1;
    verify_words_for_staple(verification->error, NULL);
    return 0;
}

void tls_verify_install(SSL_CTX *context, const struct tls_verify_policy *policy) {
    pthread_once(&verify_once, verify_make_slots);
    int good = SSL_CTX_set_ex_data(context, policy_slot, (void *)policy);
    ASSERT(good == 1);
    SSL_CTX_set_security_level(context, SECURITY_LEVEL);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(context, verify_on_certificate, NULL);
    if (policy->staple == TLS_STAPLE_OFF)
        return;
    SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
    SSL_CTX_set_tlsext_status_cb(context, verify_on_staple);
}

bool tls_verify_begin(SSL *ssl, const char *host) {
    struct tls_verification *verification;
    ALLOC_OBJ(verification, TLS_VERIFICATION_MAGIC);
    verification->policy = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), policy_slot);
    verification->host = host;
    if (SSL_set_ex_data(ssl, verify_slot, verification) == 1)
        return true;
    FREE_OBJ(verification);
    return false;
}

/* NULL: the connection's certificate is not verified. */
static const struct tls_verification *verify_find(const SSL *ssl) {
    pthread_once(&verify_once, verify_make_slots);
    return SSL_get_ex_data(ssl, verify_slot);
}

const char *tls_verify_wanted(const SSL *ssl) {
    const struct tls_verification *verification = verify_find(ssl);
    return verification != NULL ? verification->wanted : NULL;
}

const char *tls_verify_error(const SSL *ssl) {
    const struct tls_verification *verification = verify_find(ssl);
    return verification != NULL ? verification->error : "";
}
