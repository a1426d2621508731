/*
 * What the SSL_CTX of a client and of a server have in common: the lowest version, the least
 * strength, what OpenSSL must not do, and how it uses memory.
 *
 *     SSL_CTX *context = tls_context_new(TLS_client_method());
 */
#ifndef RETORT_TLS_CONTEXT_H
#define RETORT_TLS_CONTEXT_H

#include <openssl/evp.h>
#include <openssl/ssl.h>

/* Of OpenSSL: RSA and DH of 2048 bits, no SHA-1. */
enum { TLS_SECURITY_LEVEL = 2 };

/* NULL: no memory. */
SSL_CTX *tls_context_new(const SSL_METHOD *method);

/*
 * The algorithms of OpenSSL that are used for each connection. OpenSSL 3 looks an algorithm up by
 * its name, under locks, each time it is named; here each one is looked up once and kept.
 *
 *     EVP_Digest(bytes, length, digest, NULL, algorithm_sha256(), NULL);
 *
 * Threads: any.
 */

const EVP_MD *algorithm_sha256(void);
const EVP_CIPHER *algorithm_aes_256_cbc(void);

#endif
