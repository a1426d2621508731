#include "icap/service.h"

#include "adapt/client_fields.h"
#include "base/assert.h"

#include <strings.h>

static void on_places(struct task *task);
static void service_on_release(struct task *task);

struct icap_service *icap_service_new(struct icap_quota *quota,
                                      const struct service_settings *settings,
                                      struct adapter_host *host) {
    struct icap_service *service;
    ALLOC_OBJ(service, ICAP_SERVICE_MAGIC);
    adapter_init(&service->base, &quota->shared, settings, host);
    service->net = host->net;
    service->quota = quota;
    service->client_fields = icap_client_fields_configured(settings);
    list_init(&service->waiting);
    task_init(&service->wake_task, on_places);
    task_init(&service->release_task, service_on_release);
    service->endpoint_count = settings->endpoint_count;
    for (unsigned i = 0; i < service->endpoint_count; i++)
        service->endpoints[i] = icap_endpoint_new(service, i);
    return service;
}

void icap_service_retire(struct icap_service *service) {
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    service->retired = true;
    for (unsigned i = 0; i < service->endpoint_count; i++)
        icap_endpoint_retire(service->endpoints[i]);
}

void icap_service_free(struct icap_service **servicep) {
    struct icap_service *service = *servicep;
    *servicep = NULL;
    if (service == NULL)
        return;
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    ASSERT(list_empty(&service->waiting));
    waiter_cancel(&service->waiter, &service->quota->lock);
    task_cancel(&service->wake_task);
    waiter_cancel(&service->holder, &service->quota->lock);
    task_cancel(&service->release_task);
    for (unsigned i = 0; i < service->endpoint_count; i++)
        icap_endpoint_free(&service->endpoints[i]);
    adapter_release(&service->base);
    FREE_OBJ(service);
}

static void wake_one(struct icap_service *service) {
    struct list_link *link = list_first(&service->waiting);
    if (link == NULL)
        return;
    struct icap_waiter *waiter = CONTAINER_OF(link, struct icap_waiter, link);
    list_remove(link);
    service->waiting_count--;
    waiter->called = true;
    loop_defer(service->net->loop, waiter->task);
}

void icap_service_wake_all(struct icap_service *service) {
    while (!list_empty(&service->waiting))
        wake_one(service);
}

/* A connection has become free in some worker. */
static void on_places(struct task *task) {
    struct icap_service *service = CONTAINER_OF(task, struct icap_service, wake_task);
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    wake_one(service);
}

/* Another worker waits for a connection and has no share of its own. */
static void service_on_release(struct task *task) {
    struct icap_service *service = CONTAINER_OF(task, struct icap_service, release_task);
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    for (unsigned i = 0; i < service->endpoint_count; i++)
        icap_endpoint_close_idle(service->endpoints[i]);
}

/* Waiting transactions are told of free connections one at a time. */
static void watch_quota(struct icap_service *service) {
    if (!list_empty(&service->waiting))
        icap_quota_wait(service->quota, &service->waiter, service->base.host->mailbox,
                        &service->wake_task);
}

/* A transaction that was called too late keeps its turn. */
static enum icap_readiness service_wait_for(struct icap_service *service,
                                            struct icap_waiter *waiter, bool called) {
    if (!list_empty(&waiter->link))
        return ICAP_SERVICE_WAIT;
    if (!called && service->waiting_count >= service->base.settings->queue_max)
        return ICAP_SERVICE_FULL;
    if (called)
        list_prepend(&service->waiting, &waiter->link);
    else
        list_append(&service->waiting, &waiter->link);
    service->waiting_count++;
    return ICAP_SERVICE_WAIT;
}

static void stop_waiting(struct icap_service *service, struct icap_waiter *waiter) {
    if (list_empty(&waiter->link))
        return;
    list_remove(&waiter->link);
    service->waiting_count--;
}

/* The endpoints that can serve; *hopeful: those that are not down. */
static unsigned service_gather(struct icap_service *service, const struct icap_endpoint *except,
                               struct icap_quota_bid bids[ICAP_ENDPOINTS_MAX], unsigned *hopeful) {
    unsigned count = 0;
    *hopeful = 0;
    for (unsigned i = 0; i < service->endpoint_count; i++) {
        struct icap_endpoint *endpoint =
            service->endpoints[(service->first + i) % service->endpoint_count];
        if (endpoint == except)
            continue;
        if (icap_endpoint_ready(endpoint))
            bids[count++] = icap_endpoint_bid(endpoint);
        if (endpoint->known.state != SERVICE_DOWN)
            (*hopeful)++;
    }
    return count;
}

static bool try(struct icap_service *service, const struct icap_quota_bid *bids, unsigned count,
                struct icap_endpoint **endpoint) {
    int best = -1;
    if (count > 0)
        best = icap_quota_take(service->quota, bids, count, service->net->loop->now);
    if (best < 0)
        return false;
    *endpoint = service->endpoints[bids[best].endpoint];
    (*endpoint)->busy++;
    service->first = (bids[best].endpoint + 1) % service->endpoint_count;
    return true;
}

