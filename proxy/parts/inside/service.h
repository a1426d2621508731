/*
 * A service inside the proxy: what all workers share of it, and what one worker has.
 *
 *     struct inside_shared *shared = inside_shared_of(base);        shared->instance may be NULL
 *     struct inside_service *service = inside_service_of(adapter);
 *     result->tag = inside_service_tag(service, generation, fingerprint);     of what was made there
 *
 * Threads: the shared part is read-only but for its era; the other one is the worker's.
 */
#ifndef RETORT_INSIDE_SERVICE_H
#define RETORT_INSIDE_SERVICE_H

#include "adapt/shared_service.h"
#include "inside/concurrency.h"
#include "inside/instance.h"
#include "inside/watches.h"

struct inside_runner_links;

struct inside_shared {
    struct shared_service shared;
    unsigned magic;
#define INSIDE_SHARED_MAGIC 0x1451de5au
    struct inside_instance *instance;  /* referenced; NULL: it could not be started */
    char error[INSIDE_ERROR];          /* why */
    struct inside_concurrency *places; /* referenced */
    struct inside_counts *counts;      /* of this instance, or of the last one; referenced */
    time_t since;                      /* seconds since 1970 */
    _Atomic uint64_t fingerprint;      /* of the process whose version the tag knows */
    _Atomic uint64_t era; /* of the tag, when the first worker used it; UINT64_MAX: none has yet */
};

struct inside_service {
    struct adapter base;
    unsigned magic;
#define INSIDE_SERVICE_MAGIC 0x1451de5eu
    struct net_context *net;
    struct inside_shared *shared;
    struct inside_runner_links *runner_links; /* NULL: the service runs in the worker */
    struct slice arguments;
    unsigned client_fields;         /* enum client_field */
    unsigned calls;                 /* under way */
    struct inside_watches *watches; /* NULL: the service has none, or another worker has them */
    struct inside_queue queue;
    struct {
        struct service_tag_moment moment;
        uint64_t fingerprint; /* of the instance then: its next process may have another */
        uint64_t value;
    } tag; /* as it was last asked for; value 0: not yet */
};

/* The tag of results of the instance, which were asked for in that generation of the service's tag, and
 * made by who has that fingerprint. A process that others have overtaken, since they were started again
 * and found other lists, makes results that are old from the beginning.
 * The instance of a later reload has begun a new era of the tag: what an earlier one still makes
 * does not bring its version back. As long as neither changes, no lock is taken. */
uint64_t inside_service_tag(struct inside_service *service, uint64_t generation,
                            uint64_t fingerprint);

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
