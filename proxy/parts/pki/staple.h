/*
 * OCSP responses that listeners staple to their certificates (RFC 6066 §8), one for each
 * certificate.
 *
 *     staple_attach(certificate->leaf, certificate->chain);          when a certificate is loaded
 *     struct staple *staple = staple_of(certificate->leaf);
 *     if (!staple_load(staple, "/etc/retort/www.pem.ocsp", error)) ...
 *     staple_install(context);                                       for the SSL_CTX of a listener
 *
 *     if (staple_due(staple, now) <= now) ... fetch                  pki/fetches.h
 *     if (!staple_put(staple, bytes, length, now, error))
 *         staple_note_failure(staple, error, now);
 *
 * A response is verified against the issuer of the certificate before it is used, and shown until
 * its nextUpdate. All copies of one certificate in a process have the same staple, and it lives as
 * long as one of them. So a reload keeps the responses of certificates that stay.
 *
 * Threads: any; each staple has a lock. Times are seconds since 1970.
 */
#ifndef RETORT_PKI_STAPLE_H
#define RETORT_PKI_STAPLE_H

#include "tls/verify.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * OCSP responses (RFC 6960): what one says about a certificate, and whether it may be believed.
 *
 *     struct ocsp_finding finding = ocsp_judge(bytes, length, leaf, issuer, chain, time(NULL));
 *
 * A response is believed when it is signed by the issuer of the certificate, or by a certificate for OCSP
 * signing that this issuer has signed. It must be about this certificate, and the time must be between its
 * thisUpdate and its nextUpdate, with a tolerance of five minutes. A response without a nextUpdate is believed
 * for a day. A certificate that was revoked stays revoked: the time does not count for that verdict.
 */

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

enum { STAPLE_ERROR = TLS_PKI_TEXT - 32, STAPLE_MOST = 65536 };

struct staple;

enum staple_state { STAPLE_NONE, STAPLE_GOOD, STAPLE_REVOKED };

/* For people. */
struct staple_report {
    enum staple_state state;
    int64_t next_update;      /* of the response; 0: there is none */
    int64_t due;              /* when it is to be fetched next */
    char error[STAPLE_ERROR]; /* of the last failure since the last success; "": none */
};

/* Gives the certificate its staple. `chain` holds the certificates above it; NULL: none. */
void staple_attach(X509 *certificate, const STACK_OF(X509) * chain);
/* NULL: the certificate has none. It lives as long as the certificate. */
struct staple *staple_of(const X509 *certificate);
/* Makes the connections of a listener show the responses. */
void staple_install(SSL_CTX *context);

/* Reads a response in DER from a file. True: it is used, or there is no such file. False: it is not
 * used; `error` says why. */
bool staple_load(struct staple *staple, const char *path, char error[STAPLE_ERROR]);
/* Takes a response, unless the staple has a newer one. False: it can't be used; `error` says why. */
bool staple_put(struct staple *staple, const unsigned char *bytes, size_t length, int64_t now,
                char error[STAPLE_ERROR]);
void staple_note_failure(struct staple *staple, const char *error, int64_t now);

/* When the response is to be fetched: at once if there is none, otherwise after half its time;
 * after a failure later and later. */
int64_t staple_due(struct staple *staple, int64_t now);
/* The URL of the responder and the bytes of the request, which the caller frees. NULL: nothing can
 * be fetched; `error` says why. */
char *staple_responder(struct staple *staple, unsigned char **request, size_t *length,
                       char error[STAPLE_ERROR]);
void staple_read(struct staple *staple, struct staple_report *report);
/* Writes what is shown with the certificate (tls/verify.h, struct tls_pki). */
void staple_describe(const X509 *certificate, char text[TLS_PKI_TEXT]);

#endif
