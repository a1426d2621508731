/*
 * The request of a transaction as it is now: what the client sent, with what REQMOD and the
 * policies of the cache have made of it since.
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

#endif
