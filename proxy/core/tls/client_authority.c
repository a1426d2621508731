#include "tls/client_authority.h"

#include "base/assert.h"
#include "base/failure.h"
#include "base/log.h"
#include "tls/certificate_text.h"
#include "tls/context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>

struct client_authority {
    unsigned magic;
#define CLIENT_AUTHORITY_MAGIC 0xc11ea047u
    _Atomic unsigned references;
    struct stack_st_X509 *authorities;
    struct stack_st_X509_CRL *revoked; /* NULL: nothing is */
    unsigned char digest[CLIENT_AUTHORITY_DIGEST];
};

struct shown_certificate {
    unsigned magic;
#define SHOWN_CERTIFICATE_MAGIC 0x5407ce47u
    X509 *leaf;
    struct stack_st_X509 *chain; /* of its issuers, as far as the client has sent them; or NULL */
    char *subject;
};

static bool read_authorities(struct client_authority *authority, const char *path,
                             EVP_MD_CTX *digest, char error[PEM_FILE_ERROR]) {
    struct pem_file file;
    if (!pem_file_read(&file, path, error))
        return false;
    EVP_DigestUpdate(digest, file.text, file.length + 1);
    authority->authorities = pem_file_certificates(&file, error);
    pem_file_release(&file);
    return authority->authorities != NULL;
}

static void check_list(const X509_CRL *list, const char *path) {
    const ASN1_TIME *next = X509_CRL_get0_nextUpdate(list);
    if (next != NULL && X509_cmp_current_time(next) < 0)
        log_warn("%s holds a revocation list that is out of date: clients are refused until a new "
                 "list is there",
                 path);
}

static bool read_revoked(struct client_authority *authority, const char *path, EVP_MD_CTX *digest,
                         char error[PEM_FILE_ERROR]) {
    struct pem_file file;
    X509_CRL *list;
    if (path == NULL)
        return true;
    if (!pem_file_read(&file, path, error))
        return false;
    EVP_DigestUpdate(digest, file.text, file.length + 1);
    BIO *bio = BIO_new_mem_buf(file.text, (int)file.length);
    authority->revoked = sk_X509_CRL_new_null();
    ERR_clear_error();
    while ((list = PEM_read_bio_X509_CRL(bio, NULL, NULL, NULL)) != NULL) {
        check_list(list, path);
        sk_X509_CRL_push(authority->revoked, list);
    }
    bool whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    BIO_free(bio);
    pem_file_release(&file);
    if (whole && sk_X509_CRL_num(authority->revoked) > 0)
        return true;
    return failure(error, PEM_FILE_ERROR,
                   "%.256s holds %s: it must hold lists in PEM (openssl crl -in "
                   "OLD -inform DER -out NEW)",
                   path, whole ? "no revocation list" : "a revocation list that can't be read");
}

struct client_authority *client_authority_load(const char *ca_file, const char *crl_file,
                                               char error[PEM_FILE_ERROR]) {
    struct client_authority *authority;
    ALLOC_OBJ(authority, CLIENT_AUTHORITY_MAGIC);
    authority->references = 1;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    EVP_DigestInit_ex(digest, algorithm_sha256(), NULL);
    bool good = read_authorities(authority, ca_file, digest, error) &&
                read_revoked(authority, crl_file, digest, error);
    EVP_DigestFinal_ex(digest, authority->digest, NULL);
    EVP_MD_CTX_free(digest);
    if (!good)
        client_authority_release(&authority);
    return authority;
}

struct client_authority *client_authority_reference(struct client_authority *authority) {
    CHECK_OBJ(authority, CLIENT_AUTHORITY_MAGIC);
    atomic_fetch_add_explicit(&authority->references, 1, memory_order_relaxed);
    return authority;
}

