/*
 * The contents of the files that a trust names: authorities, revocation lists, our certificate and
 * its key.
 *
 *     if (!tls_trust_load(&settings->trust, error)) ...    "ca_file: /etc/x.pem: it must contain ..."
 *     tls_trust_unload(&settings->trust);
 *
 * The files are read once, when the configuration is loaded. So a bad file refuses the
 * configuration, and workers never read files. Trusts of several threads hold the same contents.
 *
 * Threads: constant once loaded, and counted.
 */
#ifndef RETORT_TLS_TRUST_FILES_H
#define RETORT_TLS_TRUST_FILES_H

#include "tls/trust.h"

#include <openssl/x509.h>
#include <stdatomic.h>

enum { TLS_TRUST_ERROR = 400 };

struct tls_trust_files {
    unsigned magic;
#define TLS_TRUST_FILES_MAGIC 0x7457f17eu
    _Atomic unsigned references;
    STACK_OF(X509) * authorities; /* NULL: those of the system */
    STACK_OF(X509_CRL) * lists;   /* NULL: none */
    STACK_OF(X509) * chain;       /* our certificate and those above it; NULL: none */
    EVP_PKEY *key;                /* of it */
};

/* Reads the files and writes the digest. For the system's trust, the times of the last change of
 * the system's files stand for their contents. False: `error` begins with the name of the option,
 * and says what is wrong with the file. */
bool tls_trust_load(struct tls_trust_settings *trust, char error[TLS_TRUST_ERROR]);
void tls_trust_unload(struct tls_trust_settings *trust);

struct tls_trust_files *tls_trust_files_take(struct tls_trust_files *files);
void tls_trust_files_release(struct tls_trust_files **filesp);

#endif
