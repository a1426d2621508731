/*
 * An endpoint: one address of an ICAP service as one worker uses it: its idle connections, what it
 * knows of the endpoint's health (icap/health.h), and its turn in asking for that.
 *
 *     if (icap_endpoint_ready(endpoint)) ...        a connection's place may be asked for
 *     icap_endpoint_failed(endpoint, call->turn, ICAP_FAILURE_CLOSED, error);
 *
 * OPTIONS are asked before the first use, and again when their TTL has passed by our clock, while
 * the old answer goes on serving. Those go over a connection that is there already, or take the
 * place of one: that which a transaction has just left, or else an idle one, or a new one if the
 * quota has room. While an endpoint is down one worker of all tries it.
 *
 * While something is under way its connections are looked at every now and then (icap/look.h): has
 * their host fallen silent?
 *
 * Threads: one per worker, service and snapshot of the settings.
 */
#ifndef RETORT_ICAP_ENDPOINT_H
#define RETORT_ICAP_ENDPOINT_H

#include "icap/look.h"
#include "icap/lost_connections.h"
#include "icap/quota.h"
#include "net/dial.h"
#include "net/pool.h"
#include "settings/settings.h"
#include "tls/client.h"

struct icap_service;
struct icap_probe; /* an OPTIONS request under way */
struct icap_info;

#define ICAP_HOST_IS_SILENT "its host does not answer any more"

struct icap_endpoint {
    unsigned magic;
#define ICAP_ENDPOINT_MAGIC 0x1ca9e4d0u
    struct icap_service *service;
    unsigned index;
    const char *uri_text;
    const struct url *uri;
    char *head; /* what every request to it begins with, behind the method; ends with a line end */
    struct icap_health *health; /* the quota's */
    struct icap_health_view known;
    struct waiter *watcher; /* for changes of it */
    struct task change_task;
    struct icap_probe *probe;
    struct icap_info *info; /* NULL: its server is not asked for its numbers */
    bool renewing;          /* by the probe, which has taken a place */
    struct timer retry;
    unsigned tries; /* while it was out of reach */
    struct icap_look look;
    struct icap_lost_connections lost_connections;
    struct tls_client *tls; /* NULL: its uri is icap */
    uint64_t shifts;        /* that its idle connections have come after */
    struct pool *pool;
    unsigned turns;   /* of one connection that others wait for as well */
    unsigned busy;    /* connections that transactions use, or a renewal of OPTIONS */
    unsigned counted; /* see icap/quota.h */
};

struct icap_endpoint *icap_endpoint_new(struct icap_service *service, unsigned index);
/* The fields that never change, of a request for a URI of its server, behind the method: its URI,
 * Host and the others. The caller frees them. */
char *icap_endpoint_write_head(const struct icap_endpoint *endpoint, const char *uri_text);
void icap_endpoint_free(struct icap_endpoint **endpointp);
/* The service serves no new transactions: others are to ask it. */
void icap_endpoint_retire(struct icap_endpoint *endpoint);
/* Asks for OPTIONS where they are missing or too old. True: it can serve now. */
bool icap_endpoint_ready(struct icap_endpoint *endpoint);
void icap_endpoint_close_idle(struct icap_endpoint *endpoint);
/* A connection that a transaction has done with: for the next one, if it is reusable. */
void icap_endpoint_take_back(struct icap_endpoint *endpoint, struct connection **connection,
                             bool reusable);
/* Has OPTIONS asked over it if they are due. True: it is taken, and its place with it. */
bool icap_endpoint_renew_over(struct icap_endpoint *endpoint, struct connection **connection);
void icap_endpoint_succeeded(struct icap_endpoint *endpoint);
/* Of a transaction that began when `turn` was the health's. */
void icap_endpoint_failed(struct icap_endpoint *endpoint, uint64_t turn, enum icap_failure failure,
                          const char *error);
/* It is out of reach, as far as is known. */
static inline bool icap_endpoint_is_lost(const struct icap_endpoint *endpoint) {
    return endpoint->known.state == SERVICE_DOWN && endpoint->known.unreachable;
}
/* An ISTag seen in any response (empty: none) to what was asked at that moment: what the response
 * is of, see adapt/service_tag.h. */
struct service_tag_sight icap_endpoint_see_istag(struct icap_endpoint *endpoint, struct slice istag,
                                                 const struct service_tag_moment *asked);
struct icap_quota_bid icap_endpoint_bid(struct icap_endpoint *endpoint);
/* Where connections to it go. */
struct dial_target icap_endpoint_target(const struct icap_endpoint *endpoint, uint64_t timeout);
/* For the pool. */
struct slice icap_endpoint_key(const struct icap_endpoint *endpoint);

#endif
