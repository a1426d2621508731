/*
 * What a worker fetches: certificates of issuers that servers did not send, for handshakes that wait for them, and OCSP responses
 * that listeners with ocsp = fetch staple to their certificates.
 *
 *     struct pki_fetches *fetches = pki_fetches_new(net, pool);         sets net->fetches, too
 *     if (intermediates_await(url, &waiter, mailbox, task))
 *         pki_fetch_certificate(net, url);
 *     pki_fetch_staple(fetches, certificate->leaf, certificate_name(certificate));
 *     pki_fetches_free(&fetches);
 *
 * A server's certificate names the URL of its issuer, so it is a stranger's: it is fetched by http,
 * from public addresses only (EGRESS_PUBLIC), with the bounds of pki/small_fetch.h, and within
 * CERTIFICATE_FETCH_TIMEOUT. At most CERTIFICATE_FETCHES_MOST are under way in each worker; further
 * ones fail. The result goes to pki/intermediates.h, which wakes the handshakes.
 *
 * One worker fetches OCSP responses for all, by http from the responder that the certificate names,
 * wherever that is: the operator has chosen the certificate. A response is fetched anew after half its
 * time, and after a failure again with longer and longer pauses (pki/staple.h). The first failure in a
 * row and a revoked certificate are logged.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_PKI_FETCHES_H
#define RETORT_PKI_FETCHES_H

#include "origin/origin_pool.h"

#include <openssl/types.h>

enum { CERTIFICATE_FETCHES_MOST = 32, CERTIFICATE_FETCH_TIMEOUT = 5000 };

struct pki_fetches;

struct pki_fetches *pki_fetches_new(struct net_context *net, struct origin_pool *connections);
/* The URL has been claimed with intermediates_await. */
void pki_fetch_certificate(struct net_context *net, const char *url);
/* `certificate` is counted; `name` is copied. A certificate that is there already is left out. */
void pki_fetch_staple(struct pki_fetches *fetches, X509 *certificate, const char *name);
void pki_fetches_forget_staples(struct pki_fetches *fetches);
/* Certificates under way fail. */
void pki_fetches_free(struct pki_fetches **fetchesp);

#endif
