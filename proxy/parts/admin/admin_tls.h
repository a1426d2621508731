/*
 * What the settings say about TLS to those who call the admin plane: certificates, and whose
 * certificates they may show.
 *
 *     struct admin_tls *tls = admin_tls_new(&settings);
 *     struct tls_server *server = admin_tls_server(tls);             a thread's own
 *     ... for each request:
 *     if (admin_tls_admits(now, began, shown)) ...                  NULL: no certificate was shown
 *     admin_tls_release(&tls);
 *
 * There are no tickets and no resumed sessions: each connection shows its certificate again.
 *
 * Threads: it does not change; the reference count is atomic.
 */
#ifndef RETORT_ADMIN_ADMIN_TLS_H
#define RETORT_ADMIN_ADMIN_TLS_H

#include "tls/server.h"

struct admin_tls {
    unsigned magic;
#define ADMIN_TLS_MAGIC 0xad417150u
    _Atomic unsigned references;
    uint64_t number; /* the later it was made, the larger */
    /* certificates, min_version, client_certificate and client_authority, referenced; the authority
     * is NULL when clients are not asked. */
    struct tls_server_settings server;
};

/* Takes references to what it uses. */
struct admin_tls *admin_tls_new(const struct tls_server_settings *settings);
struct admin_tls *admin_tls_reference(struct admin_tls *tls);
/* NULL stays NULL. */
void admin_tls_release(struct admin_tls **tlsp);
/* A new one; tls_server_error says whether it can be used. */
struct tls_server *admin_tls_server(const struct admin_tls *tls);
/* Is one of the certificates for this host, a name or an address without brackets? */
bool admin_tls_names(const struct admin_tls *tls, struct slice host);
/* Would a client that has shown this certificate under `began` pass a handshake under `now`? It does
 * not when the certificate has expired since, when another authority counts, or another list of what
 * is revoked. */
bool admin_tls_admits(const struct admin_tls *now, const struct admin_tls *began,
                      const struct shown_certificate *shown);

#endif
