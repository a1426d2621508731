/*
 * What proxies in front of us say of a client, and what we say to the next: X-Forwarded-For,
 * Forwarded (RFC 7239), X-Forwarded-Proto, X-Forwarded-Host and Via.
 *
 *     if (exchange->listen->reads_forwarding)
 *         forwarding_receive(transaction);               RECEIVE; then exchange_client is the client
 *     forwarding_tell_origin(transaction, head);         before the request is sent
 *     forwarding_add_via(transaction, response);         before a response is stored
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_FORWARDING_H
#define RETORT_TRANSACTION_FORWARDING_H

#include "http/head.h"

struct exchange;
struct transaction;

/* Has a proxy sent the request that the listener trusts to name its clients? Its connection carries
 * the requests of many. Inside an intercepted connection the client itself speaks, whoever has
 * carried its bytes. */
bool forwarding_peer_is_trusted(const struct exchange *exchange);
/* Finds out whose request it is, and removes what clients that are not trusted say about that, if
 * the settings want it. */
void forwarding_receive(struct transaction *transaction);
/* Adds the fields about the client and this proxy to the request for an origin or a parent. */
void forwarding_tell_origin(struct transaction *transaction, struct http_head *head);
/* Adds Via to a response, unless the settings hide it. */
void forwarding_add_via(struct transaction *transaction, struct http_head *response);

#endif