enum icap_readiness icap_service_take(struct icap_service *service, struct icap_waiter *waiter,
                                      const struct icap_endpoint *except,
                                      struct icap_endpoint **endpoint) {
    struct icap_quota_bid bids[ICAP_ENDPOINTS_MAX];
    unsigned hopeful;
    bool called = waiter->called;
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    waiter->called = false;
    unsigned count = service_gather(service, except, bids, &hopeful);
    if (hopeful == 0)
        return ICAP_SERVICE_DOWN;
    bool got = try(service, bids, count, endpoint);
    if (!got) {
        if (service_wait_for(service, waiter, called) == ICAP_SERVICE_FULL)
            return ICAP_SERVICE_FULL;
        watch_quota(service);
        /* A connection that became free before we started to watch would not be reported. */
        got = try(service, bids, count, endpoint);
    }
    if (!got)
        return ICAP_SERVICE_WAIT;
    stop_waiting(service, waiter);
    wake_one(service); /* there may be more connections for the next one */
    return ICAP_SERVICE_UP;
}

void icap_service_stop_waiting(struct icap_service *service, struct icap_waiter *waiter) {
    if (waiter->called) {
        waiter->called = false;
        wake_one(service); /* its turn passes to the next one */
    }
    stop_waiting(service, waiter);
}

void icap_service_leave(struct icap_service *service, struct icap_endpoint *endpoint) {
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    ASSERT(endpoint->busy > 0);
    endpoint->busy--;
    struct icap_quota_bid bid = icap_endpoint_bid(endpoint);
    icap_quota_leave(service->quota, &bid, service->net->loop);
}

void icap_service_keep_known(struct icap_service *service) {
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    for (unsigned i = 0; i < service->endpoint_count; i++)
        icap_endpoint_ready(service->endpoints[i]);
}

void icap_service_failed(struct icap_service *service, struct icap_endpoint *endpoint,
                         uint64_t turn, enum icap_failure failure, const char *error) {
    struct adapter_account *account = &service->base.account;
    uint64_t *const counts[] = {
        [ICAP_FAILURE_CONNECT] = &account->error_connect,
        [ICAP_FAILURE_HANDSHAKE] = &account->error_connect,
        [ICAP_FAILURE_LOST] = &account->error_lost,
        [ICAP_FAILURE_TIMEOUT] = &account->error_timeout,
        [ICAP_FAILURE_CLOSED] = &account->error_closed,
        [ICAP_FAILURE_PROTOCOL] = &account->error_protocol,
        [ICAP_FAILURE_REFUSED] = &account->error_refused,
        [ICAP_FAILURE_PATIENCE] = &account->error_refused,
        [ICAP_FAILURE_GONE] = &account->error_refused,
        [ICAP_FAILURE_OVERLOADED] = &account->error_overloaded,
        [ICAP_FAILURE_SERVER] = &account->error_server,
        [ICAP_FAILURE_QUEUE] = &account->error_queue,
        [ICAP_FAILURE_DOWN] = &account->error_down,
        [ICAP_FAILURE_BODY] = &account->error_body,
    };
    CHECK_OBJ(service, ICAP_SERVICE_MAGIC);
    (*counts[failure])++;
    if (failure != ICAP_FAILURE_BODY)
        service->net->counters.icap_failures++;
    if (endpoint != NULL)
        icap_endpoint_failed(endpoint, turn, failure, error);
}

const char *icap_service_error(const struct icap_service *service) {
    return service->endpoints[service->first]->known.error;
}

unsigned icap_service_connections(const struct icap_service *service) {
    unsigned count = 0;
    for (unsigned i = 0; i < service->endpoint_count; i++)
        count += service->endpoints[i]->busy;
    return count;
}

static bool is_included(const struct service_settings *settings, const char *name) {
    for (char **each = settings->include; each != NULL && *each != NULL; each++)
        if (strcasecmp(*each, name) == 0)
            return true;
    return false;
}

unsigned icap_client_fields_configured(const struct service_settings *settings) {
    unsigned fields = settings->proxy_credentials ? CLIENT_FIELD_CREDENTIALS : 0;
    for (size_t i = 0; i < CLIENT_FIELD_NAMES; i++)
        if (is_included(settings, client_field_names[i].name.base))
            fields |= client_field_names[i].field;
    return fields;
}

unsigned icap_client_fields_at(const struct icap_endpoint *endpoint) {
    return endpoint->service->client_fields | endpoint->known.options.client_fields;
}

unsigned icap_client_fields_of(const struct icap_service *service) {
    unsigned fields = 0;
    for (unsigned i = 0; i < service->endpoint_count; i++)
        fields |= icap_client_fields_at(service->endpoints[i]);
    return fields;
}
