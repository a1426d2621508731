/*
 * TLS to servers: what the streams to one server share. ICAP services with TLS make clients;
 * connections and dials use the streams.
 *
 *     struct tls_trust_settings trust = {.ca_file = "/etc/ssl/our.pem", .verify = true};
 *     struct tls_client *client = tls_client_new(&trust, SLICE("icap.example.com"));
 *     dial_start(&dial, net, &(struct dial_target){..., .tls = client}, &waiter->task);
 *     tls_client_free(&client);                       when none of its streams is left
 *
 * A client holds the trusted certificates, the certificate that we show, and the session that the
 * next handshake resumes. A client that shows a certificate resumes no session. The version is
 * TLS 1.2 or later, without renegotiation. The server's certificate must be for the host's name,
 * which is also sent to the server (SNI), or for its address. tls_client_new always returns a
 * client; an error in its settings makes the first handshake fail.
 *
 * Threads: a client and its streams belong to one thread.
 */
#ifndef RETORT_TLS_CLIENT_H
#define RETORT_TLS_CLIENT_H

#include "base/slice.h"
#include "tls/trust.h"

#include <openssl/types.h>
#include <stdbool.h>

enum { TLS_ERROR_MAX = 400 };

struct tls_client;

struct tls_client *tls_client_new(const struct tls_trust_settings *settings, struct slice host);
void tls_client_free(struct tls_client **clientp);
/* A sentence that says why the last failure happened and what to do. It lives as long as the
 * client. */
const char *tls_client_error(const struct tls_client *client);

/* For streams: a new SSL to the server. NULL: see tls_client_error. */
SSL *tls_client_open(struct tls_client *client);
/* For streams: writes why OpenSSL's last operation failed, and what to do. False: it is nothing that
 * concerns certificates or the port. */
bool tls_client_explain(const struct tls_client *client, SSL *ssl, char text[TLS_ERROR_MAX]);
void tls_client_note_error(struct tls_client *client, const char *text);

#endif
