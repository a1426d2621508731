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
 * - with the part pki, missing intermediates: the handshake is suspended until their certificates are
 *   fetched (pki/intermediates.h). A chain may need TLS_VERIFY_HOPS requests, redirects included. A fetched
 *   certificate counts like one that the server sent: the chain must still end in a trusted root;
 * - with it, too, stapled OCSP responses (RFC 6066 §8), and certificates that demand them (RFC 7633);
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

#include "tls/trust.h"

#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

struct net_context;
struct task;
struct waiter;

enum { TLS_VERIFY_HOPS = 4, TLS_VERIFY_ERROR = 600, TLS_VERIFY_DATE = 32, TLS_PKI_TEXT = 332 };

struct tls_verify_policy {
    bool fetch_intermediates;
    enum tls_staple_check staple;
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

/* For the part pki: the verification of one connection, and the words of its sentences. */
struct tls_verification {
    unsigned magic;
#define TLS_VERIFICATION_MAGIC 0x7e41f1edu
    const struct tls_verify_policy *policy;
    const char *host;
    unsigned hops;                      /* requests that the fetched certificates took */
    char *wanted;                       /* URL; NULL: none */
    char *last_used;                    /* URL whose certificates were added last; NULL: none */
    STACK_OF(X509) * fetched, *offered; /* offered: the server's and the fetched */
    char error[TLS_VERIFY_ERROR];
};

struct tls_verification *tls_verification_of(const SSL *ssl);
const char *tls_verify_date(char text[TLS_VERIFY_DATE], int64_t seconds);
/* The certificate of the issuer of `last` is missing. `fetch`: ", and can't be fetched ..."; or "". */
void tls_verify_say_missing(struct tls_verification *verification, const X509 *last,
                            const char *fetch);

/* What the part pki does with certificates (part.h). */
struct tls_pki {
    /* The connections of a listener show the OCSP responses of its certificates. */
    void (*staple)(SSL_CTX *context);
    /* Connections to servers ask for responses, and judge them. */
    void (*check_staple)(SSL_CTX *context);
    /* Looks for the issuer of the last certificate of a chain. True: the handshake is to be suspended, to fetch the issuer, or
     * only to verify once more. False: `error` says why not. */
    bool (*complete)(struct tls_verification *verification, X509 *last);
    /* Offers the fetched certificates together with those of the server. False: no memory. */
    bool (*offer)(struct tls_verification *verification, X509_STORE_CTX *context);
    /* Has the certificates of the URL fetched: the task runs when something is known of it. */
    void (*fetch)(struct net_context *net, const char *url, struct waiter **waiter,
                  struct task *task);
    void (*forget)(struct waiter **waiter);
    /* Of a listener's certificate: "off", "none", "none: it has expired", "good until 2026-01-31" or "revoked". */
    void (*describe)(const X509 *certificate, char text[TLS_PKI_TEXT]);
};

/* NULL: this retort was built without it. */
const struct tls_pki *tls_pki(void);

#endif
