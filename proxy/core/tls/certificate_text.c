#include "tls/certificate_text.h"

#include "base/assert.h"
#include "tls/context.h"

#include <openssl/bn.h>
#include <string.h>
#include <time.h>

enum { NAME_MOST = 1024 };

char *certificate_text_name(const X509_NAME *name) {
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes, *text = NULL;
    if (bio != NULL && X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) >= 0) {
        long length = BIO_get_mem_data(bio, &bytes);
        text = xcalloc(1, NAME_MOST + 1);
        if (length > NAME_MOST)
            strcpy(text, "(too long)");
        else if (length > 0)
            memcpy(text, bytes, (size_t)length);
    }
    BIO_free(bio);
    return text != NULL ? text : xstrdup("");
}

char *certificate_text_serial(const X509 *certificate) {
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
    char *digits = number != NULL ? BN_bn2hex(number) : NULL;
    char *text = xstrdup(digits != NULL ? digits : "");
    OPENSSL_free(digits);
    BN_free(number);
    return text;
}

void certificate_text_fingerprint(const X509 *certificate,
                                  char text[CERTIFICATE_TEXT_FINGERPRINT]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    text[0] = '\0';
    if (X509_digest(certificate, algorithm_sha256(), digest, &length) != 1)
        return;
    for (unsigned i = 0; i < length; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[2 * length] = '\0';
}

static int64_t certificate_text_seconds(const ASN1_TIME *time) {
    struct tm broken;
    return ASN1_TIME_to_tm(time, &broken) == 1 ? timegm(&broken) : 0;
}

int64_t certificate_text_expiry(const X509 *certificate) {
    return certificate_text_seconds(X509_get0_notAfter(certificate));
}

int64_t certificate_text_beginning(const X509 *certificate) {
    return certificate_text_seconds(X509_get0_notBefore(certificate));
}

/* When a revocation list is out of date; 0: it does not say so. */
static int64_t certificate_text_list_end(const X509_CRL *list) {
    const ASN1_TIME *next = X509_CRL_get0_nextUpdate(list);
    return next != NULL ? certificate_text_seconds(next) : 0;
}

void certificate_text_date(int64_t when, char text[CERTIFICATE_TEXT_DATE]) {
    struct tm broken;
    time_t seconds = (time_t)when;
    if (gmtime_r(&seconds, &broken) == NULL ||
        strftime(text, CERTIFICATE_TEXT_DATE, "%Y-%m-%d", &broken) == 0)
        text[0] = '\0';
}

static void validity_add(struct validity *validity, int64_t ends, const X509_NAME *name) {
    if (validity->name == NULL || ends < validity->ends)
        *validity = (struct validity){ends, name};
}

void validity_add_certificate(struct validity *validity, const X509 *certificate) {
    validity_add(validity, certificate_text_expiry(certificate),
                 X509_get_subject_name(certificate));
}

void validity_add_certificates(struct validity *validity,
                               const struct stack_st_X509 *certificates) {
    for (int i = 0; i < sk_X509_num(certificates); i++)
        validity_add_certificate(validity, sk_X509_value(certificates, i));
}

void validity_add_lists(struct validity *validity, const struct stack_st_X509_CRL *lists) {
    for (int i = 0; i < sk_X509_CRL_num(lists); i++) {
        const X509_CRL *list = sk_X509_CRL_value(lists, i);
        if (X509_CRL_get0_nextUpdate(list) != NULL)
            validity_add(validity, certificate_text_list_end(list), X509_CRL_get_issuer(list));
    }
}
