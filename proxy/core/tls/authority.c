#include "tls/authority.h"

#include "base/assert.h"
#include "base/random.h"
#include "tls/certificate_text.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { RSA_BITS_LEAST = 2048 };

/* What is being loaded, and where to say that it can't be. */
struct loading {
    struct authority *authority;
    const char *certificate_path, *key_path;
    char *error;
    int64_t now;
};

/* Takes the first certificate of the file; the others are those of its issuers. */
static bool authority_load_certificates(struct loading *loading) {
    struct pem_file file;
    if (!pem_file_read(&file, loading->certificate_path, loading->error))
        return false;
    loading->authority->chain = pem_file_certificates(&file, loading->error);
    pem_file_release(&file);
    if (loading->authority->chain == NULL)
        return false;
    loading->authority->certificate = sk_X509_shift(loading->authority->chain);
    return true;
}

static bool load_authority_key(struct loading *loading) {
    struct pem_file file;
    if (!pem_file_read(&file, loading->key_path, loading->error))
        return false;
    loading->authority->key = pem_file_key(&file, loading->error);
    pem_file_release(&file);
    return loading->authority->key != NULL;
}

static EVP_MD *fetch_hash(const char *name) {
    EVP_MD *hash = EVP_MD_fetch(NULL, name, NULL);
    ASSERT(hash != NULL);
    return hash;
}

/* Sets the hash for signatures: one that is as strong as the key. */
static bool choose_hash(struct loading *loading) {
    EVP_PKEY *key = loading->authority->key;
    int bits = EVP_PKEY_get_bits(key);
    bool rsa = EVP_PKEY_is_a(key, "RSA");
    if (!rsa && !EVP_PKEY_is_a(key, "EC"))
        return pem_file_fail(loading->key_path, loading->error,
                             "holds a %s key, with which browsers verify no certificates: use EC "
                             "(P-256) or RSA; \"retortctl ca create\" makes a good one",
                             EVP_PKEY_get0_type_name(key));
    if (rsa && bits < RSA_BITS_LEAST)
        return pem_file_fail(loading->key_path, loading->error,
                             "holds an RSA key of %d bits, which clients refuse: use at least %d "
                             "bits, or make a new CA with \"retortctl ca create\"",
                             bits, RSA_BITS_LEAST);
    loading->authority->hash = fetch_hash(rsa || bits <= 256 ? "SHA256"
                                          : bits <= 384      ? "SHA384"
                                                             : "SHA512");
    return true;
}

static bool authority_check_pair(struct loading *loading) {
    ERR_clear_error();
    bool fits =
        X509_check_private_key(loading->authority->certificate, loading->authority->key) == 1;
    ERR_clear_error();
    return fits || pem_file_fail(loading->key_path, loading->error,
                                 "does not belong to the certificate in %.128s: give the key that "
                                 "the certificate was made with",
                                 loading->certificate_path);
}

/* May the certificate sign others that are for servers, with `below` CAs between them? */
static bool authority_check_is_ca(struct loading *loading, X509 *certificate, int below) {
    const char *path = loading->certificate_path;
    uint32_t flags = X509_get_extension_flags(certificate);
    long most = X509_get_pathlen(certificate);
    if ((flags & EXFLAG_INVALID) != 0)
        return pem_file_fail(path, loading->error, "holds a certificate with malformed extensions");
    if ((flags & EXFLAG_CA) == 0)
        return pem_file_fail(path, loading->error,
                             "holds a certificate that is no CA (basicConstraints CA:TRUE is "
                             "missing): make one with \"retortctl ca create\"");
    if ((X509_get_key_usage(certificate) & KU_KEY_CERT_SIGN) == 0)
        return pem_file_fail(path, loading->error,
                             "holds a CA that may not sign certificates (keyUsage without "
                             "keyCertSign): make one with \"retortctl ca create\"");
    if ((X509_get_extended_key_usage(certificate) & (XKU_SSL_SERVER | XKU_ANYEKU)) == 0)
        return pem_file_fail(path, loading->error,
                             "holds a CA that may not sign certificates of servers "
                             "(extendedKeyUsage without serverAuth)");
    if (most >= 0 && most < below)
        return pem_file_fail(path, loading->error,
                             "holds a CA that allows %ld CAs below it (pathlen), where %d follow",
                             most, below);
    return true;
}

static bool authority_check_validity(struct loading *loading, X509 *certificate) {
    int64_t begins = certificate_text_beginning(certificate);
    int64_t expires = certificate_text_expiry(certificate);
    const char *path = loading->certificate_path;
    if (begins == 0 || expires == 0)
        return pem_file_fail(path, loading->error, "holds a certificate with a malformed time");
    if (expires <= loading->now)
        return pem_file_fail(path, loading->error,
                             "holds a certificate that has expired: make a new CA with "
                             "\"retortctl ca create\" and give it to the clients");
    if (begins > loading->now)
        return pem_file_fail(path, loading->error,
                             "holds a certificate that is not valid yet: look whether the clock "
                             "of this machine is right");
    if (begins > loading->authority->begins)
        loading->authority->begins = begins;
    if (expires < loading->authority->expires)
        loading->authority->expires = expires;
    return true;
}

