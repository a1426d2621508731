/*
 * Whose certificates the clients of a listener may show: certificates of authorities, and the lists
 * of what these have revoked (RFC 5280 §5).
 *
 *     char error[PEM_FILE_ERROR];
 *     struct client_authority *authority = client_authority_load("ca.pem", "revoked.pem", error);
 *     client_authority_apply(authority, context);       what a context of OpenSSL trusts
 *     client_authority_release(&authority);
 *
 *     struct shown_certificate *shown = shown_certificate_new(ssl);     what this client has shown
 *     if (client_authority_accepts(authority, shown)) ...               later, and again
 *     shown_certificate_free(&shown);
 *
 * The digest covers the content of the files. A session that began under another digest is not
 * resumed, so a certificate that has been revoked since is looked at again.
 *
 * Threads: both are read-only when they are made; the reference count is atomic.
 */
#ifndef RETORT_TLS_CLIENT_AUTHORITY_H
#define RETORT_TLS_CLIENT_AUTHORITY_H

#include "tls/certificate_text.h"
#include "tls/pem_file.h"

#include <openssl/types.h>

enum { CLIENT_AUTHORITY_DIGEST = 32 };

struct client_authority;
struct shown_certificate;

/* `crl_file`: NULL: nothing is revoked. NULL: `error` says which file can't be used, and why. */
struct client_authority *client_authority_load(const char *ca_file, const char *crl_file,
                                               char error[PEM_FILE_ERROR]);
struct client_authority *client_authority_reference(struct client_authority *authority);
void client_authority_release(struct client_authority **authorityp);

/* Makes the context ask clients for certificates of these authorities, and verify them. */
void client_authority_apply(const struct client_authority *authority, SSL_CTX *context);
/* Would a handshake accept the certificate now? */
bool client_authority_accepts(const struct client_authority *authority,
                              const struct shown_certificate *shown);
/* Until when its authorities and its lists are good. */
void client_authority_validity(const struct client_authority *authority,
                               struct validity *authorities, struct validity *lists);
/* CLIENT_AUTHORITY_DIGEST bytes. */
const unsigned char *client_authority_digest(const struct client_authority *authority);

/* The certificate that the client has shown in its handshake. NULL: none. */
struct shown_certificate *shown_certificate_new(SSL *ssl);
/* NULL stays NULL. */
void shown_certificate_free(struct shown_certificate **shownp);
/* As RFC 4514 has it: "CN=anna,O=Example". */
const char *shown_certificate_subject(const struct shown_certificate *shown);

#endif