void client_authority_release(struct client_authority **authorityp) {
    struct client_authority *authority = *authorityp;
    *authorityp = NULL;
    if (authority == NULL)
        return;
    CHECK_OBJ(authority, CLIENT_AUTHORITY_MAGIC);
    if (atomic_fetch_sub_explicit(&authority->references, 1, memory_order_acq_rel) != 1)
        return;
    sk_X509_pop_free(authority->authorities, X509_free);
    sk_X509_CRL_pop_free(authority->revoked, X509_CRL_free);
    FREE_OBJ(authority);
}

static X509_STORE *client_authority_store(const struct client_authority *authority) {
    X509_STORE *store = X509_STORE_new();
    ASSERT(store != NULL);
    for (int i = 0; i < sk_X509_num(authority->authorities); i++)
        X509_STORE_add_cert(store, sk_X509_value(authority->authorities, i));
    for (int i = 0; i < sk_X509_CRL_num(authority->revoked); i++)
        X509_STORE_add_crl(store, sk_X509_CRL_value(authority->revoked, i));
    if (authority->revoked != NULL)
        X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    return store;
}

/* A store of its own for each context: workers would contend for the lock of a shared one. */
void client_authority_apply(const struct client_authority *authority, SSL_CTX *context) {
    CHECK_OBJ(authority, CLIENT_AUTHORITY_MAGIC);
    for (int i = 0; i < sk_X509_num(authority->authorities); i++)
        SSL_CTX_add_client_CA(context, sk_X509_value(authority->authorities, i));
    SSL_CTX_set_cert_store(context, client_authority_store(authority));
}

void client_authority_validity(const struct client_authority *authority,
                               struct validity *authorities, struct validity *lists) {
    CHECK_OBJ(authority, CLIENT_AUTHORITY_MAGIC);
    validity_add_certificates(authorities, authority->authorities);
    validity_add_lists(lists, authority->revoked);
}

const unsigned char *client_authority_digest(const struct client_authority *authority) {
    CHECK_OBJ(authority, CLIENT_AUTHORITY_MAGIC);
    return authority->digest;
}

bool client_authority_accepts(const struct client_authority *authority,
                              const struct shown_certificate *shown) {
    CHECK_OBJ(authority, CLIENT_AUTHORITY_MAGIC);
    CHECK_OBJ(shown, SHOWN_CERTIFICATE_MAGIC);
    X509_STORE *store = client_authority_store(authority);
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    ASSERT(context != NULL);
    bool good = X509_STORE_CTX_init(context, store, shown->leaf, shown->chain) == 1;
    if (good) {
        X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_CLIENT);
        X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(context), TLS_SECURITY_LEVEL);
        good = X509_verify_cert(context) == 1;
    }
    X509_STORE_CTX_free(context);
    X509_STORE_free(store);
    ERR_clear_error();
    return good;
}

struct shown_certificate *shown_certificate_new(SSL *ssl) {
    struct shown_certificate *shown;
    struct stack_st_X509 *chain = SSL_get_peer_cert_chain(ssl);
    X509 *leaf = SSL_get1_peer_certificate(ssl);
    if (leaf == NULL)
        return NULL;
    ALLOC_OBJ(shown, SHOWN_CERTIFICATE_MAGIC);
    shown->leaf = leaf;
    shown->chain = chain != NULL ? X509_chain_up_ref(chain) : NULL;
    shown->subject = certificate_text_name(X509_get_subject_name(leaf));
    return shown;
}

void shown_certificate_free(struct shown_certificate **shownp) {
    struct shown_certificate *shown = *shownp;
    *shownp = NULL;
    if (shown == NULL)
        return;
    CHECK_OBJ(shown, SHOWN_CERTIFICATE_MAGIC);
    X509_free(shown->leaf);
    sk_X509_pop_free(shown->chain, X509_free);
    free(shown->subject);
    FREE_OBJ(shown);
}

const char *shown_certificate_subject(const struct shown_certificate *shown) {
    CHECK_OBJ(shown, SHOWN_CERTIFICATE_MAGIC);
    return shown->subject;
}
