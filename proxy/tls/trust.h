/*
 * Whom a TLS client trusts, and what it shows of itself: the options of one place of the
 * configuration (the section "origin", an "origins" group, an ICAP service).
 *
 *     struct tls_trust_settings trust = {.ca_file = "/etc/ssl/our.pem", .verify = true};
 *     tls_trust_note_digest(&trust);
 *     if (strcmp(trust.digest, before.digest) != 0) ...           nothing made before is used
 *
 * The digest is the identity of a trust: connections and TLS sessions made under one digest are
 * never used under another one. So a reload that finds other files begins anew, and one that finds
 * the same files keeps them.
 *
 * Threads: read-only once loaded.
 */
#ifndef RETORT_TLS_TRUST_H
#define RETORT_TLS_TRUST_H

#include <stdbool.h>

enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3 };

enum { TLS_TRUST_DIGEST = 65 }; /* SHA-256 in hexadecimal digits, and a NUL */

struct tls_trust_settings {
    char *ca_file;  /* certificates of authorities in PEM; NULL: what the system trusts */
    char *crl_file; /* revocation lists in PEM; NULL: none */
    char *certificate, *certificate_key; /* ours, in PEM; NULL: none */
    enum tls_version min_version;
    bool verify;              /* the server's certificate */
    bool fetch_intermediates; /* those that the server does not send, by AIA (RFC 5280 §4.2.2.1) */
    bool check_staple;        /* stapled OCSP responses (RFC 6066 §8) */
    char digest[TLS_TRUST_DIGEST]; /* of all of the above and the content of the files */
};

/* Writes the digest. Files that can't be read count as empty. For the system's trust, the times of
 * the last change stand for the content. */
void tls_trust_note_digest(struct tls_trust_settings *trust);

#endif
