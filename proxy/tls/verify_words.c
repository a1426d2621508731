#include "tls/verify_words.h"

#include "base/assert.h"
#include "tls/certificate_names.h"
#include "tls/certificate_text.h"

#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

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

char *verify_words_issuer(const X509 *certificate) {
    return verify_shorten(certificate_text_name(X509_get_issuer_name(certificate)));
}

static char *verify_subject(const X509 *certificate) {
    return verify_shorten(certificate_text_name(X509_get_subject_name(certificate)));
}

void verify_words_for_names(char error[TLS_VERIFY_ERROR], const X509 *certificate,
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

void verify_words_for_missing(char error[TLS_VERIFY_ERROR], const char *issuer, const char *url,
                              const char *reason) {
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

void verify_words_for_staple(char error[TLS_VERIFY_ERROR], const struct ocsp_finding *finding) {
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

void verify_words_for_chain(char error[TLS_VERIFY_ERROR], X509_STORE_CTX *context) {
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
