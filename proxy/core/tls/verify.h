/*
 * What is checked of a server's certificate beyond OpenSSL's own verification, and the words for
 * each failure.
 *
 *     tls_verify_install(context, &policy);                    once for each SSL_CTX of a client
 *     tls_verify_begin(ssl, "www.example.com");                for each connection
 *     result = SSL_connect(ssl);
 *     if (SSL_get_error(ssl, result) == SSL_ERROR_WANT_RETRY_VERIFY)
 *         url = tls_verify_wanted(ssl);         an issuer's certificate; NULL: handshake on at once
 *     if (it failed)
 *         error = tls_verify_error(ssl);        "": for another reason than the certificate
 *
 * OpenSSL verifies the chain up to a trusted root: signatures, times, constraints, revocation lists
 * and the strength of keys and signatures (security level 2: RSA and DH of 2048 bits, no SHA-1).
 * Here are added:
 * - the name rules of tls/certificate_text.h;
 * - missing intermediates: the handshake is suspended until their certificates are fetched
 *   (tls/intermediates.h). A chain may need TLS_VERIFY_HOPS requests, redirects included. A fetched
 *   certificate counts like one that the server sent: the chain must still end in a trusted root;
 * - stapled OCSP responses (RFC 6066 §8), and certificates that demand them (RFC 7633);
 * - revocation lists are needed for the server's certificate. For the certificates above it they
 *   are used when they are there.
 *
 * A resumed session (RFC 8446 §2.2) shows no certificate. Its certificate was verified for the same
 * name under the same trust, because a tls_client keeps its sessions to itself.
 *
 * Threads: those of the connection.
 */
#ifndef RETORT_TLS_VERIFY_H
#define RETORT_TLS_VERIFY_H

#include "tls/intermediates.h"
#include "tls/trust.h"

#include <openssl/types.h>
#include <stdbool.h>

enum { TLS_VERIFY_HOPS = 4, TLS_VERIFY_ERROR = 600 };

struct tls_verify_policy {
    bool fetch_intermediates;
    enum tls_staple_check staple;
    struct intermediates *intermediates; /* NULL: nothing can be fetched */
};

/* The policy must outlive the context. */
void tls_verify_install(SSL_CTX *context, const struct tls_verify_policy *policy);
/* `host` must outlive the connection. False: no memory. */
bool tls_verify_begin(SSL *ssl, const char *host);
/* The URL whose certificates the suspended handshake needs; NULL: none, it may go on at once. These
 * two may be called for any SSL. */
const char *tls_verify_wanted(const SSL *ssl);
/* A sentence without a capital letter that begins with "its certificate" or the like. */
const char *tls_verify_error(const SSL *ssl);

#endif
