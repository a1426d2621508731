#include "tls/aia.h"

#include "base/assert.h"
#include "base/slice.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs7.h>
#include <openssl/x509v3.h>
#include <string.h>

static bool aia_is_usable(const ASN1_IA5STRING *url) {
    static const char scheme[] = "http://";
    const char *text = (const char *)ASN1_STRING_get0_data(url);
    size_t length = (size_t)ASN1_STRING_length(url);
    if (length <= strlen(scheme) || length > AIA_URL_MOST ||
        strncasecmp(text, scheme, strlen(scheme)) != 0)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f)
            return false;
    return true;
}

char *aia_issuer_url(const X509 *certificate) {
    AUTHORITY_INFO_ACCESS *list = X509_get_ext_d2i(certificate, NID_info_access, NULL, NULL);
    char *found = NULL;
    for (int i = 0; found == NULL && i < sk_ACCESS_DESCRIPTION_num(list); i++) {
        const ACCESS_DESCRIPTION *access = sk_ACCESS_DESCRIPTION_value(list, i);
        const GENERAL_NAME *location = access->location;
        if (OBJ_obj2nid(access->method) == NID_ad_ca_issuers && location->type == GEN_URI &&
            aia_is_usable(location->d.uniformResourceIdentifier))
            found = slice_dup(slice_make(
                (const char *)ASN1_STRING_get0_data(location->d.uniformResourceIdentifier),
                (size_t)ASN1_STRING_length(location->d.uniformResourceIdentifier)));
    }
    AUTHORITY_INFO_ACCESS_free(list);
    return found;
}

/* Takes its own reference; NULL is ignored. */
static void aia_add(STACK_OF(X509) * found, X509 *certificate) {
    if (certificate != NULL && sk_X509_num(found) < AIA_CERTIFICATES_MOST &&
        X509_up_ref(certificate) == 1)
        sk_X509_push(found, certificate);
}

static void aia_add_container(STACK_OF(X509) * found, PKCS7 *container) {
    STACK_OF(X509) *list = NULL;
    if (container != NULL && PKCS7_type_is_signed(container) && container->d.sign != NULL)
        list = container->d.sign->cert;
    for (int i = 0; i < sk_X509_num(list); i++)
        aia_add(found, sk_X509_value(list, i));
    PKCS7_free(container);
}

static void aia_parse_der(STACK_OF(X509) * found, const unsigned char *bytes, size_t length) {
    const unsigned char *at = bytes;
    X509 *certificate = d2i_X509(NULL, &at, (long)length);
    aia_add(found, certificate);
    X509_free(certificate);
    at = bytes;
    if (certificate == NULL)
        aia_add_container(found, d2i_PKCS7(NULL, &at, (long)length));
}

static void aia_parse_pem(STACK_OF(X509) * found, const unsigned char *bytes, size_t length) {
    BIO *bio = BIO_new_mem_buf(bytes, (int)length);
    char *name, *header;
    unsigned char *der;
    long size;
    while (bio != NULL && PEM_read_bio(bio, &name, &header, &der, &size) == 1) {
        if (strcmp(name, PEM_STRING_X509) == 0 || strcmp(name, PEM_STRING_X509_OLD) == 0 ||
            strcmp(name, PEM_STRING_PKCS7) == 0)
            aia_parse_der(found, der, (size_t)size);
        OPENSSL_free(name);
        OPENSSL_free(header);
        OPENSSL_free(der);
    }
    BIO_free(bio);
}

struct stack_st_X509 *aia_parse(const unsigned char *bytes, size_t length) {
    static const char pem[] = "-----BEGIN ";
    STACK_OF(X509) *found = sk_X509_new_null();
    if (found == NULL || length > AIA_BYTES_MOST)
        goto none;
    ERR_set_mark();
    if (memmem(bytes, length, pem, strlen(pem)) != NULL)
        aia_parse_pem(found, bytes, length);
    else
        aia_parse_der(found, bytes, length);
    ERR_pop_to_mark();
    if (sk_X509_num(found) > 0)
        return found;
none:
    sk_X509_free(found);
    return NULL;
}
