#include "tls/verify.h"

#include "base/assert.h"
#include "part.h"
#include "tls/certificate_text.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/*
 * Sentences for operators about certificates that are not trusted: what is wrong, with names and
 * dates, and what to do.
 *
 * Each sentence speaks of the server as "it". Names from certificates are printable ASCII.
 */

enum { NAMES = 300, ISSUER = 100 };

static void verify_say(char error[TLS_VERIFY_ERROR], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void verify_say(char error[TLS_VERIFY_ERROR], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, TLS_VERIFY_ERROR, format, arguments);
    va_end(arguments);
}

const char *tls_verify_date(char text[TLS_VERIFY_DATE], int64_t seconds) {
    time_t at = (time_t)seconds;
    struct tm broken;
    if (seconds == 0 || gmtime_r(&at, &broken) == NULL ||
        strftime(text, TLS_VERIFY_DATE, "%Y-%m-%d %H:%M UTC", &broken) == 0)
        snprintf(text, TLS_VERIFY_DATE, "an unknown date");
    return text;
}

static const char *verify_asn1_date(char text[TLS_VERIFY_DATE], const ASN1_TIME *time) {
    struct tm broken;
    bool good = time != NULL && ASN1_TIME_to_tm(time, &broken) == 1;
    return tls_verify_date(text, good ? timegm(&broken) : 0);
}

static char *verify_shorten(char *name) {
    if (strlen(name) > ISSUER)
        strcpy(name + ISSUER - 3, "...");
    return name;
}

/* The name of the certificate's issuer; the caller frees it. */
static char *verify_words_issuer(const X509 *certificate) {
    return verify_shorten(certificate_text_name(X509_get_issuer_name(certificate)));
}

static char *verify_subject(const X509 *certificate) {
    return verify_shorten(certificate_text_name(X509_get_subject_name(certificate)));
}

/* The certificate is for other names. */
static void verify_words_for_names(char error[TLS_VERIFY_ERROR], const X509 *certificate,
                                   const char *host) {
    char names[NAMES];
    certificate_names_list(certificate, names, sizeof names);
    if (names[0] != '\0')
        verify_say(error,
                   "its certificate is not for %s: use a name that the certificate is for (%s), or "
                   "correct the certificate on that host",
                   host, names);
    else
        verify_say(error,
                   "its certificate is not for %s: it has no subjectAltName, and the common name "
                   "does not count (RFC 9525); correct the certificate on that host",
                   host);
}

void tls_verify_say_missing(struct tls_verification *verification, const X509 *last,
                            const char *fetch) {
    char *issuer = verify_words_issuer(last);
    verify_say(verification->error,
               "the issuer of its certificate (%s) is neither sent nor trusted%s: install the "
               "intermediate certificates on that host, or set ca_file to the certificate of the "
               "issuer",
               issuer, fetch);
    free(issuer);
}

/* "its certificate", or which one above it. */
static char *verify_whose(X509_STORE_CTX *context) {
    char *text;
    if (X509_STORE_CTX_get_error_depth(context) <= 0)
        return xstrdup("its certificate");
    char *name = verify_subject(X509_STORE_CTX_get_current_cert(context));
    int length = asprintf(&text, "the certificate of its authority %s", name);
    ASSERT(length > 0);
    free(name);
    return text;
}

static void verify_say_weak_key(char error[TLS_VERIFY_ERROR], const char *whose,
                                const X509 *certificate) {
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    verify_say(error,
               "the key of %s is too weak (%s, %d bits): RSA needs 2048 bits; get a new "
               "certificate for that host",
               whose, key != NULL ? EVP_PKEY_get0_type_name(key) : "unknown",
               key != NULL ? EVP_PKEY_get_bits(key) : 0);
}

static void verify_say_weak_digest(char error[TLS_VERIFY_ERROR], const char *whose,
                                   const X509 *certificate) {
    int digest = NID_undef;
    X509_get_signature_info((X509 *)certificate, &digest, NULL, NULL, NULL);
    verify_say(error,
               "%s is signed with %s, which is too weak: get a new certificate for that host",
               whose, digest != NID_undef ? OBJ_nid2ln(digest) : "an unknown algorithm");
}

static void verify_say_revoked(char error[TLS_VERIFY_ERROR], const char *whose,
                               X509_STORE_CTX *context) {
    X509_CRL *list = X509_STORE_CTX_get0_current_crl(context);
    X509_REVOKED *entry = NULL;
    char date[TLS_VERIFY_DATE];
    if (list != NULL)
        X509_CRL_get0_by_cert(list, &entry, X509_STORE_CTX_get_current_cert(context));
    verify_say(error, "%s was revoked on %s, says crl_file: get a new certificate for that host",
               whose,
               verify_asn1_date(date, entry ? X509_REVOKED_get0_revocationDate(entry) : NULL));
}

