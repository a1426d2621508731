/*
 * The request of a transaction as it is now: what the client sent, with what REQMOD and the
 * policies of the cache have made of it since.
 *
 *     if (url_parse(&url, transaction->request.head->target) && request_set_url(transaction, &url))
 *         ... transaction->request.url and url_text are the URL, normalised ...
 *     request_own(transaction);                     before anything that may wait
 *     request_take_body(transaction);
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_REQUEST_H
#define RETORT_TRANSACTION_REQUEST_H

#include "event/source.h"
#include "http/head.h"
#include "http/url.h"

struct request {
    struct http_head *head;       /* the exchange's */
    struct slice original_url;    /* as the client asked, for the log */
    struct slice original_method; /* likewise */
    struct slice url_text;        /* absolute, normalised */
    struct url url;               /* its parts */
    struct slice authority;       /* "host" or "host:port" of url_text */
    struct slice client_ip;       /* see transaction_client_ip */
    struct slice upgrade;         /* the protocols that the client would change to */
    bool is_connect, is_upgrade;
    bool for_whole_server; /* OPTIONS of a URL without a path (RFC 9112 §3.2.4) */
    bool takes_trailers;   /* the client does (RFC 9110 §10.1.4) */
    bool body_taken;
    struct source *body;      /* owned once taken */
    struct slice credentials; /* Proxy-Authorization, kept from most services */
    const uint64_t *rules;    /* see transaction_rules; NULL: not asked yet, or no longer true */
};

struct transaction;

/* Copies what the request's head points to, before the client's read buffer is used again. */
void request_own(struct transaction *transaction);
/* The request's body becomes the transaction's; once. */
void request_take_body(struct transaction *transaction);
/* Takes the URL that is asked for into url_text and url, normalised. */
bool request_set_url(struct transaction *transaction, const struct url *url);
/* The same into a place of the caller's. */
bool request_write_url(struct transaction *transaction, const struct url *from, struct url *url,
                       struct slice *text, struct slice *authority);
/* Whom the URL names is in Host too, whatever has been written there, `host` (RFC 9112 §3.2.2). */
void request_show_host(struct transaction *transaction, struct slice host);
/* "host:port", with brackets where the host needs them; port 0: only the host. */
struct slice request_write_authority(struct transaction *transaction, struct slice host,
                                     uint16_t port);
/* The client's address as text, which outlives the client. */
struct slice request_client_ip(struct transaction *transaction);
/* The URL that a field of the response refers to, absolute and normalised; empty: none. */
struct slice request_resolve(struct transaction *transaction, struct slice reference);
/* The request as if it were a GET: what is stored is the answer to one. */
const struct http_head *request_as_get(struct transaction *transaction);

#endif
