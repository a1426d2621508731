#include "intercept/leaf.h"

#include "base/assert.h"
#include "net/address.h"
#include "tls/server_name.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>

enum { SERIAL_LENGTH = 16, X509_V3 = 2, CRITICAL = 1 };

/* A name as it stands in a certificate. */
struct leaf_name {
    char text[LEAF_NAME_ROOM];
    unsigned char ip[16];
    int ip_length; /* 0: it is a host name */
};

static bool read_leaf_name(struct leaf_name *name, struct slice text) {
    *name = (struct leaf_name){.ip_length = 0};
    if (server_name_put(name->text, text) > 0)
        return true;
    char copy[INET6_ADDRSTRLEN];
    if (text.length >= sizeof copy || memchr(text.base, '\0', text.length) != NULL)
        return false;
    *slice_put(copy, text) = '\0';
    if (inet_pton(AF_INET, copy, name->ip) == 1)
        name->ip_length = 4;
    else if (inet_pton(AF_INET6, copy, name->ip) == 1)
        name->ip_length = 16;
    return name->ip_length > 0 && inet_ntop(name->ip_length == 4 ? AF_INET : AF_INET6, name->ip,
                                            name->text, sizeof name->text) != NULL;
}

bool leaf_put_name(char out[LEAF_NAME_ROOM], struct slice name) {
    struct leaf_name found;
    bool good = read_leaf_name(&found, name);
    if (good)
        memcpy(out, found.text, LEAF_NAME_ROOM);
    return good;
}

int64_t leaf_expiry(const struct authority *authority, const struct leaf_request *request,
                    int64_t now) {
    int64_t expires = now - LEAF_BACK_DATED + LEAF_LIFETIME;
    if (authority->expires < expires)
        expires = authority->expires;
    if (request->not_after > 0 && request->not_after < expires)
        expires = request->not_after;
    return expires;
}

static void leaf_set_serial(X509 *certificate) {
    unsigned char bytes[SERIAL_LENGTH];
    ASSERT(RAND_bytes(bytes, sizeof bytes) == 1);
    bytes[0] |= 1; /* it is not zero, and never begins with a byte of zeros */
    ASSERT(ASN1_STRING_set(X509_get_serialNumber(certificate), bytes, sizeof bytes) == 1);
}

static void leaf_set_validity(X509 *certificate, const struct authority *authority, int64_t now,
                              int64_t expires) {
    int64_t begins = now - LEAF_BACK_DATED;
    if (begins < authority->begins)
        begins = authority->begins;
    ASSERT(ASN1_TIME_set(X509_getm_notBefore(certificate), begins) != NULL);
    ASSERT(ASN1_TIME_set(X509_getm_notAfter(certificate), expires) != NULL);
}

/* Returns whether the name has room there. */
static bool leaf_set_subject(X509 *certificate, const struct leaf_name *name) {
    size_t length = strlen(name->text);
    if (length > LEAF_COMMON_NAME_MAX)
        return false;
    ASSERT(X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                      MBSTRING_ASC, (const unsigned char *)name->text, (int)length,
                                      -1, 0) == 1);
    return true;
}

static void leaf_add_extension(X509 *certificate, int nid, void *value, int critical) {
    ASSERT(X509_add1_ext_i2d(certificate, nid, value, critical, X509V3_ADD_APPEND) == 1);
}

static void add_subject_name(X509 *certificate, const struct leaf_name *name, bool critical) {
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    GENERAL_NAME *general = GENERAL_NAME_new();
    bool is_ip = name->ip_length > 0;
    ASN1_STRING *value = is_ip ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
    ASSERT(names != NULL && general != NULL && value != NULL);
    ASSERT(is_ip ? ASN1_STRING_set(value, name->ip, name->ip_length)
                 : ASN1_STRING_set(value, name->text, (int)strlen(name->text)));
    GENERAL_NAME_set0_value(general, is_ip ? GEN_IPADD : GEN_DNS, value);
    ASSERT(sk_GENERAL_NAME_push(names, general) > 0);
    leaf_add_extension(certificate, NID_subject_alt_name, names, critical ? CRITICAL : 0);
    GENERAL_NAMES_free(names);
}

static void add_key_identifiers(X509 *certificate, const struct authority *authority) {
    ASN1_OCTET_STRING *own = authority_key_identifier(certificate);
    AUTHORITY_KEYID *issuer = AUTHORITY_KEYID_new();
    ASSERT(issuer != NULL);
    leaf_add_extension(certificate, NID_subject_key_identifier, own, 0);
    issuer->keyid = authority->key_identifier; /* lent */
    leaf_add_extension(certificate, NID_authority_key_identifier, issuer, 0);
    issuer->keyid = NULL;
    AUTHORITY_KEYID_free(issuer);
    ASN1_OCTET_STRING_free(own);
}

