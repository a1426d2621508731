#include "tls/certificate.h"

#include "base/assert.h"
#include "base/log.h"
#include "tls/certificate_text.h"
#include "tls/context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *certificate_kind_name(enum certificate_kind kind) {
    static const char *const names[] = {"ECDSA", "RSA", "EdDSA"};
    return names[kind];
}

const char *certificate_name(const struct certificate *certificate) {
    return certificate->name_count > 0 ? certificate->names[0] : certificate->file;
}

/* Replaces what follows `base` in the path by `ending`. */
static char *with_ending(const char *path, size_t base, const char *ending) {
    char *other = xmalloc(base + strlen(ending) + 1);
    memcpy(other, path, base);
    strcpy(other + base, ending);
    return other;
}

/* Returns the first of the places that exists; NULL: none does. The caller frees the path. */
static char *find_key_file(const char *path) {
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(file, '.');
    size_t whole = strlen(path), stem = dot != NULL ? (size_t)(dot - path) : whole;
    bool certbot = strcmp(file, "fullchain.pem") == 0 || strcmp(file, "cert.pem") == 0;
    char *const places[] = {
        with_ending(path, whole, ".key"),
        with_ending(path, stem, ".key"),
        with_ending(path, stem, "-key.pem"),
        certbot ? with_ending(path, (size_t)(file - path), "privkey.pem") : NULL,
    };
    char *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (found == NULL && places[i] != NULL && access(places[i], F_OK) == 0)
            found = places[i];
        else
            free(places[i]);
    }
    return found;
}

static bool load_key(struct certificate *certificate, const struct pem_file *file,
                     char error[PEM_FILE_ERROR]) {
    if (pem_file_has_key(file)) {
        certificate->key = pem_file_key(file, error);
        return certificate->key != NULL;
    }
    char *path = find_key_file(file->path);
    struct pem_file key;
    if (path == NULL)
        return pem_file_fail(certificate->file, error,
                             "comes without its private key: append the key to the file, or "
                             "write it into %.200s.key",
                             file->path);
    if (pem_file_read(&key, path, error)) {
        certificate->key = pem_file_key(&key, error);
        pem_file_release(&key);
    }
    free(path);
    return certificate->key != NULL;
}

/* The certificate that the key belongs to need not be the first in the file. The others are its
 * chain. */
static bool take_leaf(struct certificate *certificate, struct stack_st_X509 *certificates,
                      char error[PEM_FILE_ERROR]) {
    certificate->chain = certificates;
    for (int i = 0; i < sk_X509_num(certificates); i++)
        if (X509_check_private_key(sk_X509_value(certificates, i), certificate->key) == 1) {
            certificate->leaf = sk_X509_delete(certificates, i);
            ERR_clear_error();
            return true;
        }
    ERR_clear_error();
    return pem_file_fail(certificate->file, error,
                         "and its private key do not belong together: the certificate was made "
                         "for another key");
}

static bool find_kind(struct certificate *certificate, char error[PEM_FILE_ERROR]) {
    switch (EVP_PKEY_get_base_id(certificate->key)) {
    case EVP_PKEY_EC: certificate->kind = CERTIFICATE_ECDSA; return true;
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS: certificate->kind = CERTIFICATE_RSA; return true;
    case EVP_PKEY_ED25519:
    case EVP_PKEY_ED448: certificate->kind = CERTIFICATE_EDDSA; return true;
    default:
        return pem_file_fail(certificate->file, error,
                             "has a kind of key that TLS servers do not use: make a key of the "
                             "kind ECDSA P-256 or RSA with 2048 bits");
    }
}

/* Lets OpenSSL say at load what it would say at each handshake. */
static bool is_usable(struct certificate *certificate, char error[PEM_FILE_ERROR]) {
    SSL_CTX *context = tls_context_new(TLS_server_method());
    ASSERT(context != NULL);
    ERR_clear_error();
    bool good = SSL_CTX_use_cert_and_key(context, certificate->leaf, certificate->key,
                                         certificate->chain, 1) == 1;
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    if (!good)
        pem_file_fail(certificate->file, error,
                      "can't be used (%s): a certificate needs a key of ECDSA P-256 or of RSA "
                      "with at least 2048 bits, and a signature with SHA-256 or better",
                      reason != NULL ? reason : "unknown reason");
    ERR_clear_error();
    SSL_CTX_free(context);
    return good;
}

