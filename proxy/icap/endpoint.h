/*
 * An endpoint: one address of an ICAP service as one worker knows it: what its OPTIONS said,
 * whether it is up, and its idle connections.
 *
 *     UNKNOWN --OPTIONS--> UP --failures_down in a row, or no connection--> DOWN
 *                           ^                                                 | down_min, twice
 *                           |                                                 | that, ... down_max
 *                           +---- a transaction succeeds ---- TRIAL <--OPTIONS+
 *
 * OPTIONS are asked before the first use, and again when their TTL has passed by our clock, while
 * the old answer goes on serving. On TRIAL there is one transaction at a time; if it fails, the
 * endpoint is down again. An answer of 404 or 405 takes it down, for OPTIONS to be asked anew.
 *
 * Threads: one per worker, service and snapshot of the settings.
 */
#ifndef RETORT_ICAP_ENDPOINT_H
#define RETORT_ICAP_ENDPOINT_H

#include "icap/options.h"
#include "icap/quota.h"
#include "net/pool.h"
#include "settings/settings.h"

struct icap_service;
struct icap_probe; /* an OPTIONS request under way */

enum icap_state { ICAP_STATE_UNKNOWN, ICAP_STATE_DOWN, ICAP_STATE_TRIAL, ICAP_STATE_UP };

/* What can go wrong with a transaction, by whose fault. */
enum icap_failure {
    ICAP_FAILURE_CONNECT,
    ICAP_FAILURE_TIMEOUT,
    ICAP_FAILURE_CLOSED,
    ICAP_FAILURE_PROTOCOL,
    ICAP_FAILURE_REFUSED,    /* this message only */
    ICAP_FAILURE_PATIENCE,   /* 408 */
    ICAP_FAILURE_GONE,       /* 404, 405: not what it was configured for */
    ICAP_FAILURE_OVERLOADED, /* 503 */
    ICAP_FAILURE_SERVER,
    ICAP_FAILURE_QUEUE,
    ICAP_FAILURE_DOWN,
    ICAP_FAILURE_BODY, /* the virgin body broke off */
};

struct icap_endpoint {
    unsigned magic;
#define ICAP_ENDPOINT_MAGIC 0x1ca9e4d0u
    struct icap_service *service;
    unsigned index;
    const char *uri_text;
    const struct url *uri;
    char *head; /* what every request to it begins with, behind the method; ends with a line end */
    enum icap_state state;
    const char *error;
    struct icap_options options;
    bool have_options;
    uint64_t options_expire; /* loop time; TIMER_NEVER: never */
    uint64_t back_off;
    unsigned failures; /* transactions in a row */
    struct icap_probe *probe;
    struct timer retry;
    struct tls_client *tls; /* NULL: its uri is icap */
    struct pool *pool;
    unsigned busy;    /* connections that transactions use */
    unsigned counted; /* see icap/quota.h */
};

struct icap_endpoint *icap_endpoint_new(struct icap_service *service, unsigned index);
void icap_endpoint_free(struct icap_endpoint **endpointp);
/* Asks for OPTIONS where they are missing or too old. True: it can serve now. */
bool icap_endpoint_ready(struct icap_endpoint *endpoint);
void icap_endpoint_succeeded(struct icap_endpoint *endpoint);
void icap_endpoint_failed(struct icap_endpoint *endpoint, enum icap_failure failure,
                          const char *error);
/* An ISTag seen in any response (empty: none): what the response is of, see icap/tag.h. */
uint64_t icap_endpoint_see_istag(struct icap_endpoint *endpoint, struct slice istag,
                                 uint64_t generation);
struct icap_quota_bid icap_endpoint_bid(struct icap_endpoint *endpoint);
const char *icap_endpoint_state_name(const struct icap_endpoint *endpoint);
/* For the pool. */
struct slice icap_endpoint_key(const struct icap_endpoint *endpoint);

#endif