/* What the key is for (RFC 5280 §4.2.1.3, §4.2.1.9, §4.2.1.12). */
static void leaf_add_usage(X509 *certificate) {
    BASIC_CONSTRAINTS *constraints = BASIC_CONSTRAINTS_new();
    ASN1_BIT_STRING *usage = ASN1_BIT_STRING_new();
    EXTENDED_KEY_USAGE *purposes = sk_ASN1_OBJECT_new_null();
    ASSERT(constraints != NULL && usage != NULL && purposes != NULL);
    leaf_add_extension(certificate, NID_basic_constraints, constraints, CRITICAL);
    ASSERT(ASN1_BIT_STRING_set_bit(usage, 0, 1) == 1); /* digitalSignature */
    leaf_add_extension(certificate, NID_key_usage, usage, CRITICAL);
    ASSERT(sk_ASN1_OBJECT_push(purposes, OBJ_nid2obj(NID_server_auth)) > 0);
    leaf_add_extension(certificate, NID_ext_key_usage, purposes, 0);
    BASIC_CONSTRAINTS_free(constraints);
    ASN1_BIT_STRING_free(usage);
    sk_ASN1_OBJECT_free(purposes); /* the object is a constant of OpenSSL */
}

static X509 *make_leaf_certificate(struct authority *authority, EVP_PKEY *key,
                                   const struct leaf_name *name, int64_t now, int64_t expires) {
    X509 *certificate = X509_new();
    ASSERT(certificate != NULL);
    ASSERT(X509_set_version(certificate, X509_V3) == 1);
    leaf_set_serial(certificate);
    leaf_set_validity(certificate, authority, now, expires);
    ASSERT(X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate)) == 1);
    ASSERT(X509_set_pubkey(certificate, key) == 1);
    bool has_subject = leaf_set_subject(certificate, name);
    leaf_add_usage(certificate);
    add_subject_name(certificate, name, !has_subject);
    add_key_identifiers(certificate, authority);
    return certificate;
}

struct leaf *leaf_mint(struct authority *authority, EVP_PKEY *key,
                       const struct leaf_request *request, int64_t now, char error[LEAF_ERROR]) {
    struct leaf_name name;
    int64_t expires = leaf_expiry(authority, request, now);
    CHECK_OBJ(authority, AUTHORITY_MAGIC);
    if (!read_leaf_name(&name, request->name)) {
        snprintf(error, LEAF_ERROR, "the name is no host name, so no certificate is made for it");
        return NULL;
    }
    if (expires <= now) {
        snprintf(error, LEAF_ERROR, "the certificate of %s has expired",
                 authority->expires <= now ? "the proxy's authority" : "the server");
        return NULL;
    }
    ERR_clear_error();
    X509 *certificate = make_leaf_certificate(authority, key, &name, now, expires);
    if (X509_sign(certificate, authority->key, authority->hash) == 0) {
        snprintf(error, LEAF_ERROR, "the proxy's authority could not sign (%s)",
                 ERR_reason_error_string(ERR_peek_last_error()));
        X509_free(certificate);
        ERR_clear_error();
        return NULL;
    }
    X509_check_purpose(certificate, -1, 0); /* OpenSSL notes the extensions now, in one thread */
    struct leaf *leaf;
    ALLOC_OBJ(leaf, LEAF_MAGIC);
    atomic_init(&leaf->references, 1);
    leaf->certificate = certificate;
    EVP_PKEY_up_ref(key);
    leaf->key = key;
    leaf->authority = authority_reference(authority);
    leaf->chain = authority->chain;
    leaf->expires = expires;
    return leaf;
}

struct leaf *leaf_reference(struct leaf *leaf) {
    CHECK_OBJ(leaf, LEAF_MAGIC);
    atomic_fetch_add_explicit(&leaf->references, 1, memory_order_relaxed);
    return leaf;
}

void leaf_release(struct leaf **leafp) {
    struct leaf *leaf = *leafp;
    *leafp = NULL;
    if (leaf == NULL)
        return;
    CHECK_OBJ(leaf, LEAF_MAGIC);
    if (atomic_fetch_sub_explicit(&leaf->references, 1, memory_order_acq_rel) > 1)
        return;
    X509_free(leaf->certificate);
    EVP_PKEY_free(leaf->key);
    authority_release(&leaf->authority);
    FREE_OBJ(leaf);
}
