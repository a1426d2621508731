/*
 * Where the certificate of an issuer can be fetched (Authority Information Access, RFC 5280
 * §4.2.2.1), and what was fetched.
 *
 *     char *url = aia_issuer_url(certificate);               NULL: it names none that we use
 *     ... fetch it ...
 *     STACK_OF(X509) *found = aia_parse(bytes, length);      NULL: no certificates
 *     sk_X509_pop_free(found, X509_free);
 *
 * Threads: pure.
 */
#ifndef RETORT_TLS_AIA_H
#define RETORT_TLS_AIA_H

#include <openssl/x509.h>
#include <stddef.h>

enum {
    AIA_URL_MOST = 1024,        /* bytes of a URL that is used */
    AIA_BYTES_MOST = 65536,     /* that are fetched from one URL */
    AIA_CERTIFICATES_MOST = 16, /* of one answer that are used */
};

/* Returns the first caIssuers URL with the scheme http, or NULL. The caller frees it. Only http:
 * the certificate is checked by its signature, and https could need a further fetch. */
char *aia_issuer_url(const X509 *certificate);
/* Reads one certificate in DER, certificates in PEM, or a PKCS #7 container of certificates (RFC
 * 5652, certs-only) in DER or PEM. NULL: there is none. The caller frees the stack. */
struct stack_st_X509 *aia_parse(const unsigned char *bytes, size_t length);

#endif
