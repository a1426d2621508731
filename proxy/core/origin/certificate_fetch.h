/*
 * Fetches the issuers' certificates that servers did not send, for handshakes that wait for them.
 *
 *     worker->fetches = certificate_fetches_new(net, pool);     sets net->fetch_intermediate
 *     certificate_fetches_free(&worker->fetches);
 *
 * net/dial.h calls net->fetch_intermediate with a URL that a server's certificate names, after it
 * has claimed the URL with intermediates_await. So the URL is a stranger's: it is fetched by http,
 * from public addresses only (EGRESS_PUBLIC), with the bounds of origin/small_fetch.h, and within
 * CERTIFICATE_FETCH_TIMEOUT. At most CERTIFICATE_FETCHES_MOST are under way in each worker; further
 * ones fail. The result goes to tls/intermediates.h, which wakes the handshakes.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ORIGIN_CERTIFICATE_FETCH_H
#define RETORT_ORIGIN_CERTIFICATE_FETCH_H

#include "origin/origin_pool.h"

enum { CERTIFICATE_FETCHES_MOST = 32, CERTIFICATE_FETCH_TIMEOUT = 5000 };

struct certificate_fetches;

struct certificate_fetches *certificate_fetches_new(struct net_context *net,
                                                    struct origin_pool *connections);
/* Fetches under way fail. */
void certificate_fetches_free(struct certificate_fetches **fetchesp);

#endif
