/*
 * Sentences for operators about certificates that are not trusted: what is wrong, with names and
 * dates, and what to do.
 *
 *     verify_words_for_chain(error, context);     "its certificate expired on 2024-02-29: ..."
 *
 * Each sentence speaks of the server as "it". Names from certificates are printable ASCII.
 *
 * Threads: pure.
 */
#ifndef RETORT_TLS_VERIFY_WORDS_H
#define RETORT_TLS_VERIFY_WORDS_H

#include "tls/ocsp.h"
#include "tls/verify.h"

/* After X509_verify_cert has failed. */
void verify_words_for_chain(char error[TLS_VERIFY_ERROR], X509_STORE_CTX *context);
/* The certificate is for other names. */
void verify_words_for_names(char error[TLS_VERIFY_ERROR], const X509 *certificate,
                            const char *host);
/* The certificate of `issuer` is missing. `url`: where it would be; NULL: not known. `reason`: why
 * it can't be fetched; NULL: nobody has tried. */
void verify_words_for_missing(char error[TLS_VERIFY_ERROR], const char *issuer, const char *url,
                              const char *reason);
/* `finding` NULL: the certificate demands a response, and there is none. */
void verify_words_for_staple(char error[TLS_VERIFY_ERROR], const struct ocsp_finding *finding);
/* The name of the certificate's issuer; the caller frees it. */
char *verify_words_issuer(const X509 *certificate);

#endif
