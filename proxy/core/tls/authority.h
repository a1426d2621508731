/*
 * The certificate authority of the proxy (`authority { certificate key }`): the CA that signs the
 * certificates for intercepted connections. `retortctl ca create` makes the files.
 *
 *     char error[PEM_FILE_ERROR];
 *     struct authority *authority = authority_load("/etc/retort/ca.pem", "/etc/retort/ca.key", error);
 *     ...
 *     authority_release(&authority);
 *
 *     authority = authority_make("Retort CA", "Example Ltd", now, now + 10 * YEAR);      a new one
 *
 * The certificate may be that of a root, or of an intermediate CA; then the certificates of its
 * issuers follow in the same file, and clients get them behind the leaf. authority_load refuses
 * what would only fail later, at a client: a key that every user can read or that does not belong
 * to the certificate, a certificate that is no CA, may not sign certificates, is too weak or has
 * expired, and a chain that does not fit.
 *
 * The settings own one reference. A leaf and whoever mints leaves take references of their own, so
 * that a reload may replace the authority at any time.
 *
 * Threads: read-only after authority_load; the reference count is atomic.
 * Units: seconds since 1970.
 */
#ifndef RETORT_TLS_AUTHORITY_H
#define RETORT_TLS_AUTHORITY_H

#include "tls/pem_file.h"

#include <openssl/x509.h>
#include <stdatomic.h>
#include <stdint.h>

enum { AUTHORITY_DIGEST = 32 };

struct authority {
    unsigned magic;
#define AUTHORITY_MAGIC 0xa0740417u
    _Atomic unsigned references;
    X509 *certificate;
    EVP_PKEY *key;
    EVP_MD *hash;                      /* for signatures of the key */
    struct stack_st_X509 *chain;       /* what clients get behind a leaf; empty for a root */
    ASN1_OCTET_STRING *key_identifier; /* RFC 5280 §4.2.1.2; computed if the certificate has none */
    int64_t begins, expires;           /* the validity of the certificate and of its issuers */
    unsigned char digest[AUTHORITY_DIGEST]; /* SHA-256 of the certificate */
};

/* NULL: `error` is a sentence that begins with a path and says what to do. */
struct authority *authority_load(const char *certificate_path, const char *key_path,
                                 char error[PEM_FILE_ERROR]);
/* Makes a root: a new P-256 key, and a certificate that may sign leaves but no CAs (pathlen 0). The
 * name has at most 64 bytes. */
struct authority *authority_make(const char *common_name, const char *organization, int64_t begins,
                                 int64_t expires);
struct authority *authority_reference(struct authority *authority);
void authority_release(struct authority **authorityp);
/* Do both sign with the same certificate? NULL is equal to NULL. */
bool authority_equal(const struct authority *a, const struct authority *b);
/* The key identifier that a certificate gets: the SHA-1 of its key (method 1 of RFC 5280 §4.2.1.2).
 * Functions of OpenSSL that read extensions must not be called for a certificate in the provenance,
 * because it remembers what it found. The caller frees the identifier. */
ASN1_OCTET_STRING *authority_key_identifier(const X509 *certificate);

/*
 * How people install the certificate of the proxy's authority: one text for each system, which
 * `retortctl ca export` and the page of the proxy (`ca_page`) show.
 *
 *     for (const struct authority_hint *hint = authority_hints; hint->system != NULL; hint++)
 *         printf("%s\n%s\n", hint->system, hint->steps);
 *
 * In the steps, the file is called retort-ca.crt, in PEM.
 *
 * Threads: constants.
 */

struct authority_hint {
    const char *system;
    const char *steps; /* lines */
};

extern const struct authority_hint authority_hints[]; /* ends with a system that is NULL */

#endif
