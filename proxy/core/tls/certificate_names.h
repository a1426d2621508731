/*
 * The names that a server's certificate is for (RFC 9525).
 *
 *     if (!certificate_names_include(certificate, "www.example.com")) {
 *         certificate_names_list(certificate, text, sizeof text);
 *         ... "the certificate is for " text
 *     }
 *
 * Only the subjectAltName counts; the common name never does. A host name is compared with the DNS
 * names in it. An IP address is compared with the IP addresses in it, never with the DNS names. A
 * wildcard is the whole leftmost label of a name, stands for exactly one label, and has at least
 * two labels behind it.
 *
 * Threads: pure.
 */
#ifndef RETORT_TLS_CERTIFICATE_NAMES_H
#define RETORT_TLS_CERTIFICATE_NAMES_H

#include "base/slice.h"

#include <openssl/types.h>

/* `host` is a name, with or without the dot at its end, or the text of an address without
 * brackets. */
bool certificate_names_include(const X509 *certificate, const char *host);
/* The rule for one DNS name of a certificate. */
bool certificate_names_match(struct slice pattern, struct slice host);
/* Writes the first names, in printable ASCII: "a.example, *.b.example and 7 more". "": none. */
void certificate_names_list(const X509 *certificate, char *text, size_t size);

#endif
