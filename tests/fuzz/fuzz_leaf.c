/*
 * Certificates for intercepted connections: the input is the name that is asked for.
 *
 * A certificate that is made has one name in its subjectAltName and no other: the one that was
 * asked for, in lower case, or the address. OpenSSL, which parses the certificate from its DER form
 * again, finds that it is valid for this name, for no other one, and signed by the authority. A
 * name is accepted just if it consists of what names consist of.
 */
#include "base/assert.h"
#include "intercept/leaf.h"
#include "intercept/leaf_keys.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>

enum { FUZZ_NOW = 1700000000, FUZZ_YEAR = 365 * 24 * 3600 };

static struct authority *authority;
static EVP_PKEY *key;

static X509 *parse_again(X509 *certificate) {
    unsigned char *der = NULL;
    int length = i2d_X509(certificate, &der);
    const unsigned char *at = der;
    X509 *again = d2i_X509(NULL, &at, length);
    ASSERT(again != NULL && at == der + length);
    OPENSSL_free(der);
    return again;
}

static bool is_address(const char *text) {
    unsigned char bytes[16];
    return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Without a library: what only a name or an address can consist of. */
static bool has_bytes_of_names(struct slice text) {
    static const char bytes[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";
    for (size_t i = 0; i < text.length; i++)
        if (text.base[i] == '\0' || strchr(bytes, text.base[i]) == NULL)
            return false;
    return text.length > 0 && text.length <= 254;
}

static void check_names(X509 *certificate, const char *name) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    ASSERT(names != NULL && sk_GENERAL_NAME_num(names) == 1);
    int kind;
    ASN1_STRING *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), &kind);
    size_t length = (size_t)ASN1_STRING_length(value);
    const char *bytes = (const char *)ASN1_STRING_get0_data(value);
    if (kind == GEN_DNS) {
        ASSERT(slice_equal(slice_make(bytes, length), slice_from(name)));
        ASSERT(X509_check_host(certificate, name, 0, 0, NULL) == 1);
    } else {
        ASSERT(kind == GEN_IPADD && is_address(name));
        ASSERT(X509_check_ip_asc(certificate, name, 0) == 1);
    }
    ASSERT(X509_check_host(certificate, "victim.test", 0, 0, NULL) == 0 ||
           strcmp(name, "victim.test") == 0);
    GENERAL_NAMES_free(names);
}

static void check_subject(X509 *certificate, const char *name) {
    X509_NAME *subject = X509_get_subject_name(certificate);
    if (strlen(name) > LEAF_COMMON_NAME_MAX) {
        ASSERT(X509_NAME_entry_count(subject) == 0);
        return;
    }
    ASSERT(X509_NAME_entry_count(subject) == 1);
    ASN1_STRING *value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, 0));
    ASSERT(slice_equal(
        slice_make((const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value)),
        slice_from(name)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char name[LEAF_NAME_ROOM] = "", error[LEAF_ERROR];
    struct leaf_request request = {.name = slice_make((const char *)data, size)};
    if (authority == NULL) {
        authority = authority_make("Fuzz CA", "Fuzz", FUZZ_NOW - FUZZ_YEAR, FUZZ_NOW + FUZZ_YEAR);
        key = leaf_keys_make_ecdsa();
    }
    struct leaf *leaf = leaf_mint(authority, key, &request, FUZZ_NOW, error);
    ASSERT(leaf_put_name(name, request.name) == (leaf != NULL));
    if (leaf == NULL)
        return 0;
    ASSERT(has_bytes_of_names(request.name));
    size_t length = strlen(name);
    ASSERT(is_address(name) ||
           (length >= size - 1 && length <= size &&
            slice_equal_nocase(slice_make((const char *)data, length), slice_make(name, length))));
    X509 *certificate = parse_again(leaf->certificate);
    check_names(certificate, name);
    check_subject(certificate, name);
    ASSERT(X509_verify(certificate, authority->key) == 1);
    X509_free(certificate);
    leaf_release(&leaf);
    return 0;
}
