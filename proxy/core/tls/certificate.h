/*
 * A certificate that a listener shows, with its chain and its private key.
 *
 *     char error[PEM_FILE_ERROR];
 *     struct certificate *certificate = certificate_load("/etc/retort/www.pem", error);
 *     ...
 *     certificate_free(&certificate);
 *
 * The file holds the certificate and then those of its issuers. The private key is looked for in
 * these places, for a file NAME.pem:
 *
 *     NAME.pem itself        as HAProxy has it
 *     NAME.pem.key
 *     NAME.key               lego: NAME.crt and NAME.key
 *     NAME-key.pem           mkcert
 *     privkey.pem            certbot, for fullchain.pem and cert.pem
 *
 * A certificate is refused when its key does not belong to it, when others can read the key, and
 * when OpenSSL will not use it (an RSA key shorter than 2048 bits, SHA-1).
 *
 * Threads: read-only after certificate_load.
 */
#ifndef RETORT_TLS_CERTIFICATE_H
#define RETORT_TLS_CERTIFICATE_H

#include "tls/pem_file.h"

#include <stdint.h>

/* What signs: a client that can't verify one kind gets another one. */
enum certificate_kind { CERTIFICATE_ECDSA, CERTIFICATE_RSA, CERTIFICATE_EDDSA, CERTIFICATE_KINDS };

enum { CERTIFICATE_NAME_MAX = 253 };

struct certificate {
    unsigned magic;
#define CERTIFICATE_MAGIC 0xce47f1ceu
    char *file;
    X509 *leaf;
    struct stack_st_X509 *chain; /* the issuers' certificates */
    EVP_PKEY *key;
    enum certificate_kind kind;
    char **names; /* dNSNames of the SAN in lower case; "*.example.com" for one label more */
    size_t name_count;
    int64_t expires; /* seconds since 1970; it may be over */
};

/* NULL: `error` says why. Logs what is doubtful but can be used. */
struct certificate *certificate_load(const char *path, char error[PEM_FILE_ERROR]);
void certificate_free(struct certificate **certificatep);
/* "ECDSA", "RSA" or "EdDSA". */
const char *certificate_kind_name(enum certificate_kind kind);
/* The name under which people know the certificate: its first DNS name, or its file. */
const char *certificate_name(const struct certificate *certificate);

#endif
