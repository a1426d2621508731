#include "tls/certificate_names.h"

#include "tls/client_hello.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_LISTED = 5, ADDRESS_MOST = 16 };

bool certificate_names_match(struct slice pattern, struct slice host) {
    if (host.length > 0 && host.base[host.length - 1] == '.')
        host.length--;
    if (!client_hello_name_is_valid(host))
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
