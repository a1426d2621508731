/*
 * Until when certificates and revocation lists are good: of several, the one that ends first.
 *
 *     struct validity validity = VALIDITY_OF_NOTHING;
 *     validity_add_certificates(&validity, files->authorities);
 *     if (validity_is_known(&validity)) ...          validity.ends, validity.name
 *
 * The name belongs to the certificate or the list.
 *
 * Threads: pure. Units: seconds since 1970.
 */
#ifndef RETORT_TLS_VALIDITY_H
#define RETORT_TLS_VALIDITY_H

#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

struct validity {
    int64_t ends;
    const X509_NAME *name; /* the subject of the certificate, or the issuer of the list */
};

#define VALIDITY_OF_NOTHING ((struct validity){.ends = INT64_MAX})

static inline bool validity_is_known(const struct validity *validity) {
    return validity->name != NULL;
}

void validity_add_certificate(struct validity *validity, const X509 *certificate);
/* NULL: none. */
void validity_add_certificates(struct validity *validity, const struct stack_st_X509 *certificates);
/* A list without nextUpdate stays good (RFC 5280 §5.1.2.5). NULL: none. */
void validity_add_lists(struct validity *validity, const struct stack_st_X509_CRL *lists);

#endif
