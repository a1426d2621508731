/*
 * Whom TLS clients trust, and what they show of themselves: the options of one place of the
 * configuration (the section "origin", an "origins" group, an ICAP service), and what one thread
 * makes of them for all clients of that place.
 *
 *     struct tls_trust_settings settings = {.ca_file = "/etc/ssl/our.pem", .verify = true};
 *     if (!tls_trust_load(&settings, error)) ...                   tls/trust_files.h
 *     if (strcmp(settings.digest, before.digest) != 0) ...        nothing made before is used
 *
 *     struct tls_trust *trust = tls_trust_new(&settings);
 *     struct tls_client *client = tls_client_of(trust, SLICE("www.example.com"), "http/1.1");
 *     tls_trust_release(&trust);                                  the client counts it
 *
 * The digest is the identity of a trust: connections and TLS sessions made under one digest are
 * never used under another one. So a reload that finds other files begins anew, and one that finds
 * the same files keeps them.
 *
 * Threads: settings are read-only once loaded; a trust and its clients belong to one thread.
 */
#ifndef RETORT_TLS_TRUST_H
#define RETORT_TLS_TRUST_H

#include <openssl/types.h>
#include <stdbool.h>

struct tls_trust;
struct tls_trust_files;

enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3 };

/* What becomes of stapled OCSP responses (RFC 6066 §8). TLS_STAPLE_OFF: none is asked for.
 * TLS_STAPLE_ON: a revoked certificate is refused, and one that demands a response and has no good
 * one. TLS_STAPLE_STRICT: a response that is not good for another reason is refused as well. */
enum tls_staple_check { TLS_STAPLE_OFF, TLS_STAPLE_ON, TLS_STAPLE_STRICT };

enum { TLS_TRUST_DIGEST = 65 }; /* SHA-256 in hexadecimal digits, and a NUL */

struct tls_trust_settings {
    char *ca_file;  /* certificates of authorities in PEM; NULL: what the system trusts */
    char *crl_file; /* revocation lists in PEM; NULL: none */
    char *certificate, *certificate_key; /* ours, in PEM; NULL: none */
    enum tls_version min_version;
    bool verify;              /* the server's certificate */
    bool fetch_intermediates; /* those that the server does not send, by AIA (RFC 5280 §4.2.2.1) */
    enum tls_staple_check check_staple;
    char digest[TLS_TRUST_DIGEST]; /* of all of the above and the contents of the files */
    struct tls_trust_files *files; /* the contents; see tls/trust_files.h */
};

/* A trust with one reference. The settings have been loaded. */
struct tls_trust *tls_trust_new(const struct tls_trust_settings *settings);
struct tls_trust *tls_trust_take(struct tls_trust *trust);
void tls_trust_release(struct tls_trust **trustp);
/* A sentence that says why no handshake can succeed; "": it can. */
const char *tls_trust_error(const struct tls_trust *trust);
/* For clients. NULL: see tls_trust_error. */
SSL_CTX *tls_trust_context(const struct tls_trust *trust);
/* Is a certificate shown to servers that ask for one? */
bool tls_trust_shows(const struct tls_trust *trust);
bool tls_trust_verifies(const struct tls_trust *trust);

#endif
