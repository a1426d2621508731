/*
 * An ICAP service as one worker knows it: an adapter (adapt/adapter.h) with its endpoints and those
 * who wait for one of them.
 *
 *     struct icap_service *service = icap_service_new(quota, settings, host);
 *     switch (icap_service_take(service, &call->waiter, NULL, &endpoint)) {
 *     case ICAP_SERVICE_UP:      a connection's place at `endpoint` is ours
 *     case ICAP_SERVICE_WAIT:    OPTIONS are being asked, or every connection is taken: the
 *                                waiter's task will run; ask again
 *     case ICAP_SERVICE_FULL:    so many wait already
 *     case ICAP_SERVICE_DOWN:    fail now: icap_service_error() says why
 *     }
 *     icap_service_leave(service, endpoint);
 *
 * While all endpoints are down nobody waits for them.
 *
 * Threads: one per worker and snapshot of the settings; the quota is shared.
 */
#ifndef RETORT_ICAP_SERVICE_H
#define RETORT_ICAP_SERVICE_H

#include "adapt/adapter.h"
#include "icap/endpoint.h"

enum icap_readiness { ICAP_SERVICE_UP, ICAP_SERVICE_WAIT, ICAP_SERVICE_FULL, ICAP_SERVICE_DOWN };

struct icap_waiter {
    struct list_link link;
    bool called; /* taken off the list, and its task has not asked again yet */
    struct task *task;
};

struct icap_service {
    struct adapter base;
    unsigned magic;
#define ICAP_SERVICE_MAGIC 0x1ca95e54u
    struct net_context *net;
    struct icap_quota *quota; /* the shared service of its adapter */
    struct icap_endpoint *endpoints[ICAP_ENDPOINTS_MAX];
    unsigned endpoint_count;
    bool retired;
    unsigned client_fields; /* enum client_field: those that it is configured to get */
    unsigned first;         /* endpoint that is asked first among equals */
    struct list_link waiting;
    unsigned waiting_count;
    struct waiter *waiter; /* in the quota, while somebody here waits */
    struct task wake_task;
    struct waiter *holder; /* in the quota, for what it keeps idle */
    struct task release_task;
};

static inline void icap_waiter_init(struct icap_waiter *waiter, struct task *task) {
    list_init(&waiter->link);
    waiter->called = false;
    waiter->task = task;
}

struct icap_service *icap_service_new(struct icap_quota *quota,
                                      const struct service_settings *settings,
                                      struct adapter_host *host);
/* Another snapshot's has taken its place: idle connections are closed, now and when a transaction
 * leaves one, or they would stand beside what that one may have. */
void icap_service_retire(struct icap_service *service);
void icap_service_free(struct icap_service **servicep);

/* Not `except`, if that is not NULL. */
enum icap_readiness icap_service_take(struct icap_service *service, struct icap_waiter *waiter,
                                      const struct icap_endpoint *except,
                                      struct icap_endpoint **endpoint);
void icap_service_stop_waiting(struct icap_service *service, struct icap_waiter *waiter);
/* The transaction is over; its connection has been closed, or pooled. */
void icap_service_leave(struct icap_service *service, struct icap_endpoint *endpoint);
/* A result of it is used without asking it: has its OPTIONS asked where they are missing or too
 * old, so that a new ISTag is noticed. */
void icap_service_keep_known(struct icap_service *service);
/* Why nothing is to be had: of the endpoint that was asked first. */
const char *icap_service_error(const struct icap_service *service);
unsigned icap_service_connections(const struct icap_service *service);

/* Inside icap/. */
void icap_service_wake_all(struct icap_service *service);
/* Counts a failure, and takes the endpoint (NULL: none was reached) down if it is due. `turn` is
 * of its health, when what failed began. */
void icap_service_failed(struct icap_service *service, struct icap_endpoint *endpoint,
                         uint64_t turn, enum icap_failure failure, const char *error);

/*
 * Which fields about the client (adapt/client_fields.h) a service gets, as bits of enum client_field: those
 * that it asks for in its OPTIONS, or is configured to get (icap_service.include).
 */

/* Those that the operator has configured. */
unsigned icap_client_fields_configured(const struct service_settings *settings);
unsigned icap_client_fields_at(const struct icap_endpoint *endpoint);
/* At any of its endpoints, as far as they are known. */
unsigned icap_client_fields_of(const struct icap_service *service);

#endif
