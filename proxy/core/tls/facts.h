/*
 * What is known of a TLS connection after its handshake, as plain text: for access logs, ICAP
 * services, origins and the admin plane. Nobody above tls/ needs types of OpenSSL for that.
 *
 *     const struct tls_facts *facts = exchange->ends->tls;      NULL: clear text
 *     if (facts != NULL && facts->subject[0] != '\0')
 *         show facts->subject, the client's certificate
 *
 * Facts are counted, because what is logged about a connection may be written when the connection
 * is gone.
 *
 * Every text but the names of the owner is printable ASCII without line breaks, and "" when there is nothing to say, so it may
 * stand in a header field and in a log line. `version`, `cipher` and `group` live for ever; the
 * other texts live as long as the facts.
 *
 * Threads: the connection's.
 */
#ifndef RETORT_TLS_FACTS_H
#define RETORT_TLS_FACTS_H

#include <stdbool.h>
#include <stdint.h>

struct ssl_st; /* SSL of OpenSSL */

struct tls_facts {
    const char *version;     /* "TLSv1.3" */
    const char *cipher;      /* "TLS_AES_256_GCM_SHA384" */
    const char *group;       /* of the key exchange: "x25519" */
    const char *server_name; /* that the client asked for (SNI, RFC 6066 §3), in lower case */
    const char *protocol;    /* agreed on by ALPN (RFC 7301): "http/1.1" */
    bool resumed;            /* an earlier session went on: nobody showed a certificate again */
    /* The certificate of the other side, a client's or a server's. In a resumed session it is the
     * one of the first handshake. */
    const char *subject;     /* RFC 4514: "CN=alice,O=Example"; "" when it showed none */
    const char *issuer;      /* likewise */
    const char *serial;      /* hexadecimal digits: "03A1" */
    const char *fingerprint; /* SHA-256 of the certificate, 64 hexadecimal digits */
    const char *verified;    /* "ok", or why the certificate is not trusted; "": not looked at */
    /* Names of the certificate's owner, as UTF-8 with any characters but NUL; "": it has none. */
    const char *common_name; /* the last CN of the subject, which is the most specific one */
    const char *email;       /* the first e-mail address of the alternative names */
    int64_t not_after;       /* when it expires, in seconds since 1970; 0: it showed none */
};

/* For tls/: reads the facts from a connection whose handshake is complete. */
struct tls_facts *tls_facts_new(struct ssl_st *ssl);
/* NULL stays NULL. */
struct tls_facts *tls_facts_reference(const struct tls_facts *facts);
void tls_facts_release(struct tls_facts **factsp);

#endif
