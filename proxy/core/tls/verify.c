#include "tls/verify.h"

#include "base/assert.h"
#include "tls/certificate_text.h"
#include "tls/intermediates.h"
#include "tls/staple.h"

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

enum { DATE = 32, NAMES = 300, ISSUER = 100 };

static void verify_say(char error[TLS_VERIFY_ERROR], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void verify_say(char error[TLS_VERIFY_ERROR], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, TLS_VERIFY_ERROR, format, arguments);
    va_end(arguments);
}

static const char *verify_date(char text[DATE], int64_t seconds) {
    time_t at = (time_t)seconds;
    struct tm broken;
    if (seconds == 0 || gmtime_r(&at, &broken) == NULL ||
        strftime(text, DATE, "%Y-%m-%d %H:%M UTC", &broken) == 0)
        snprintf(text, DATE, "an unknown date");
    return text;
}

static const char *verify_asn1_date(char text[DATE], const ASN1_TIME *time) {
    struct tm broken;
    bool good = time != NULL && ASN1_TIME_to_tm(time, &broken) == 1;
    return verify_date(text, good ? timegm(&broken) : 0);
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

/* The certificate of `issuer` is missing. `url`: where it would be; NULL: not known. `reason`: why
 * it can't be fetched; NULL: nobody has tried. */
static void verify_words_for_missing(char error[TLS_VERIFY_ERROR], const char *issuer,
                                     const char *url, const char *reason) {
    char fetch[TLS_VERIFY_ERROR / 2] = "";
    if (reason != NULL)
        snprintf(fetch, sizeof fetch, ", and can't be fetched%s%.150s (%s)",
                 url != NULL ? " from " : "", url != NULL ? url : "", reason);
    verify_say(error,
               "the issuer of its certificate (%s) is neither sent nor trusted%s: install the "
               "intermediate certificates on that host, or set ca_file to the certificate of the "
               "issuer",
               issuer, fetch);
}

/* `finding` NULL: the certificate demands a response, and there is none. */
static void verify_words_for_staple(char error[TLS_VERIFY_ERROR],
                                    const struct ocsp_finding *finding) {
    char date[DATE];
    if (finding == NULL)
        verify_say(error, "its certificate demands a stapled OCSP response (must-staple), and it "
                          "sent none: switch on OCSP stapling on that host");
    else if (finding->verdict == OCSP_REVOKED)
        verify_say(error,
                   "its certificate was revoked on %s, says the OCSP response that it sent: get a "
                   "new certificate for that host",
                   verify_date(date, finding->revoked_at));
    else
        verify_say(error,
                   "the stapled OCSP response of its certificate is of no use (%s): correct OCSP "
                   "stapling on that host",
                   finding->reason);
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
    char date[DATE];
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
    char date[DATE];
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
    char *whose, date[DATE];
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
