/*
 * Kerberos tickets, taken by GSSAPI (RFC 2743, RFC 4121), inside SPNEGO (RFC 4178) or bare.
 *
 *     struct gss_acceptor *acceptor = gss_acceptor_new("/etc/retort/http.keytab",
 *                                                      "HTTP/proxy.example.com", error, size);
 *     struct gss_verdict verdict;
 *     gss_acceptor_take(acceptor, token, &verdict);               blocks: it reads files
 *     if (verdict.kind == GSS_PROVEN) ... verdict.name, verdict.realm, verdict.answer
 *     gss_verdict_release(&verdict);
 *     gss_acceptor_free(&acceptor);
 *
 * A ticket is taken in one round, which is all that Kerberos needs: one that would need another is
 * refused, and so is NTLM. Delegated credentials are dropped.
 *
 * The library remembers the authenticators it has seen in a replay cache, a file that all processes
 * of the user share (KRB5RCACHENAME, kerberos(7)): by default below /var/tmp. If it can't be
 * written, nobody can say that a token was not used before, and the verdict is GSS_UNABLE.
 *
 * Threads: any; several may take tokens at a time.
 */
#ifndef RETORT_IDENTITY_GSS_ACCEPTOR_H
#define RETORT_IDENTITY_GSS_ACCEPTOR_H

#include "base/slice.h"

struct gss_acceptor;

enum gss_verdict_kind { GSS_PROVEN, GSS_REFUSED, GSS_UNABLE };

enum { GSS_NAME_MAX = 512, GSS_WHY_MAX = 256 };

struct gss_verdict {
    enum gss_verdict_kind kind;
    const char *reason;       /* a static sentence; NULL for PROVEN */
    char why[GSS_WHY_MAX];    /* what the library says, for the log; may be empty */
    char name[GSS_NAME_MAX];  /* PROVEN: "alice@EXAMPLE.COM" */
    char realm[GSS_NAME_MAX]; /* PROVEN: that of the acceptor; empty: not known */
    char *answer;             /* PROVEN: the token that proves us to the client; NULL: none */
    size_t answer_length;
};

/* Was Retort built with GSSAPI? */
bool gss_acceptor_is_built(void);
/* `principal`: "HTTP/host" or "HTTP/host@REALM"; NULL: any key of the keytab. `keytab`: NULL: that
 * of the system. NULL: `error` says why there are no keys, and what to do. */
struct gss_acceptor *gss_acceptor_new(const char *keytab, const char *principal, char *error,
                                      size_t error_size);
/* NULL stays NULL. */
void gss_acceptor_free(struct gss_acceptor **acceptorp);
void gss_acceptor_take(struct gss_acceptor *acceptor, struct slice token,
                       struct gss_verdict *verdict);
void gss_verdict_release(struct gss_verdict *verdict);

#endif