static void load_dates(struct certificate *certificate) {
    certificate->expires = certificate_text_expiry(certificate->leaf);
    if (certificate_text_beginning(certificate->leaf) > (int64_t)time(NULL))
        log_warn("%s is not valid yet: check the clock of this machine", certificate->file);
}

/* Copies the name in lower case; NULL: it is no host name, nor a wildcard in place of one whole
 * label. */
static char *host_name(const char *bytes, size_t length) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
    bool wildcard = length > 2 && bytes[0] == '*' && bytes[1] == '.';
    if (length == 0 || length > CERTIFICATE_NAME_MAX)
        return NULL;
    char *name = xcalloc(1, length + 1);
    for (size_t i = 0; i < length; i++)
        name[i] = bytes[i] >= 'A' && bytes[i] <= 'Z' ? (char)(bytes[i] + 'a' - 'A') : bytes[i];
    if (strspn(name + (wildcard ? 1 : 0), allowed) == length - (wildcard ? 1 : 0))
        return name;
    free(name);
    return NULL;
}

static void certificate_add_name(struct certificate *certificate, const ASN1_IA5STRING *text) {
    const char *bytes = (const char *)ASN1_STRING_get0_data(text);
    char *name = host_name(bytes, (size_t)ASN1_STRING_length(text));
    if (name != NULL)
        certificate->names[certificate->name_count++] = name;
    else
        log_warn("%s has a DNS name that is not a host name, which is left out", certificate->file);
}

/* Only the names of the SAN count (RFC 9525 §2): clients ignore the CN. */
static void load_names(struct certificate *certificate) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate->leaf, NID_subject_alt_name, NULL, NULL);
    int count = names != NULL ? sk_GENERAL_NAME_num(names) : 0;
    certificate->names = xcalloc((size_t)count + 1, sizeof *certificate->names);
    for (int i = 0; i < count; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS)
            certificate_add_name(certificate, name->d.dNSName);
    }
    GENERAL_NAMES_free(names);
    ERR_clear_error();
    if (count == 0)
        log_warn("%s has no subject alternative name, so today's clients refuse it",
                 certificate->file);
}

/* Certificates of public authorities tell where their issuer's is, and all have an intermediate. */
static void check_chain(const struct certificate *certificate) {
    bool names_issuer = X509_get_ext_by_NID(certificate->leaf, NID_info_access, -1) >= 0;
    if (sk_X509_num(certificate->chain) == 0 && names_issuer)
        log_warn("%s holds no certificate of its issuer: clients that do not know the issuer "
                 "refuse it; use the file with the whole chain (fullchain.pem)",
                 certificate->file);
}

static bool read_certificate(struct certificate *certificate, const struct pem_file *file,
                             char error[PEM_FILE_ERROR]) {
    struct stack_st_X509 *certificates = pem_file_certificates(file, error);
    if (certificates == NULL)
        return false;
    if (!load_key(certificate, file, error)) {
        sk_X509_pop_free(certificates, X509_free);
        return false;
    }
    return take_leaf(certificate, certificates, error);
}

static bool load_certificate(struct certificate *certificate, const char *path,
                             char error[PEM_FILE_ERROR]) {
    struct pem_file file;
    if (!pem_file_read(&file, path, error))
        return false;
    bool read = read_certificate(certificate, &file, error);
    pem_file_release(&file);
    if (!read || !find_kind(certificate, error) || !is_usable(certificate, error))
        return false;
    load_dates(certificate);
    load_names(certificate);
    check_chain(certificate);
    return true;
}

struct certificate *certificate_load(const char *path, char error[PEM_FILE_ERROR]) {
    struct certificate *certificate;
    ALLOC_OBJ(certificate, CERTIFICATE_MAGIC);
    certificate->file = xstrdup(path);
    if (!load_certificate(certificate, path, error))
        certificate_free(&certificate);
    return certificate;
}

void certificate_free(struct certificate **certificatep) {
    struct certificate *certificate = *certificatep;
    *certificatep = NULL;
    if (certificate == NULL)
        return;
    CHECK_OBJ(certificate, CERTIFICATE_MAGIC);
    for (size_t i = 0; i < certificate->name_count; i++)
        free(certificate->names[i]);
    free(certificate->names);
    EVP_PKEY_free(certificate->key);
    X509_free(certificate->leaf);
    sk_X509_pop_free(certificate->chain, X509_free);
    free(certificate->file);
    FREE_OBJ(certificate);
}
