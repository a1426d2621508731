/*
 * OCSP responses (RFC 6960): what one says about a certificate, and whether it may be believed.
 *
 *     struct ocsp_finding finding = ocsp_judge(bytes, length, leaf, issuer, chain, time(NULL));
 *     if (finding.verdict == OCSP_GOOD) ...             valid until finding.next_update
 *     else log_warn("%s", finding.reason);
 *
 * A response is believed when it is signed by the issuer of the certificate, or by a certificate
 * for OCSP signing that this issuer has signed. It must be about this certificate, and the time
 * must be between its thisUpdate and its nextUpdate, with a tolerance of five minutes. A response
 * without a nextUpdate is believed for a day. A certificate that was revoked stays revoked: the
 * time does not count for that verdict.
 *
 * Threads: pure.
 */
#ifndef RETORT_TLS_OCSP_H
#define RETORT_TLS_OCSP_H

#include <openssl/types.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ocsp_verdict { OCSP_GOOD, OCSP_REVOKED, OCSP_UNKNOWN, OCSP_OUTDATED, OCSP_WORTHLESS };

struct ocsp_finding {
    enum ocsp_verdict verdict;
    int64_t this_update, next_update, revoked_at; /* seconds since 1970; 0: not stated */
    const char *reason; /* "it is not signed by the issuer of the certificate"; "" when good */
};

/* `issuer` must be known to be the certificate's issuer. `more`: certificates among which the
 * signer's may be, in addition to those in the response; may be NULL. */
struct ocsp_finding ocsp_judge(const unsigned char *bytes, size_t length, X509 *certificate,
                               X509 *issuer, STACK_OF(X509) * more, int64_t now);
/* The DER bytes of a request about the certificate, which the caller frees; NULL: no memory. */
unsigned char *ocsp_write_request(const X509 *certificate, const X509 *issuer, size_t *length);
/* The http URL of the certificate's OCSP responder, which the caller frees; NULL: it has none. */
char *ocsp_responder(const X509 *certificate);
/* Does the certificate demand a stapled response (RFC 7633)? */
bool ocsp_is_demanded(const X509 *certificate);

#endif
