/*
 * The algorithms of OpenSSL that are used for each connection. OpenSSL 3 looks an algorithm up by
 * its name, under locks, each time it is named; here each one is looked up once and kept.
 *
 *     EVP_Digest(bytes, length, digest, NULL, algorithm_sha256(), NULL);
 *
 * Threads: any.
 */
#ifndef RETORT_TLS_ALGORITHM_H
#define RETORT_TLS_ALGORITHM_H

#include <openssl/evp.h>

const EVP_MD *algorithm_sha256(void);
const EVP_CIPHER *algorithm_aes_256_cbc(void);

#endif