static bool authority_is_signed_by(X509 *certificate, X509 *issuer) {
    bool good = X509_check_issued(issuer, certificate) == X509_V_OK &&
                X509_verify(certificate, X509_get0_pubkey(issuer)) == 1;
    ERR_clear_error();
    return good;
}

/* Each certificate of the file must be a CA that is signed by the next one. */
static bool authority_check_chain(struct loading *loading) {
    X509 *certificate = loading->authority->certificate;
    loading->authority->expires = INT64_MAX;
    for (int i = 0;; i++) {
        if (!authority_check_is_ca(loading, certificate, i) ||
            !authority_check_validity(loading, certificate))
            return false;
        if (i == sk_X509_num(loading->authority->chain))
            return true;
        X509 *issuer = sk_X509_value(loading->authority->chain, i);
        if (!authority_is_signed_by(certificate, issuer))
            return pem_file_fail(loading->certificate_path, loading->error,
                                 "holds certificates in a wrong order: each one must be signed by "
                                 "the one that follows it (certificate %d is not)",
                                 i + 1);
        certificate = issuer;
    }
}

static bool authority_is_self_signed(X509 *certificate) {
    return (X509_get_extension_flags(certificate) & EXFLAG_SS) != 0;
}

/* Clients have the root already; an intermediate CA stands first in what they get. */
static void authority_make_chain(struct authority *authority) {
    int last = sk_X509_num(authority->chain) - 1;
    if (last >= 0 && authority_is_self_signed(sk_X509_value(authority->chain, last)))
        X509_free(sk_X509_pop(authority->chain));
    if (authority_is_self_signed(authority->certificate))
        return;
    X509_up_ref(authority->certificate);
    ASSERT(sk_X509_unshift(authority->chain, authority->certificate) > 0);
}

ASN1_OCTET_STRING *authority_key_identifier(const X509 *certificate) {
    const ASN1_BIT_STRING *key = X509_get0_pubkey_bitstr(certificate);
    ASN1_OCTET_STRING *identifier = ASN1_OCTET_STRING_new();
    unsigned char digest[SHA_DIGEST_LENGTH];
    SHA1(ASN1_STRING_get0_data(key), (size_t)ASN1_STRING_length(key), digest);
    ASSERT(identifier != NULL);
    ASSERT(ASN1_OCTET_STRING_set(identifier, digest, sizeof digest) == 1);
    return identifier;
}

static void authority_note_identity(struct authority *authority) {
    const ASN1_OCTET_STRING *stated = X509_get0_subject_key_id(authority->certificate);
    authority->key_identifier = stated != NULL ? ASN1_OCTET_STRING_dup(stated)
                                               : authority_key_identifier(authority->certificate);
    ASSERT(authority->key_identifier != NULL);
    ASSERT(X509_digest(authority->certificate, EVP_sha256(), authority->digest, NULL) == 1);
}

struct authority *authority_load(const char *certificate_path, const char *key_path,
                                 char error[PEM_FILE_ERROR]) {
    struct authority *authority;
    ALLOC_OBJ(authority, AUTHORITY_MAGIC);
    atomic_init(&authority->references, 1);
    struct loading loading = {authority, certificate_path, key_path, error, time(NULL)};
    if (!authority_load_certificates(&loading) || !load_authority_key(&loading) ||
        !choose_hash(&loading) || !authority_check_pair(&loading) ||
        !authority_check_chain(&loading)) {
        authority_release(&authority);
        return NULL;
    }
    authority_make_chain(authority);
    authority_note_identity(authority);
    return authority;
}

static void authority_add_text(X509_NAME *name, int nid, const char *text) {
    ASSERT(X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, (const unsigned char *)text, -1, -1,
                                      0) == 1);
}

static void add_own_extension(X509 *certificate, int nid, void *value, int critical) {
    ASSERT(X509_add1_ext_i2d(certificate, nid, value, critical, X509V3_ADD_APPEND) == 1);
}

/* What makes a certificate one of a root (RFC 5280 §4.2.1.1 to §4.2.1.3, §4.2.1.9). */
static void authority_add_extensions(X509 *certificate) {
    BASIC_CONSTRAINTS *constraints = BASIC_CONSTRAINTS_new();
    ASN1_BIT_STRING *usage = ASN1_BIT_STRING_new();
    ASN1_OCTET_STRING *identifier = authority_key_identifier(certificate);
    ASSERT(constraints != NULL && usage != NULL);
    constraints->ca = 0xff; /* TRUE in DER (X.690 §11.1); OpenSSL writes the byte as it is */
    constraints->pathlen = ASN1_INTEGER_new();
    ASSERT(constraints->pathlen != NULL && ASN1_INTEGER_set(constraints->pathlen, 0) == 1);
    add_own_extension(certificate, NID_basic_constraints, constraints, 1);
    ASSERT(ASN1_BIT_STRING_set_bit(usage, 5, 1) == 1); /* keyCertSign */
    ASSERT(ASN1_BIT_STRING_set_bit(usage, 6, 1) == 1); /* cRLSign */
    add_own_extension(certificate, NID_key_usage, usage, 1);
    add_own_extension(certificate, NID_subject_key_identifier, identifier, 0);
    BASIC_CONSTRAINTS_free(constraints);
    ASN1_BIT_STRING_free(usage);
    ASN1_OCTET_STRING_free(identifier);
}

