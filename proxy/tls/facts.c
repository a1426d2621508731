#include "tls/facts.h"

#include "base/assert.h"
#include "tls/certificate_text.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

/* The texts that belong to the facts are kept in one piece of memory. */
struct facts_memory {
    struct tls_facts facts;
    unsigned references;
    char *subject, *issuer, *serial;
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

static void note_certificate(struct facts_memory *memory, SSL *ssl) {
    struct tls_facts *facts = &memory->facts;
    const X509 *certificate = SSL_get0_peer_certificate(ssl);
    facts->subject = facts->issuer = facts->serial = facts->fingerprint = facts->verified = "";
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
    free(memory);
}
