/*
 * A service inside the proxy: what all workers share of it, and what one worker has.
 *
 *     struct inside_shared *shared = inside_shared_of(base);        shared->instance may be NULL
 *     struct inside_service *service = inside_service_of(adapter);
 *
 * Threads: the shared part is read-only; the other one is the worker's.
 */
#ifndef RETORT_INSIDE_SERVICE_H
#define RETORT_INSIDE_SERVICE_H

#include "adapt/shared_service.h"
#include "inside/instance.h"

struct inside_shared {
    struct shared_service shared;
    unsigned magic;
#define INSIDE_SHARED_MAGIC 0x1451de5au
    struct inside_instance *instance; /* referenced; NULL: it could not be started */
    char error[INSIDE_ERROR];         /* why */
    time_t since;                     /* seconds since 1970 */
};

struct inside_service {
    struct adapter base;
    unsigned magic;
#define INSIDE_SERVICE_MAGIC 0x1451de5eu
    struct net_context *net;
    struct inside_shared *shared;
    unsigned client_fields; /* enum client_field */
    unsigned calls;         /* under way */
};

static inline struct inside_shared *inside_shared_of(struct shared_service *base) {
    struct inside_shared *shared = CONTAINER_OF(base, struct inside_shared, shared);
    CHECK_OBJ(shared, INSIDE_SHARED_MAGIC);
    return shared;
}

static inline struct inside_service *inside_service_of(struct adapter *adapter) {
    struct inside_service *service = CONTAINER_OF(adapter, struct inside_service, base);
    CHECK_OBJ(service, INSIDE_SERVICE_MAGIC);
    return service;
}

#endif
