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

#include <openssl/x509.h>
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
/* When a revocation list is out of date; 0: it does not say so. */
int64_t certificate_text_list_end(const X509_CRL *list);
/* Writes the day of such a time, in UTC: "2026-11-22". */
enum { CERTIFICATE_TEXT_DATE = 32 };
void certificate_text_date(int64_t when, char text[CERTIFICATE_TEXT_DATE]);

#endif
