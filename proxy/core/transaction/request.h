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
#include "net/address.h"

enum request_kind {
    REQUEST_PLAIN,
    REQUEST_CONNECT,
    REQUEST_UPGRADE,    /* would go on in another protocol (RFC 9110 §7.8) */
    REQUEST_FOR_SERVER, /* OPTIONS of a URL without a path (RFC 9112 §3.2.4) */
};

/* Written by request.c and request_rules.c. */
struct request {
    enum request_kind kind;
    bool body_taken;
    struct http_head *head;       /* the exchange's */
    struct slice original_url;    /* as the client asked, for the log */
    struct slice original_method; /* likewise */
    struct slice url_text;        /* absolute, normalised */
    struct url url;               /* its parts */
    struct slice authority;       /* "host" or "host:port" of url_text */
    struct slice client_ip;       /* see request_client_ip */
    struct slice upgrade;         /* the protocols that the client would change to */
    struct source *body;          /* owned once taken */
    struct slice credentials;     /* Proxy-Authorization, kept from most services */
    const uint64_t *rules;        /* see request_rules; NULL: not asked yet, or no longer true */
    bool rules_unsure;            /* an expression of theirs gave up (match/regex.h) */
    /* What rules may ask for and what becomes known late: see request_set_user. */
    const struct class_user *user;      /* NULL: nobody is proven */
    const struct address *destinations; /* that the host has resolved to */
    size_t destination_count;           /* 0: not known */
};

struct class_user;
struct transaction;

/* The exchange's request becomes the transaction's. */
void request_begin(struct transaction *transaction);
/* A CONNECT to that host and port. */
void request_set_connect(struct transaction *transaction, const struct url *url);
/* An upgrade to one of these protocols. */
void request_set_upgrade(struct transaction *transaction, struct slice protocols);
void request_set_for_server(struct transaction *transaction);
/* Makes the log show the normalised URL, since the client has sent the URL in pieces. */
void request_log_url(struct transaction *transaction);
/* Takes user info ("user:password@") out of a target that is refused and so will never be a URL: it
 * must not stand in logs. */
void request_hide_user_info(struct transaction *transaction);
/* A service has changed the request, so other rules may match it. */
void request_changed(struct transaction *transaction);
/* Notes who the request is from, or what its host has resolved to, for the rules that ask for that.
 * Both belong to the caller and live as long as the transaction. */
void request_set_user(struct transaction *transaction, const struct class_user *user);
void request_set_destinations(struct transaction *transaction, const struct address *addresses,
                              size_t count);
/* Replaces the URL by `shorter`: the same URL with less in its query. */
void request_shorten_url(struct transaction *transaction, struct slice shorter);
/* Notes the Proxy-Authorization of a head from which it is about to be removed. Inside an
 * intercepted connection that of the CONNECT counts. */
void request_keep_credentials(struct transaction *transaction, const struct http_head *head);
/* The body, for a chain of services; NULL: none. request_put_body brings back what came out. */
struct source *request_give_body(struct transaction *transaction);
void request_put_body(struct transaction *transaction, struct source **bodyp);
void request_close_body(struct transaction *transaction);
/* Copies what the request's head points to, before the client's read buffer is used again. */
void request_own(struct transaction *transaction);
/* The request's body becomes the transaction's; once. */
void request_take_body(struct transaction *transaction);
/* Takes the URL that is asked for into url_text and url, normalised. */
bool request_set_url(struct transaction *transaction, const struct url *url);
/* As request_set_url, but writes into variables of the caller. */
bool request_write_url(struct transaction *transaction, const struct url *from, struct url *url,
                       struct slice *text, struct slice *authority);
/* Writes `host`, the host that the URL names, into the field Host, whatever the client has written
 * there (RFC 9112 §3.2.2). */
void request_show_host(struct transaction *transaction, struct slice host);
/* "host:port", with brackets where the host needs them; port 0: only the host. */
struct slice request_write_authority(struct transaction *transaction, struct slice host,
                                     uint16_t port);
/* Whose request it is: the client, also behind a trusted proxy. Lives as long as the exchange. */
const struct address *request_client(const struct transaction *transaction);
/* The client's address as text, which outlives the client. */
struct slice request_client_ip(struct transaction *transaction);
/* The URL that a field of the response refers to, absolute and normalised; empty: none. */
struct slice request_resolve(struct transaction *transaction, struct slice reference);
/* The request as if it were a GET: what is stored is the answer to one. */
const struct http_head *request_as_get(struct transaction *transaction);

#endif
