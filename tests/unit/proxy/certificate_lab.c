#include "certificate_lab.h"

#include "suites.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

enum { DAY = 86400 };

static X509 *signed_certificate(EVP_PKEY *key, const struct certificate_order *order) {
    static long serial;
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);
    const char *cn = order->cn != NULL ? order->cn : "test";
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -30L * DAY);
    X509_gmtime_adj(X509_getm_notAfter(certificate), (long)order->days * DAY + 60);
    X509_set_pubkey(certificate, key);
    if (order->names != NULL) {
        X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, order->names);
        ck_assert_ptr_nonnull(names);
        X509_add_ext(certificate, names, -1);
        X509_EXTENSION_free(names);
    }
    ck_assert_int_gt(X509_sign(certificate, key, EVP_sha256()), 0);
    return certificate;
}

static char *path_of(const char *name) {
    char *path;
    ck_assert(asprintf(&path, "%s/%s", scratch(), name) > 0);
    return path;
}

char *certificate_lab_write(const char *certificate, const char *key,
                            const struct certificate_order *order) {
    EVP_PKEY *private = order->rsa > 0 ? EVP_RSA_gen((unsigned)order->rsa) : EVP_EC_gen("P-256");
    X509 *leaf = signed_certificate(private, order);
    char *path = path_of(certificate), *key_path = path_of(key);
    FILE *file = fopen(path, "w");
    ck_assert(file != NULL && PEM_write_X509(file, leaf) == 1);
    fclose(file);
    file = fopen(key_path, "a");
    ck_assert(file != NULL && PEM_write_PrivateKey(file, private, NULL, NULL, 0, NULL, NULL) == 1);
    fclose(file);
    ck_assert_int_eq(chmod(key_path, 0600), 0);
    free(key_path);
    X509_free(leaf);
    EVP_PKEY_free(private);
    return path;
}
