/*
 * TLS to servers: what the streams to one server share. ICAP services with TLS make clients;
 * connections and dials use the streams.
 *
 *     struct tls_client *client = tls_client_of(trust, SLICE("www.example.com"), "http/1.1");
 *     dial_start(&dial, net, &(struct dial_target){..., .tls = client}, &waiter->task);
 *     tls_client_release(&client);                    each of its streams counts it too
 *
 * A client holds the name of the server, its trust (tls/trust.h), which it may share with other
 * clients, and the sessions that the next handshakes resume. A client that shows a certificate
 * resumes no session. No session is resumed later than an hour after a whole handshake, or after
 * the certificate of that handshake has expired. The server's certificate must be for the host's
 * name, which is also sent to the server (SNI), or for its address; tls/verify.h has the rules. A
 * client is always made; an error in its trust makes the handshakes fail.
 *
 * Threads: a client and its streams belong to one thread.
 */
#ifndef RETORT_TLS_CLIENT_H
#define RETORT_TLS_CLIENT_H

#include "base/slice.h"
#include "tls/trust.h"

#include <openssl/types.h>
#include <stdbool.h>

enum { TLS_ERROR_MAX = 600 };

struct tls_client;

/* `protocols` are those that may be spoken, the best first: "h2,http/1.1" (RFC 7301). NULL: the
 * server is not told. tls_stream_speaks says which one it chose. */
struct tls_client *tls_client_of(struct tls_trust *trust, struct slice host, const char *protocols);
/* With a trust of its own, which fetches no intermediate certificates. */
struct tls_client *tls_client_new(const struct tls_trust_settings *settings, struct slice host);
struct tls_client *tls_client_take(struct tls_client *client);
void tls_client_release(struct tls_client **clientp);
/* A sentence that says why the last failure happened and what to do. It lives as long as the
 * client. */
const char *tls_client_error(const struct tls_client *client);

/* Has the server asked for a certificate of ours in the last handshake, and did we have none to
 * show? */
bool tls_client_was_asked(const struct tls_client *client);

/* For trusts: makes the SSLs of the context give their sessions to their clients. */
void tls_client_prepare(SSL_CTX *context);
/* For streams: a new SSL to the server. NULL: see tls_client_error. */
SSL *tls_client_open(struct tls_client *client);
/* For streams: writes why OpenSSL's last operation failed, and what to do. False: it is nothing that
 * concerns certificates or the port. */
bool tls_client_explain(const struct tls_client *client, SSL *ssl, char text[TLS_ERROR_MAX]);
void tls_client_note_error(struct tls_client *client, const char *text);

#endif
