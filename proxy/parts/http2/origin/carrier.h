/*
 * A carrier: a connection with HTTP/2 to an origin, and the calls that share it.
 *
 *     struct origin_carrier *carrier = origin_carrier_new(host, site, &connection);
 *     carrier = origin_carrier_find(call);              one that takes the call's stream; NULL: none
 *     http2_session_open(&carrier->session, &own->stream);
 *     origin_carrier_lose(carrier);                     its host is lost
 *
 * A carrier stands in its site's list while it takes new streams. It ends by itself: when it is idle
 * for origin.idle_timeout, when the origin has said GOAWAY and its last stream has ended, or when the
 * connection is lost.
 *
 * A client that does not read its response must not stop others: the window of the connection is
 * twice that of all streams together, so that it is never used up while some stream has room.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_HTTP2_ORIGIN_CARRIER_H
#define RETORT_HTTP2_ORIGIN_CARRIER_H

#include "http2/session.h"
#include "origin/call.h"

/* What a worker keeps. */
struct origin_http2_host {
    unsigned magic;
#define ORIGIN_HTTP2_HOST_MAGIC 0x04192405u
    struct net_context *net;
    struct http2_workspace *workspace;
    struct list_link carriers; /* all */
};

struct origin_carrier {
    unsigned magic;
#define ORIGIN_CARRIER_MAGIC 0x0419ca44u
    struct origin_http2_host *host;
    struct origin_site *site; /* counted */
    struct list_link link;    /* of site->carriers, while it takes streams */
    struct list_link all;     /* of host->carriers */
    unsigned most;            /* streams at a time, by our settings */
    bool told_to_leave;       /* the origin's GOAWAY was counted */
    struct http2_session session;
};

struct origin_carrier *origin_carrier_new(struct origin_http2_host *host, struct origin_site *site,
                                          struct connection **connectionp);
struct origin_carrier *origin_carrier_find(const struct origin_call *call);
/* May the call open one more? */
bool origin_carrier_may_open(const struct origin_call *call);
/* Has the origin shown that it speaks HTTP/2? */
bool origin_carrier_is_known(const struct origin_carrier *carrier);
/* Breaks the connection: all its streams are over. */
void origin_carrier_lose(struct origin_carrier *carrier);
void origin_carriers_close_idle(struct origin_site *site);
void *origin_http2_open_worker(struct net_context *net);
void origin_http2_close_worker(void *own);

#endif
