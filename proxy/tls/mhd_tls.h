/*
 * TLS to clients whose connections libmicrohttpd serves, which has GnuTLS below it. Certificates,
 * keys and authorities are read and checked as those of listeners are. The client's certificate is
 * verified by OpenSSL, so that one set of rules holds for all of the proxy.
 *
 *     char error[PEM_FILE_ERROR];
 *     struct mhd_tls *tls = mhd_tls_new(&settings, error);
 *     ... for each new connection, before its handshake:
 *     struct mhd_tls_session *session = mhd_tls_session_new(tls, gnutls_session, fd);
 *     ... for each request:
 *     if (mhd_tls_session_holds(session, tls_now))
 *         mhd_tls_session_subject(session)               "CN=anna,O=Example", or ""
 *     ... when the connection has ended:
 *     session_end = mhd_tls_session_end(session);        how the handshake ended
 *     mhd_tls_session_free(&session);
 *     mhd_tls_release(&tls);
 *
 * TLS 1.2 and 1.3; for 1.2 only key exchange with ECDHE and ciphers with AEAD. There are no tickets
 * and no resumed sessions: each connection shows its certificate again. A client certificate that
 * is missing or not good ends the handshake with the alert for it. A client that speaks HTTP
 * without TLS gets a 400 that says so.
 *
 * Threads: a mhd_tls does not change, and its reference count is atomic. A session belongs to the
 * thread of its connection.
 */
#ifndef RETORT_TLS_MHD_TLS_H
#define RETORT_TLS_MHD_TLS_H

#include "base/slice.h"
#include "tls/server.h"

struct gnutls_session_int;
struct mhd_tls;
struct mhd_tls_session;

/* How a handshake ended. */
enum mhd_tls_end {
    MHD_TLS_DONE,
    MHD_TLS_LATE,        /* the client took too long, or went away */
    MHD_TLS_CERTIFICATE, /* the client's certificate is missing or not good */
    MHD_TLS_CLEAR_TEXT,  /* the client does not speak TLS */
    MHD_TLS_OTHER,       /* no version or cipher in common; or the client refused our certificate */
    MHD_TLS_ENDS
};

/* Of the settings it uses certificates, min_version, client_certificate and client_authority, and
 * takes references. NULL: `error` says why. */
struct mhd_tls *mhd_tls_new(const struct tls_server_settings *settings, char error[PEM_FILE_ERROR]);
struct mhd_tls *mhd_tls_reference(struct mhd_tls *tls);
/* NULL stays NULL. */
void mhd_tls_release(struct mhd_tls **tlsp);
/* Was it made later? */
bool mhd_tls_is_newer(const struct mhd_tls *tls, const struct mhd_tls *other);
/* The certificates, which belong to `tls`. */
const struct certificate_set *mhd_tls_certificates(const struct mhd_tls *tls);
/* Whose certificates clients may show, which belongs to `tls`; NULL: clients are not asked. */
const struct client_authority *mhd_tls_client_authority(const struct mhd_tls *tls);
/* Is one of the certificates for this host, a name or an address without brackets? */
bool mhd_tls_names(const struct mhd_tls *tls, struct slice host);

/* `session` is new, and has the socket `fd`. It must end before the mhd_tls_session is freed. */
struct mhd_tls_session *mhd_tls_session_new(struct mhd_tls *tls, struct gnutls_session_int *session,
                                            int fd);
void mhd_tls_session_free(struct mhd_tls_session **sessionp);
enum mhd_tls_end mhd_tls_session_end(const struct mhd_tls_session *session);
/* Why the client's certificate was refused; NULL: it was not. */
const char *mhd_tls_session_reason(const struct mhd_tls_session *session);
/* Of the client's certificate, as RFC 4514 has it; "": it showed none. */
const char *mhd_tls_session_subject(const struct mhd_tls_session *session);
/* Would the client's certificate still be good in a handshake under `now`? It is not when it has
 * expired since, when another authority counts, or another list of what is revoked. */
bool mhd_tls_session_holds(const struct mhd_tls_session *session, const struct mhd_tls *now);

#endif
