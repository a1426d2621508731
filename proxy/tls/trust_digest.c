#include "tls/trust.h"

#include "base/assert.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void digest_add(EVP_MD_CTX *digest, const void *bytes, size_t length) {
    int good = EVP_DigestUpdate(digest, bytes, length);
    ASSERT(good == 1);
}

/* Adds the name too, because it stands in messages. A NUL ends each part. */
static void digest_add_file(EVP_MD_CTX *digest, const char *path) {
    char bytes[16384];
    size_t length;
    digest_add(digest, path != NULL ? path : "", path != NULL ? strlen(path) + 1 : 1);
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    if (file == NULL)
        return;
    while ((length = fread(bytes, 1, sizeof bytes, file)) > 0)
        digest_add(digest, bytes, length);
    fclose(file);
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

void tls_trust_note_digest(struct tls_trust_settings *trust) {
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    ASSERT(digest != NULL);
    int good = EVP_DigestInit_ex(digest, EVP_sha256(), NULL);
    ASSERT(good == 1);
    const char flags[] = {'0' + trust->verify, '0' + trust->fetch_intermediates,
                          '0' + trust->check_staple, (char)('0' + trust->min_version)};
    digest_add(digest, flags, sizeof flags);
    digest_add_file(digest, trust->ca_file);
    digest_add_file(digest, trust->crl_file);
    digest_add_file(digest, trust->certificate);
    digest_add_file(digest, trust->certificate_key);
    if (trust->ca_file == NULL) {
        digest_add_change(digest, X509_get_default_cert_file());
        digest_add_change(digest, X509_get_default_cert_dir());
    }
    digest_write(digest, trust->digest);
    EVP_MD_CTX_free(digest);
}
