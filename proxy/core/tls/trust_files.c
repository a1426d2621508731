#include "tls/trust_files.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/slice.h"
#include "tls/context.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_MOST = 64 * 1024 * 1024 }; /* lists of large authorities have many megabytes */

static void digest_add(EVP_MD_CTX *digest, const void *bytes, size_t length) {
    int good = EVP_DigestUpdate(digest, bytes, length);
    ASSERT(good == 1);
}

static void digest_add_change(EVP_MD_CTX *digest, const char *path) {
    char text[64];
    struct stat status = {0};
    if (stat(path, &status) != 0)
        return;
    int length = snprintf(text, sizeof text, "%" PRId64 ".%09ld ", (int64_t)status.st_mtim.tv_sec,
                          status.st_mtim.tv_nsec);
    digest_add(digest, text, (size_t)length);
}

static void digest_write(EVP_MD_CTX *digest, char text[TLS_TRUST_DIGEST]) {
    unsigned char bytes[(TLS_TRUST_DIGEST - 1) / 2];
    int good = EVP_DigestFinal_ex(digest, bytes, NULL);
    ASSERT(good == 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

/* A password for a key: an encrypted key is an error, and nobody is asked. */
static int refuse_password(char *buffer, int size, int writing, void *owner) {
    (void)buffer, (void)size, (void)writing, (void)owner;
    return -1;
}

static bool trust_fail(char error[TLS_TRUST_ERROR], const char *option, const char *path,
                       const char *reason) {
    return failure(error, TLS_TRUST_ERROR, "%s: %.200s: %s", option, path, reason);
}

/* Reads a whole file into memory of OpenSSL, and adds it with its name to the digest. */
static BIO *trust_read(const char *option, const char *path, EVP_MD_CTX *digest,
                       char error[TLS_TRUST_ERROR]) {
    char bytes[16384];
    size_t length, all = 0;
    FILE *file = fopen(path, "re");
    BIO *bio = BIO_new(BIO_s_mem());
    ASSERT(bio != NULL);
    digest_add(digest, option, strlen(option) + 1);
    digest_add(digest, path, strlen(path) + 1);
    while (file != NULL && all <= FILE_MOST && (length = fread(bytes, 1, sizeof bytes, file)) > 0) {
        digest_add(digest, bytes, length);
        BIO_write(bio, bytes, (int)length);
        all += length;
    }
    bool bad = file == NULL || ferror(file);
    if (bad || all > FILE_MOST) {
        trust_fail(error, option, path, bad ? strerrordesc_np(errno) : "it is too large");
        BIO_free(bio);
        bio = NULL;
    }
    if (file != NULL)
        fclose(file);
    return bio;
}

/* True: the last read of PEM ended because nothing more was there. Otherwise the file is damaged. */
static bool trust_is_at_end(void) {
    bool end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    return end;
}

static struct stack_st_X509 *trust_read_certificates(const char *option, const char *path,
                                                     EVP_MD_CTX *digest,
                                                     char error[TLS_TRUST_ERROR]) {
    STACK_OF(X509) *list = sk_X509_new_null();
    BIO *bio = trust_read(option, path, digest, error);
    X509 *certificate;
    ERR_clear_error();
    while (bio != NULL && (certificate = PEM_read_bio_X509_AUX(bio, NULL, refuse_password, NULL)))
        sk_X509_push(list, certificate);
    bool whole = trust_is_at_end();
    if (bio != NULL && sk_X509_num(list) > 0 && whole) {
        BIO_free(bio);
        return list;
    }
    if (bio != NULL)
        trust_fail(error, option, path,
                   whole ? "it must contain certificates in PEM, and has none"
                         : "a certificate in it is damaged");
    BIO_free(bio);
    sk_X509_pop_free(list, X509_free);
    return NULL;
}

static struct stack_st_X509_CRL *trust_read_lists(const char *path, EVP_MD_CTX *digest,
                                                  char error[TLS_TRUST_ERROR]) {
    STACK_OF(X509_CRL) *lists = sk_X509_CRL_new_null();
    BIO *bio = trust_read("crl_file", path, digest, error);
    X509_CRL *list;
    ERR_clear_error();
    while (bio != NULL && (list = PEM_read_bio_X509_CRL(bio, NULL, refuse_password, NULL)))
        sk_X509_CRL_push(lists, list);
    bool whole = trust_is_at_end();
    if (bio != NULL && sk_X509_CRL_num(lists) > 0 && whole) {
        BIO_free(bio);
        return lists;
    }
    if (bio != NULL)
        trust_fail(error, "crl_file", path,
                   whole ? "it must contain revocation lists in PEM (BEGIN X509 CRL), and has none"
                         : "a revocation list in it is damaged");
    BIO_free(bio);
    sk_X509_CRL_pop_free(lists, X509_CRL_free);
    return NULL;
}

static EVP_PKEY *trust_read_key(const char *path, EVP_MD_CTX *digest, char error[TLS_TRUST_ERROR]) {
    BIO *bio = trust_read("certificate_key", path, digest, error);
    if (bio == NULL)
        return NULL;
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, refuse_password, NULL);
    ERR_clear_error();
    BIO_free(bio);
    if (key == NULL)
        trust_fail(error, "certificate_key", path,
                   "it must contain a private key in PEM, without a password");
    return key;
}

static bool trust_read_ours(const struct tls_trust_settings *trust, struct tls_trust_files *files,
                            EVP_MD_CTX *digest, char error[TLS_TRUST_ERROR]) {
    if (trust->certificate == NULL)
        return true;
    files->chain = trust_read_certificates("certificate", trust->certificate, digest, error);
    if (files->chain == NULL)
        return false;
    files->key = trust_read_key(trust->certificate_key, digest, error);
    if (files->key == NULL)
        return false;
    if (X509_check_private_key(sk_X509_value(files->chain, 0), files->key) == 1)
        return true;
    ERR_clear_error();
    return trust_fail(error, "certificate_key", trust->certificate_key,
                      "it is not the key of the certificate, which must be the first in its file");
}

static bool trust_read_files(const struct tls_trust_settings *trust, struct tls_trust_files *files,
                             EVP_MD_CTX *digest, char error[TLS_TRUST_ERROR]) {
    if (trust->ca_file != NULL && (files->authorities = trust_read_certificates(
                                       "ca_file", trust->ca_file, digest, error)) == NULL)
        return false;
    if (trust->crl_file != NULL &&
        (files->lists = trust_read_lists(trust->crl_file, digest, error)) == NULL)
        return false;
    return trust_read_ours(trust, files, digest, error);
}

bool tls_trust_load(struct tls_trust_settings *trust, char error[TLS_TRUST_ERROR]) {
    const char flags[] = {(char)('0' + trust->verify), (char)('0' + trust->fetch_intermediates),
                          (char)('0' + trust->check_staple), (char)('0' + trust->min_version)};
    struct tls_trust_files *files;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    int good = EVP_DigestInit_ex(digest, algorithm_sha256(), NULL);
    ASSERT(good == 1);
    tls_trust_unload(trust);
    ALLOC_OBJ(files, TLS_TRUST_FILES_MAGIC);
    files->references = 1;
    digest_add(digest, flags, sizeof flags);
    if (trust->ca_file == NULL) {
        digest_add_change(digest, X509_get_default_cert_file());
        digest_add_change(digest, X509_get_default_cert_dir());
    }
    if (trust_read_files(trust, files, digest, error)) {
        digest_write(digest, trust->digest);
        trust->files = files;
    } else
        tls_trust_files_release(&files);
    EVP_MD_CTX_free(digest);
    return trust->files != NULL;
}

void tls_trust_unload(struct tls_trust_settings *trust) {
    tls_trust_files_release(&trust->files);
}

struct tls_trust_files *tls_trust_files_take(struct tls_trust_files *files) {
    CHECK_OBJ(files, TLS_TRUST_FILES_MAGIC);
    atomic_fetch_add_explicit(&files->references, 1, memory_order_relaxed);
    return files;
}

void tls_trust_files_release(struct tls_trust_files **filesp) {
    struct tls_trust_files *files = *filesp;
    *filesp = NULL;
    if (files == NULL)
        return;
    CHECK_OBJ(files, TLS_TRUST_FILES_MAGIC);
    if (atomic_fetch_sub(&files->references, 1) != 1)
        return;
    sk_X509_pop_free(files->authorities, X509_free);
    sk_X509_CRL_pop_free(files->lists, X509_CRL_free);
    sk_X509_pop_free(files->chain, X509_free);
    EVP_PKEY_free(files->key);
    FREE_OBJ(files);
}
