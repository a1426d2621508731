/*
 * A quota: the connections that all workers together have to one ICAP service, and how many they
 * may have: to all of its endpoints (max_connections), and to each one (its Max-Connections, and
 * less for a while after a 503).
 *
 *     struct icap_quota_bid bids[] = {{.endpoint = 0, .share = &share, .busy = 3, .idle = 1}, ...};
 *     int won = icap_quota_take(quota, bids, count, now);     index of the least loaded one; or -1:
 *     icap_quota_wait(quota, &slot, mailbox, &task);          the task runs when one may be free
 *     ... its own idle connection, or a new one ...
 *     icap_quota_leave(quota, &bid, loop);      the connection was closed or is idle now
 *
 * A connection counts from its opening to its end, idle ones included: at an ICAP server even those
 * may hold a thread. A worker keeps at most its share of them idle, so that none is starved by
 * what another one does not use. Where there are fewer connections than workers, each may keep one
 * until another waits: then it is told to close it. Connections that end while idle are noticed at
 * the worker's next call, which is soon enough, as they are within its share.
 *
 * It is what workers share of an ICAP service (adapt/shared_service.h), so the health of its
 * endpoints (icap/health.h) stands in it as well.
 *
 * Called by the workers' connections to the service. Units: connections; `now` and `until` are
 * milliseconds of the loop's clock. Ownership: bids and keepers are the worker's, and are read until the
 * call returns.
 *
 * Threads: any; one lock a service. Errors: none; -1 says that no connection is free.
 */
#ifndef RETORT_ICAP_QUOTA_H
#define RETORT_ICAP_QUOTA_H

#include "adapt/shared_service.h"
#include "base/assert.h"
#include "event/waiter.h"
#include "icap/health.h"
#include "icap/server.h"
#include "settings/settings.h"

struct icap_quota_endpoint {
    unsigned open, busy;
    unsigned stated;  /* its Max-Connections; 0: not stated */
    unsigned lowered; /* by a 503; 0: not */
    uint64_t lowered_until;
};

struct icap_quota {
    struct shared_service shared;
    unsigned magic;
#define ICAP_QUOTA_MAGIC 0x1ca9900au
    pthread_mutex_t lock;
    unsigned most, workers, endpoint_count;
    unsigned open;
    unsigned asking; /* workers in `waiting` */
    struct list_link waiting;
    struct list_link holding; /* workers that keep one idle of which they have no share */
    struct icap_health *health[ICAP_ENDPOINTS_MAX]; /* referenced */
    /* Referenced; NULL: its numbers are not asked for. Two endpoints may have the same one. */
    struct icap_server *servers[ICAP_ENDPOINTS_MAX];
    struct icap_quota_endpoint endpoints[ICAP_ENDPOINTS_MAX];
};

/* What a worker has of an endpoint. */
struct icap_quota_bid {
    unsigned endpoint;
    unsigned busy, idle; /* connections, now */
    unsigned *counted;   /* those that the quota knows of: the worker's, 0 at first */
    bool alone;          /* nothing else may be under way there, of any worker */
};

/* A worker that would keep a connection idle. */
struct icap_quota_keeper {
    bool waits;              /* it is in `waiting` */
    bool next;               /* somebody of its own is to have the connection next */
    struct waiter **slot;    /* for `holding` */
    struct mailbox *mailbox; /* NULL: it can't be told */
    struct task *release;    /* closes what is idle */
};

/* `before`: those of an earlier snapshot, whose health goes on; NULL: there are none. */
struct icap_quota *icap_quota_new(const struct adapter_class *class,
                                  const struct settings *settings, size_t index,
                                  const struct shared_services *before);
/* Nobody waits for it any more. */
void icap_quota_free(struct icap_quota **quotap);
static inline struct icap_quota *icap_quota_of(struct shared_service *shared) {
    return CONTAINER_OF(shared, struct icap_quota, shared);
}

/* Before taking, `busy` does not count the one that is asked for; before leaving, not any more. */
/* Is there less under way at the endpoint than it takes? Then it may be asked whether it is up. */
bool icap_quota_may_ask(struct icap_quota *quota, unsigned endpoint);
int icap_quota_take(struct icap_quota *quota, const struct icap_quota_bid *bids, unsigned count,
                    uint64_t now);
void icap_quota_leave(struct icap_quota *quota, const struct icap_quota_bid *bid,
                      const struct loop *loop);
/* Idle connections were closed out of turn. */
void icap_quota_note(struct icap_quota *quota, const struct icap_quota_bid *bid,
                     const struct loop *loop);
void icap_quota_wait(struct icap_quota *quota, struct waiter **slot, struct mailbox *mailbox,
                     struct task *task);
/* Idle connections that a worker may keep to the endpoint. */
unsigned icap_quota_idle(struct icap_quota *quota, const struct icap_quota_bid *bid,
                         const struct icap_quota_keeper *keeper);
/* What OPTIONS say; 0: nothing. */
void icap_quota_state(struct icap_quota *quota, unsigned endpoint, unsigned max_connections);
/* A 503: half of what is under way, until `until`. */
void icap_quota_lower(struct icap_quota *quota, unsigned endpoint, uint64_t until);

#endif