static X509 *authority_make_root(EVP_PKEY *key, const EVP_MD *hash, const char *common_name,
                                 const char *organization, int64_t begins, int64_t expires) {
    unsigned char serial[16];
    X509 *certificate = X509_new();
    ASSERT(certificate != NULL && X509_set_version(certificate, 2) == 1);
    random_fill(serial, sizeof serial);
    serial[0] |= 1; /* not zero */
    ASSERT(ASN1_STRING_set(X509_get_serialNumber(certificate), serial, sizeof serial) == 1);
    ASSERT(ASN1_TIME_set(X509_getm_notBefore(certificate), begins) != NULL);
    ASSERT(ASN1_TIME_set(X509_getm_notAfter(certificate), expires) != NULL);
    X509_NAME *name = X509_get_subject_name(certificate);
    authority_add_text(name, NID_organizationName, organization);
    authority_add_text(name, NID_commonName, common_name);
    ASSERT(X509_set_issuer_name(certificate, name) == 1);
    ASSERT(X509_set_pubkey(certificate, key) == 1);
    authority_add_extensions(certificate);
    ASSERT(X509_sign(certificate, key, hash) > 0);
    return certificate;
}

struct authority *authority_make(const char *common_name, const char *organization, int64_t begins,
                                 int64_t expires) {
    struct authority *authority;
    ALLOC_OBJ(authority, AUTHORITY_MAGIC);
    atomic_init(&authority->references, 1);
    authority->key = EVP_EC_gen("P-256");
    authority->chain = sk_X509_new_null();
    authority->hash = fetch_hash("SHA256");
    ASSERT(authority->key != NULL && authority->chain != NULL);
    authority->certificate = authority_make_root(authority->key, authority->hash, common_name,
                                                 organization, begins, expires);
    authority->begins = begins;
    authority->expires = expires;
    authority_note_identity(authority);
    return authority;
}

struct authority *authority_reference(struct authority *authority) {
    CHECK_OBJ(authority, AUTHORITY_MAGIC);
    atomic_fetch_add_explicit(&authority->references, 1, memory_order_relaxed);
    return authority;
}

void authority_release(struct authority **authorityp) {
    struct authority *authority = *authorityp;
    *authorityp = NULL;
    if (authority == NULL)
        return;
    CHECK_OBJ(authority, AUTHORITY_MAGIC);
    if (atomic_fetch_sub_explicit(&authority->references, 1, memory_order_acq_rel) > 1)
        return;
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
    EVP_MD_free(authority->hash);
    sk_X509_pop_free(authority->chain, X509_free);
    ASN1_OCTET_STRING_free(authority->key_identifier);
    FREE_OBJ(authority);
}

bool authority_equal(const struct authority *a, const struct authority *b) {
    if (a == NULL || b == NULL)
        return a == b;
    return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
}

const struct authority_hint authority_hints[] = {
    {"Debian, Ubuntu",
     "Run as root:\n"
     "    cp retort-ca.crt /usr/local/share/ca-certificates/retort-ca.crt\n"
     "    update-ca-certificates\n"
     "Python's requests, Node.js and Java have stores of their own: REQUESTS_CA_BUNDLE=FILE,\n"
     "NODE_EXTRA_CA_CERTS=FILE, keytool -importcert -cacerts -alias retort -file FILE\n"},
    {"Chromium and Chrome on Linux",
     "Run as the user (certutil is in the package libnss3-tools):\n"
     "    certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n retort -i retort-ca.crt\n"},
    {"Firefox",
     "Settings, Privacy & Security, Certificates, View Certificates, Authorities, Import. Choose\n"
     "\"Trust this CA to identify websites\". On Windows and macOS, Firefox can use the store of\n"
     "the system instead: about:config, security.enterprise_roots.enabled = true.\n"},
    {"Windows",
     "Run in a command prompt as administrator:\n"
     "    certutil -addstore -f Root retort-ca.crt\n"
     "In a domain, a group policy installs it everywhere: Computer Configuration, Windows\n"
     "Settings, Security Settings, Public Key Policies, Trusted Root Certification Authorities.\n"},
    {"macOS",
     "Run in a terminal:\n"
     "    sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain "
     "retort-ca.crt\n"},
    {"iPhone, iPad",
     "Open the file, then Settings, Profile Downloaded, Install. Then switch it on: Settings,\n"
     "General, About, Certificate Trust Settings.\n"},
    {"Android",
     "Settings, Security, Encryption & credentials, Install a certificate, CA certificate.\n"
     "Browsers trust it then; most apps do not, and Retort relays their connections as they are\n"
     "after some refusals (interception.refusals).\n"},
    {NULL, NULL},
};
