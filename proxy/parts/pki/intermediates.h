/*
 * Intermediate certificates that servers did not send: those that were fetched, and the failures.
 *
 * Verification asks for the certificates of a URL (pki/part.c). When they are not known, the
 * handshake is suspended, and net/dial.h has them fetched:
 *
 *     switch (intermediates_find(url, &found)) {
 *     case INTERMEDIATES_KNOWN: ...            found.certificates; the caller frees the stack
 *     case INTERMEDIATES_FAILED: ...           found.error says why
 *     case INTERMEDIATES_UNKNOWN: ...          suspend the handshake
 *
 *     if (intermediates_await(url, &waiter, mailbox, task)) ...     the caller must fetch
 *     intermediates_put(url, certificates, hops, NULL, loop);       wakes all that wait
 *
 * Each URL is fetched once at a time, for all workers together. Certificates are remembered for a
 * day and failures for a minute; at most INTERMEDIATES_KEPT URLs are remembered. What is remembered
 * is trusted no more than what a server sends.
 *
 * Threads: any.
 */
#ifndef RETORT_PKI_INTERMEDIATES_H
#define RETORT_PKI_INTERMEDIATES_H

#include "event/waiter.h"

#include <openssl/x509.h>
#include <stddef.h>

enum { INTERMEDIATES_KEPT = 512, INTERMEDIATES_ERROR = 200 };

enum intermediates_state { INTERMEDIATES_UNKNOWN, INTERMEDIATES_KNOWN, INTERMEDIATES_FAILED };

struct intermediates_found {
    STACK_OF(X509) * certificates;
    unsigned hops; /* requests that the fetch took: one, and one for each redirect */
    char error[INTERMEDIATES_ERROR];
};

/* At the end of the process. */
void intermediates_drop_all(void);

/* Fills in *found, except for INTERMEDIATES_UNKNOWN. */
enum intermediates_state intermediates_find(const char *url, struct intermediates_found *found);
/* The task runs when something about the URL is known. True: nobody fetches the URL yet, so the
 * caller must do so and call intermediates_put in any case. */
bool intermediates_await(const char *url, struct waiter **waiter, struct mailbox *mailbox,
                         struct task *task);
void intermediates_forget(struct waiter **waiter);
/* Ends a fetch. `certificates` are copied by reference; NULL: the fetch failed, and `error` says
 * why. `hops`: the requests that were made. `loop` is the caller's own. */
void intermediates_put(const char *url, const STACK_OF(X509) * certificates, unsigned hops,
                       const char *error, const struct loop *loop);

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