/* `result`: about a revocation list. */
static void verify_say_list(char error[TLS_VERIFY_ERROR], int result, X509_STORE_CTX *context) {
    X509_CRL *list = X509_STORE_CTX_get0_current_crl(context);
    char *issuer = verify_words_issuer(X509_STORE_CTX_get_current_cert(context));
    char date[TLS_VERIFY_DATE];
    if (result == X509_V_ERR_UNABLE_TO_GET_CRL)
        verify_say(error,
                   "crl_file has no revocation list of %s, which issued its certificate: add the "
                   "list, or remove crl_file",
                   issuer);
    else if (result == X509_V_ERR_CRL_HAS_EXPIRED)
        verify_say(error,
                   "the revocation list of %s in crl_file expired on %s: replace it with a new "
                   "one and reload",
                   issuer, verify_asn1_date(date, list ? X509_CRL_get0_nextUpdate(list) : NULL));
    else
        verify_say(error, "the revocation list of %s in crl_file can't be used (%s): replace it",
                   issuer, X509_verify_cert_error_string(result));
    free(issuer);
}

static void verify_say_other(char error[TLS_VERIFY_ERROR], const char *whose, int result) {
    verify_say(error, "%s is not trusted (%s): correct the certificate on that host", whose,
               X509_verify_cert_error_string(result));
}

/* About the root of the chain. */
static void verify_say_untrusted(char error[TLS_VERIFY_ERROR], int result, const X509 *root) {
    char *name = verify_subject(root);
    if (result == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT)
        verify_say(error,
                   "its certificate is self-signed and not trusted: if it is the right one, set "
                   "ca_file to it");
    else
        verify_say(error,
                   "its certificate is from an authority that is not trusted (%s): if you trust "
                   "this authority, set ca_file to its certificate",
                   name);
    free(name);
}

/* After X509_verify_cert has failed. */
static void verify_words_for_chain(char error[TLS_VERIFY_ERROR], X509_STORE_CTX *context) {
    int result = X509_STORE_CTX_get_error(context);
    const X509 *certificate = X509_STORE_CTX_get_current_cert(context);
    char *whose, date[TLS_VERIFY_DATE];
    if (certificate == NULL) {
        verify_say_other(error, "its certificate", result);
        return;
    }
    whose = verify_whose(context);
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        verify_say(error, "%s expired on %s: renew it on that host", whose,
                   verify_asn1_date(date, X509_get0_notAfter(certificate)));
        break;
    case X509_V_ERR_CERT_NOT_YET_VALID:
        verify_say(error, "%s is not valid before %s: check the clocks of both hosts", whose,
                   verify_asn1_date(date, X509_get0_notBefore(certificate)));
        break;
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        verify_say_untrusted(error, result, certificate);
        break;
    case X509_V_ERR_CERT_REVOKED: verify_say_revoked(error, whose, context); break;
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE: verify_say_list(error, result, context); break;
    case X509_V_ERR_INVALID_CA:
    case X509_V_ERR_INVALID_NON_CA:
        verify_say(error,
                   "%s signed the certificate below it, but is not that of an authority: "
                   "correct the certificates on that host",
                   whose);
        break;
    case X509_V_ERR_INVALID_PURPOSE:
        verify_say(error,
                   "%s is not for servers (extended key usage): get a new certificate for "
                   "that host",
                   whose);
        break;
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL: verify_say_weak_key(error, whose, certificate); break;
    case X509_V_ERR_CA_MD_TOO_WEAK: verify_say_weak_digest(error, whose, certificate); break;
    default: verify_say_other(error, whose, result); break;
    }
    free(whose);
}

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

struct tls_verification *tls_verification_of(const SSL *ssl) {
    struct tls_verification *verification = SSL_get_ex_data(ssl, verify_slot);
    CHECK_OBJ(verification, TLS_VERIFICATION_MAGIC);
    return verification;
}

const struct tls_pki *tls_pki(void) {
    PARTS_FOR_EACH (number, pki)
        return part_table[number]->pki;
    return NULL;
}

static bool is_unfinished(int error) {
    return error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
           error == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
           error == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

static struct tls_verification *verify_of_context(X509_STORE_CTX *context) {
    return tls_verification_of(
        X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
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

/* The chain ends before a root. True: the handshake is to be suspended. */
static bool verify_complete(struct tls_verification *verification, X509 *last) {
    if (verification->policy->fetch_intermediates && tls_pki() != NULL)
        return tls_pki()->complete(verification, last);
    tls_verify_say_missing(verification, last, "");
    return false;
}

/* OpenSSL calls this instead of X509_verify_cert, and again when a suspended handshake goes on. */
static int verify_on_certificate(X509_STORE_CTX *context, void *owner) {
    SSL *ssl = X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_verification *verification = tls_verification_of(ssl);
    (void)owner;
    free(verification->wanted);
    verification->wanted = NULL;
    if (verification->fetched != NULL && !tls_pki()->offer(verification, context)) {
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
        !verify_complete(verification, X509_STORE_CTX_get_current_cert(context)))
        return 0;
    ERR_clear_error(); /* otherwise SSL_get_error reports a failure */
    SSL_set_retry_verify(ssl);
    return 1;
}

void tls_verify_install(SSL_CTX *context, const struct tls_verify_policy *policy) {
    pthread_once(&verify_once, verify_make_slots);
    int good = SSL_CTX_set_ex_data(context, policy_slot, (void *)policy);
    ASSERT(good == 1);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_cert_verify_callback(context, verify_on_certificate, NULL);
    if (policy->staple != TLS_STAPLE_OFF && tls_pki() != NULL)
        tls_pki()->check_staple(context);
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
