#include "tls/facts.h"

#include "base/assert.h"
#include "base/slice.h"
#include "tls/certificate_text.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

/* The texts that belong to the facts are kept in one piece of memory. */
struct facts_memory {
    struct tls_facts facts;
    unsigned references;
    char *subject, *issuer, *serial, *common_name, *email;
    char fingerprint[CERTIFICATE_TEXT_FINGERPRINT];
    char protocol[32];
    char server_name[]; /* with a NUL */
};

/* Copies printable ASCII, in lower case. Other bytes come from an attacker and become '?'. */
static void copy_name(char *to, const char *name) {
    for (; *name != '\0'; name++) {
        char byte = *name > ' ' && *name < 0x7f ? *name : '?';
        *to++ = byte >= 'A' && byte <= 'Z' ? (char)(byte + 'a' - 'A') : byte;
    }
    *to = '\0';
}

/* NULL: it contains a NUL, which would hide what follows, or is no text. The caller frees it. */
static char *facts_copy_text(const ASN1_STRING *text) {
    unsigned char *utf8 = NULL;
    int length = text != NULL ? ASN1_STRING_to_UTF8(&utf8, text) : -1;
    char *copy = NULL;
    if (length >= 0 && memchr(utf8, '\0', (size_t)length) == NULL)
        copy = slice_dup(slice_make((const char *)utf8, (size_t)length));
    OPENSSL_free(utf8);
    return copy;
}

static char *copy_common_name(const X509 *certificate) {
    const X509_NAME *subject = X509_get_subject_name(certificate);
    int at = -1, last = -1;
    while ((at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0)
        last = at;
    return last >= 0 ? facts_copy_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, last)))
                     : NULL;
}

static char *copy_email(const X509 *certificate) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    char *email = NULL;
    for (int i = 0; email == NULL && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_EMAIL)
            email = facts_copy_text(name->d.rfc822Name);
    }
    GENERAL_NAMES_free(names);
    return email;
}

static void note_certificate(struct facts_memory *memory, SSL *ssl) {
    struct tls_facts *facts = &memory->facts;
    const X509 *certificate = SSL_get0_peer_certificate(ssl);
    facts->subject = facts->issuer = facts->serial = facts->fingerprint = facts->verified = "";
    facts->common_name = facts->email = "";
    if (certificate == NULL)
        return;
    memory->subject = certificate_text_name(X509_get_subject_name(certificate));
    memory->issuer = certificate_text_name(X509_get_issuer_name(certificate));
    memory->serial = certificate_text_serial(certificate);
    certificate_text_fingerprint(certificate, memory->fingerprint);
    facts->subject = memory->subject;
    facts->issuer = memory->issuer;
    facts->serial = memory->serial;
    facts->fingerprint = memory->fingerprint;
    memory->common_name = copy_common_name(certificate);
    memory->email = copy_email(certificate);
    if (memory->common_name != NULL)
        facts->common_name = memory->common_name;
    if (memory->email != NULL)
        facts->email = memory->email;
    facts->not_after = certificate_text_expiry(certificate);
    if (SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE)
        facts->verified = X509_verify_cert_error_string(SSL_get_verify_result(ssl));
}

static const char *group_of(SSL *ssl) {
    const char *name = SSL_group_to_name(ssl, (int)SSL_get_negotiated_group(ssl));
    return name != NULL ? name : "";
}

struct tls_facts *tls_facts_new(struct ssl_st *ssl) {
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const char *cipher = SSL_get_cipher_name(ssl);
    const unsigned char *protocol;
    unsigned length;
    if (name == NULL)
        name = "";
    struct facts_memory *memory = xcalloc(1, sizeof *memory + strlen(name) + 1);
    copy_name(memory->server_name, name);
    SSL_get0_alpn_selected(ssl, &protocol, &length);
    if (length > 0 && length < sizeof memory->protocol)
        memcpy(memory->protocol, protocol, length);
    memory->facts = (struct tls_facts){
        .version = SSL_get_version(ssl),
        .cipher = cipher != NULL ? cipher : "",
        .group = group_of(ssl),
        .server_name = memory->server_name,
        .protocol = memory->protocol,
        .resumed = SSL_session_reused(ssl) == 1,
    };
    memory->references = 1;
    note_certificate(memory, ssl);
    return &memory->facts;
}

struct tls_facts *tls_facts_reference(const struct tls_facts *facts) {
    struct facts_memory *memory = (struct facts_memory *)(uintptr_t)facts;
    if (memory == NULL)
        return NULL;
    memory->references++;
    return &memory->facts;
}

void tls_facts_release(struct tls_facts **factsp) {
    struct facts_memory *memory = (struct facts_memory *)*factsp;
    *factsp = NULL;
    if (memory == NULL || --memory->references > 0)
        return;
    free(memory->subject);
    free(memory->issuer);
    free(memory->serial);
    free(memory->common_name);
    free(memory->email);
    free(memory);
}
