/*
 * An ICAP service as one worker knows it: what its OPTIONS said, whether it is up, and its
 * connections.
 *
 *     struct icap_service *service = icap_service_new(net, settings, workers);
 *     switch (icap_service_ready(service, &call->waiter)) {
 *     case ICAP_SERVICE_UP:      go on: icap_service_connect
 *     case ICAP_SERVICE_WAIT:    OPTIONS are being asked, or every connection is taken: the
 * waiter's task will run; ask again case ICAP_SERVICE_DOWN:    fail now: icap_service_error() says
 * why
 *     }
 *
 * OPTIONS are asked before the first use, and again when their TTL has passed by our clock, while
 * the old answer goes on serving. A service goes down when it can't be reached, does not answer
 * OPTIONS, or fails FAILURES_DOWN transactions in a row; it is then tried again by itself after
 * down_min, twice that, and so on up to down_max. While it is down nobody waits for it.
 *
 * Connections: max_connections of the settings and Max-Connections of the service bound all workers
 * together; each worker has its share, at least one.
 *
 * Threads: one per worker and snapshot of the settings.
 */
#ifndef RETORT_ICAP_SERVICE_H
#define RETORT_ICAP_SERVICE_H

#include "icap/options.h"
#include "net/dial.h"
#include "net/pool.h"
#include "settings/settings.h"

enum icap_readiness { ICAP_SERVICE_UP, ICAP_SERVICE_WAIT, ICAP_SERVICE_DOWN };
enum icap_service_state { ICAP_STATE_UNKNOWN, ICAP_STATE_UP, ICAP_STATE_DOWN };

struct icap_waiter {
    struct list_link link;
    bool called; /* taken off the list, and its task has not asked again yet */
    struct task *task;
};

struct icap_probe; /* an OPTIONS request under way */

struct icap_service {
    unsigned magic;
#define ICAP_SERVICE_MAGIC 0x1ca95e54u
    struct net_context *net;
    const struct icap_service_settings *settings;
    unsigned workers;
    enum icap_service_state state;
    const char *error;
    struct icap_options options;
    bool have_options;
    uint64_t options_expire; /* loop time; TIMER_NEVER: never */
    uint64_t back_off;
    unsigned failures; /* transactions in a row */
    struct icap_probe *probe;
    struct timer retry;
    struct pool *pool;
    unsigned connections; /* in use by transactions */
    struct list_link waiting;
    unsigned waiting_count;
};

static inline void icap_waiter_init(struct icap_waiter *waiter, struct task *task) {
    list_init(&waiter->link);
    waiter->called = false;
    waiter->task = task;
}

struct icap_service *icap_service_new(struct net_context *net,
                                      const struct icap_service_settings *settings,
                                      unsigned workers);
void icap_service_free(struct icap_service **servicep);

enum icap_readiness icap_service_ready(struct icap_service *service, struct icap_waiter *waiter);
void icap_service_stop_waiting(struct icap_service *service, struct icap_waiter *waiter);
const char *icap_service_error(const struct icap_service *service);

/* A connection's place is taken by icap_service_ready and given back here. */
void icap_service_leave(struct icap_service *service);
/* How a transaction went: a row of failures brings the service down, unreachable does at once. */
void icap_service_succeeded(struct icap_service *service);
void icap_service_failed(struct icap_service *service, bool unreachable, const char *error);
/* An ISTag seen in any response. */
void icap_service_see_istag(struct icap_service *service, struct slice istag);

struct slice icap_service_pool_key(const struct icap_service *service);
const char *icap_service_state_name(const struct icap_service *service);

#endif
