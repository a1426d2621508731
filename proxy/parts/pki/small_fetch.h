/*
 * A small fetch: a GET or POST by http whose whole response body is kept in memory. It fetches
 * certificates and OCSP responses for TLS, and nothing for clients.
 *
 *     const struct small_fetch_request request = {
 *         .url = SLICE("http://ca.example/issuer.der"), .egress = EGRESS_PUBLIC,
 *         .hops = 4, .timeout = 5000};
 *     small_fetch_start(&fetch, net, connections, &request, &owner->task);
 *     ... the task runs ...
 *     if (fetch.state == SMALL_FETCH_DONE)     fetch.body, fetch.length, fetch.hops
 *     if (fetch.state == SMALL_FETCH_FAILED)   fetch.error says why
 *     small_fetch_close(&fetch);               any time
 *
 * The bounds: SMALL_FETCH_BODY bytes, `hops` requests (the first one and redirects), and `timeout`
 * milliseconds for everything together. Redirects are followed for GET, and only to http. The
 * addresses that a name resolves to are checked against `reach` for each request.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_PKI_SMALL_FETCH_H
#define RETORT_PKI_SMALL_FETCH_H

#include "event/source.h"
#include "origin/call.h"

enum { SMALL_FETCH_BODY = 65536, SMALL_FETCH_URL = 1024, SMALL_FETCH_ERROR = 160 };

struct small_fetch_request {
    struct slice url; /* absolute; copied */
    enum egress egress;
    unsigned hops;
    uint64_t timeout;
    struct slice post; /* the body of a POST, which must live until the end; empty: GET */
    struct slice type; /* Content-Type of it */
};

enum small_fetch_state { SMALL_FETCH_BUSY, SMALL_FETCH_DONE, SMALL_FETCH_FAILED };

struct small_fetch {
    unsigned magic;
#define SMALL_FETCH_MAGIC 0x54a11fe7u
    enum small_fetch_state state;
    struct net_context *net;
    struct origin_pool *connections;
    struct small_fetch_request request;
    uint64_t deadline;
    unsigned hops; /* requests so far */
    struct url url;
    char url_text[SMALL_FETCH_URL + 1];
    char head[SMALL_FETCH_URL + 512];
    struct bytes_source post;
    struct task task;
    struct origin_call call;
    bool calling;
    struct http_head response;
    struct source *source; /* the response's body; NULL: not there yet */
    unsigned char *body;
    size_t length;
    char error[SMALL_FETCH_ERROR];
    struct task *waker;
};

void small_fetch_start(struct small_fetch *fetch, struct net_context *net,
                       struct origin_pool *connections, const struct small_fetch_request *request,
                       struct task *waker);
void small_fetch_close(struct small_fetch *fetch);
/* Writes the URL that `location` leads to, seen from `base`: an absolute http URL, or an absolute
 * path. False: it leads elsewhere. */
bool small_fetch_redirect(const struct url *base, struct slice location,
                          char url[SMALL_FETCH_URL + 1]);

#endif
