/*
 * HTTP/1.1 and HTTP/1.0 toward clients (RFC 9112): the first protocol behind client/exchange.h. On
 * a connection one exchange follows the other.
 *
 *     http1_host_init(&host, &clients);
 *     http1_accept(&host, &accepted);
 *     ... clients.on_request is called for each request ...
 *     clients_abort(&clients);
 *     http1_host_release(&host);
 *
 * Only the worker, which registers the protocol, includes this folder.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_CLIENT_HTTP1_HTTP1_H
#define RETORT_CLIENT_HTTP1_HTTP1_H

#include "client/clients.h"

enum { HTTP1_OUTBOX = 32 * 1024 };

/* What all HTTP/1 connections of a worker share. */
struct http1_host {
    struct clients *clients;
    struct http1_exchange *free_exchanges;
    unsigned free_exchange_count;
    char outbox[HTTP1_OUTBOX]; /* see http1/outbox.h */
};

void http1_host_init(struct http1_host *host, struct clients *clients);
void http1_host_release(struct http1_host *host);
/* Takes the descriptor of a connection that is counted in clients->total. */
void http1_accept(struct http1_host *host, const struct client_accepted *accepted);
/* Takes a connection that is there already (client/clients.h). */
void http1_adopt(struct http1_host *host, const struct client_arrival *arrival);

#endif
