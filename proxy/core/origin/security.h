/*
 * The security of connections to https origins: the TLS clients (tls/client.h) of a worker, each
 * with the sessions that new connections resume.
 *
 *     struct origin_securities *table = origin_securities_new(net);
 *     key = origin_security_key(out, SLICE("192.0.2.1:443"), name, trust, ORIGIN_AGREED);
 *     request.security = origin_securities_find(table, key, name, trust, ORIGIN_AGREED);
 *     origin_securities_retire(table, settings);       after a reload
 *     origin_securities_free(&table);
 *
 * The key is that of the pool too: it names everything that decides whether a connection may be
 * used for a request: scheme, host, port, the digest of the trust, protocols and reach. So no
 * connection and no session that was made under one trust is used under another one, and a reload
 * that changes a trust begins with new connections.
 *
 * At most origin.tls_hosts clients are kept. The one whose last use is longest ago is forgotten
 * first. Connections and calls that use it count it, and go on.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_SECURITY_H
#define RETORT_ORIGIN_SECURITY_H

#include "net/context.h"
#include "settings/settings.h"
#include "tls/client.h"

struct origin_securities;

enum { ORIGIN_KEY_MORE = sizeof "h2 https://  " + TLS_TRUST_DIGEST };

/* The versions of HTTP that a connection may come to speak. */
enum origin_protocols {
    ORIGIN_HTTP1,
    ORIGIN_AGREED, /* HTTP/2 or HTTP/1.1: the TLS handshake decides */
    ORIGIN_HTTP2,  /* in clear text, by prior knowledge (RFC 9113 §3.3) */
};

/* What may be spoken with a server whose section has this value. */
static inline enum origin_protocols origin_protocols_of(enum origins_http2 http2, bool secure) {
    if (http2 == ORIGINS_HTTP2_OFF || (http2 == ORIGINS_HTTP2_AUTO && !secure))
        return ORIGIN_HTTP1;
    return secure ? ORIGIN_AGREED : ORIGIN_HTTP2;
}

/* Writes the key for connections to a place ("host:port") where the server has this name; in clear
 * text, trust NULL, name and digest are left out. `out` has room for both and ORIGIN_KEY_MORE
 * bytes. */
struct slice origin_security_key(char *out, struct slice place, struct slice name,
                                 const struct tls_trust_settings *trust,
                                 enum origin_protocols protocols);

struct origin_securities *origin_securities_new(struct net_context *net);
void origin_securities_free(struct origin_securities **tablep);
/* Returns the client for the key, and makes it when it is missing. `name` is the one for SNI and
 * for the certificate. The caller takes a reference (tls_client_take) if it keeps the client. */
struct tls_client *origin_securities_find(struct origin_securities *table, struct slice key,
                                          struct slice name,
                                          const struct tls_trust_settings *settings,
                                          enum origin_protocols protocols);
/* Forgets the clients whose trust the settings do not have any more. */
void origin_securities_retire(struct origin_securities *table, const struct settings *settings);

#endif
