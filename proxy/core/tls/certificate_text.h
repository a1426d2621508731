/*
 * What stands in an X.509 certificate (RFC 5280), as text for people, logs and header fields.
 *
 *     char *subject = certificate_text_name(X509_get_subject_name(certificate));
 *     log_info("%s expires at %" PRId64, subject, certificate_text_expiry(certificate));
 *     free(subject);
 *
 * Each text is printable ASCII without line breaks, whatever the certificate contains.
 *
 * Threads: pure.
 */
#ifndef RETORT_TLS_CERTIFICATE_TEXT_H
#define RETORT_TLS_CERTIFICATE_TEXT_H

#include "base/slice.h"

#include <openssl/types.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the name in the form of RFC 4514, "CN=alice,O=Example". A name longer than 1 KB becomes
 * "(too long)", because a part of a name could be taken for another name. The caller frees the
 * text. */
char *certificate_text_name(const X509_NAME *name);
/* Returns the serial number in hexadecimal digits. The caller frees the text. */
char *certificate_text_serial(const X509 *certificate);
/* Writes the SHA-256 of the certificate in hexadecimal digits, with a NUL. */
enum { CERTIFICATE_TEXT_FINGERPRINT = 65 };
void certificate_text_fingerprint(const X509 *certificate, char text[CERTIFICATE_TEXT_FINGERPRINT]);
/* The ends of the certificate's validity in seconds since 1970; 0: the certificate has a malformed
 * time. */
int64_t certificate_text_expiry(const X509 *certificate);
int64_t certificate_text_beginning(const X509 *certificate);
/* Writes the day of such a time, in UTC: "2026-11-22". */
enum { CERTIFICATE_TEXT_DATE = 32 };
void certificate_text_date(int64_t when, char text[CERTIFICATE_TEXT_DATE]);

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

/*
 * The names that a server's certificate is for (RFC 9525). Only the subjectAltName counts; the common name never
 * does. A host name is compared with the DNS names in it. An IP address is compared with the IP addresses in
 * it, never with the DNS names. A wildcard is the whole leftmost label of a name, stands for exactly one
 * label, and has at least two labels behind it.
 */

/* `host` is a name, with or without the dot at its end, or the text of an address without
 * brackets. */
bool certificate_names_include(const X509 *certificate, const char *host);
/* The rule for one DNS name of a certificate. */
bool certificate_names_match(struct slice pattern, struct slice host);
/* Writes the first names, in printable ASCII: "a.example, *.b.example and 7 more". "": none. */
void certificate_names_list(const X509 *certificate, char *text, size_t size);

#endif
