/*
 * What the SSL_CTX of a client and of a server have in common: the lowest version, what OpenSSL
 * must not do, and how it uses memory.
 *
 *     SSL_CTX *context = tls_context_new(TLS_client_method());
 */
#ifndef RETORT_TLS_CONTEXT_H
#define RETORT_TLS_CONTEXT_H

#include <openssl/ssl.h>

/* NULL: no memory. */
SSL_CTX *tls_context_new(const SSL_METHOD *method);

#endif
