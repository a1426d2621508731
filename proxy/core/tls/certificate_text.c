#include "tls/certificate_text.h"

#include "base/assert.h"
#include "tls/context.h"
#include "tls/server_name.h"

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/x509v3.h>
#include <stdio.h>
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

enum { NAMES_LISTED = 5, ADDRESS_MOST = 16 };

bool certificate_names_match(struct slice pattern, struct slice host) {
    if (host.length > 0 && host.base[host.length - 1] == '.')
        host.length--;
    if (!server_name_is_valid(host))
        return false; /* an address in another spelling, for example */
    if (pattern.length < 2 || memcmp(pattern.base, "*.", 2) != 0)
        return slice_equal_nocase(pattern, host);
    const char *dot = memchr(host.base, '.', host.length);
    struct slice behind = slice_make(pattern.base + 1, pattern.length - 1);
    if (dot == NULL || memchr(behind.base + 1, '.', behind.length - 1) == NULL)
        return false;
    return slice_equal_nocase(behind, slice_make(dot, (size_t)(host.base + host.length - dot)));
}

static struct slice names_text(const ASN1_STRING *text) {
    return slice_make((const char *)ASN1_STRING_get0_data(text), (size_t)ASN1_STRING_length(text));
}

/* Returns the length of the address, and 0 when the host is none. */
static int names_read_address(const char *host, unsigned char address[ADDRESS_MOST]) {
    if (inet_pton(AF_INET, host, address) == 1)
        return 4;
    return inet_pton(AF_INET6, host, address) == 1 ? 16 : 0;
}

static bool names_equal(const GENERAL_NAME *name, struct slice host, struct slice address) {
    if (address.length > 0)
        return name->type == GEN_IPADD && slice_equal(names_text(name->d.iPAddress), address);
    return name->type == GEN_DNS && certificate_names_match(names_text(name->d.dNSName), host);
}

bool certificate_names_include(const X509 *certificate, const char *host) {
    unsigned char bytes[ADDRESS_MOST];
    struct slice address = slice_make((char *)bytes, (size_t)names_read_address(host, bytes));
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    bool found = false;
    for (int i = 0; !found && i < sk_GENERAL_NAME_num(names); i++)
        found = names_equal(sk_GENERAL_NAME_value(names, i), slice_from(host), address);
    GENERAL_NAMES_free(names);
    return found;
}

/* Writes one name. What is not printable becomes "?". */
static bool names_show(const GENERAL_NAME *name, char *text, size_t size) {
    struct slice shown = SLICE("");
    char address[INET6_ADDRSTRLEN] = "";
    if (name->type == GEN_DNS)
        shown = names_text(name->d.dNSName);
    else if (name->type == GEN_IPADD &&
             inet_ntop(name->d.iPAddress->length == 4 ? AF_INET : AF_INET6, name->d.iPAddress->data,
                       address, sizeof address))
        shown = slice_from(address);
    if (shown.length == 0 || shown.length >= size)
        return false;
    for (size_t i = 0; i < shown.length; i++)
        text[i] = shown.base[i] > ' ' && shown.base[i] < 0x7f ? shown.base[i] : '?';
    text[shown.length] = '\0';
    return true;
}

void certificate_names_list(const X509 *certificate, char *text, size_t size) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    enum { MORE = sizeof " and 12345678 more" };
    int shown = 0, more = 0;
    size_t at = 0;
    text[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
        char name[256];
        if (!names_show(sk_GENERAL_NAME_value(names, i), name, sizeof name))
            continue;
        if (shown >= NAMES_LISTED || at + strlen(name) + 2 + MORE > size) {
            more++;
            continue;
        }
        at += (size_t)snprintf(text + at, size - at, "%s%s", shown++ > 0 ? ", " : "", name);
    }
    if (more > 0)
        snprintf(text + at, size - at, " and %d more", more);
    GENERAL_NAMES_free(names);
}
