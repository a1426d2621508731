/*
 * Fetches the OCSP responses that listeners with ocsp = fetch staple to their certificates.
 *
 *     worker->staples = staple_fetches_new(net, pool);
 *     staple_fetches_add(worker->staples, certificate->leaf, certificate_name(certificate));
 *     staple_fetches_free(&worker->staples);
 *
 * One worker fetches for all, by http from the responder that the certificate names, wherever that
 * is: the operator has chosen the certificate. A response is fetched anew after half its time, and
 * after a failure again with longer and longer pauses (tls/staple.h). The first failure in a row and
 * a revoked certificate are logged.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_STAPLE_FETCH_H
#define RETORT_ORIGIN_STAPLE_FETCH_H

#include "origin/origin_pool.h"

#include <openssl/types.h>

struct staple_fetches;

struct staple_fetches *staple_fetches_new(struct net_context *net, struct origin_pool *connections);
/* `certificate` is counted; `name` is copied. A certificate that is there already is left out. */
void staple_fetches_add(struct staple_fetches *fetches, X509 *certificate, const char *name);
void staple_fetches_free(struct staple_fetches **fetchesp);

#endif
