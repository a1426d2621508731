#include "inside/adapter.h"

#include "adapt/adapter.h"
#include "adapt/client_fields.h"
#include "adapt/service_report.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "inside/call.h"
#include "inside/content.h"
#include "inside/remote.h"
#include "inside/service.h"
#include "net/resolver.h"
#include "service/service.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Or-ed bits of enum adapter_event. */
static unsigned inside_event_calls_of(const struct service_ops *ops) {
    return (ops->logged != NULL ? (unsigned)ADAPTER_HEARS_LOG : 0) |
           (ops->closed != NULL ? (unsigned)ADAPTER_HEARS_CLOSED : 0) |
           (ops->resolved != NULL ? (unsigned)ADAPTER_HEARS_NAMES : 0);
}

static uint64_t told_clock(void) {
    return clocks_microseconds(CLOCK_MONOTONIC);
}

static uint64_t told_enter(struct inside_service *service, const char *what) {
    uint64_t now = told_clock();
    foreign_call_enter(&service->base.host->foreign, service->shared->instance->kept_name, what,
                       now);
    return now;
}

static void told_leave(struct inside_service *service, const char *what, uint64_t began) {
    uint64_t took = told_clock() - began;
    foreign_call_leave(&service->base.host->foreign);
    if (took <= INSIDE_SLOW)
        return;
    service->base.account.slow++;
    inside_instance_tell_slow(service->shared->instance, what, took);
}

/* Empty unless the service may know it. */
static struct slice known(const struct inside_service *service, unsigned field,
                          struct slice value) {
    return (service->client_fields & field) != 0 ? value : slice_make("", 0);
}

static void inside_logged(struct adapter *adapter, const struct service_log_line *line) {
    struct inside_service *service = inside_service_of(adapter);
    const struct inside_instance *instance = service->shared->instance;
    struct service_log_line own = *line;
    own.client_ip = known(service, CLIENT_FIELD_IP, line->client_ip);
    own.client_user = known(service, CLIENT_FIELD_USERNAME, line->client_user);
    uint64_t began = told_enter(service, "logged");
    instance->ops->logged(instance->service, &own);
    told_leave(service, "logged", began);
}

static void inside_closed(struct adapter *adapter, const struct service_connection *connection) {
    struct inside_service *service = inside_service_of(adapter);
    const struct inside_instance *instance = service->shared->instance;
    struct service_connection own = *connection;
    own.client_ip = known(service, CLIENT_FIELD_IP, connection->client_ip);
    uint64_t began = told_enter(service, "closed");
    instance->ops->closed(instance->service, &own);
    told_leave(service, "closed", began);
}

static bool is_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b) {
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                      &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
    return memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                  &((const struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr)) == 0;
}

/* Takes the address out of those that DNS gave. False: it is none of them, or was named before. */
static bool take_given(struct sockaddr_storage *given, size_t count,
                       const struct sockaddr_storage *address) {
    for (size_t i = 0; i < count; i++)
        if (given[i].ss_family != AF_UNSPEC && is_same_address(&given[i], address)) {
            given[i].ss_family = AF_UNSPEC;
            return true;
        }
    return false;
}

/* What is none of them would lead clients where no rule has looked. */
static size_t keep_given(struct inside_service *service, struct sockaddr_storage *addresses,
                         size_t left, struct sockaddr_storage *given, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < left; i++)
        if (take_given(given, count, &addresses[i]))
            addresses[kept++] = addresses[i];
    if (kept == left)
        return kept;
    service->base.account.error_protocol++;
    inside_instance_complain(service->shared->instance,
                             "its function resolved names an address that DNS did not give, which "
                             "is not used; please report this bug of the service");
    return kept;
}

static size_t too_many_left(struct inside_service *service, struct sockaddr_storage *addresses,
                            const struct sockaddr_storage *given, size_t count) {
    memcpy(addresses, given, count * sizeof *given);
    service->base.account.error_protocol++;
    inside_instance_complain(service->shared->instance,
                             "its function resolved returns more addresses than there were; "
                             "please report this bug of the service");
    return count;
}

static size_t inside_resolved(struct adapter *adapter, struct slice name,
                              struct sockaddr_storage *addresses, size_t count) {
    struct inside_service *service = inside_service_of(adapter);
    const struct inside_instance *instance = service->shared->instance;
    struct sockaddr_storage given[RESOLVER_ADDRESSES];
    ASSERT(count <= RESOLVER_ADDRESSES);
    memcpy(given, addresses, count * sizeof *given);
    uint64_t began = told_enter(service, "resolved");
    size_t left = instance->ops->resolved(instance->service, name, addresses, count);
    told_leave(service, "resolved", began);
    return left > count ? too_many_left(service, addresses, given, count)
                        : keep_given(service, addresses, left, given, count);
}

static struct inside_call *call_of(struct adapter_call *base) {
    struct inside_call *call = CONTAINER_OF(base, struct inside_call, base);
    CHECK_OBJ(call, INSIDE_CALL_MAGIC);
    return call;
}

/* The service, of all workers. */

/* What the same service had; NULL: it was not there, or not inside. */
static struct inside_shared *shared_before(const struct service_settings *service,
                                           const struct shared_services *before) {
    struct shared_service *same =
        before == NULL ? NULL : shared_services_find(before, service->name);
    return same == NULL || same->class != &inside_adapter_class ? NULL : inside_shared_of(same);
}

/* One goes on that a change at run time has left as it is. */
static struct inside_instance *instance_for(const struct service_settings *service,
                                            const struct inside_shared *before, unsigned workers,
                                            char error[INSIDE_ERROR]) {
    if (before != NULL && before->instance != NULL && service->as_before)
        return inside_instance_reference(before->instance);
    return inside_instance_start(service, before == NULL ? NULL : before->counts, workers, error);
}

static struct shared_service *inside_share(const struct settings *settings, size_t index,
                                           const struct shared_services *before) {
    const struct service_settings *service = &settings->services[index];
    const struct inside_shared *old = shared_before(service, before);
    struct inside_shared *shared;
    ALLOC_OBJ(shared, INSIDE_SHARED_MAGIC);
    shared_service_init(&shared->shared, &inside_adapter_class, service, before);
    shared->since = time(NULL);
    shared->places = inside_concurrency_new(service, old == NULL ? NULL : old->places);
    atomic_init(&shared->era, UINT64_MAX);
    if (service->disabled)
        snprintf(shared->error, sizeof shared->error,
                 "%s: service %s is unloaded; retortctl services load %s", service->where,
                 service->name, service->name);
    else
        shared->instance = instance_for(service, old, settings_workers(settings), shared->error);
    shared->counts = inside_counts_reference(shared->instance != NULL ? shared->instance->counts
                                             : old != NULL            ? old->counts
                                                                      : NULL);
    return &shared->shared;
}

/* For a process, up to start_timeout. */
static bool inside_share_waits(const struct service_settings *settings) {
    return settings->runs == SERVICE_RUNS_PROCESS && !settings->disabled;
}

static void inside_unshare(struct shared_service **sharedp) {
    struct inside_shared *shared = inside_shared_of(*sharedp);
    *sharedp = NULL;
    inside_instance_release(&shared->instance);
    inside_counts_release(&shared->counts);
    inside_concurrency_release(&shared->places);
    shared_service_end(&shared->shared);
    FREE_OBJ(shared);
}

/* The names are kept for good. */
static void inside_report_counts(const struct inside_instance *instance,
                                 struct service_report *report) {
    const char *const *names = instance->ops->counters;
    for (; names != NULL && names[report->own_count] != NULL; report->own_count++)
        report->own[report->own_count] = (struct service_own_count){
            names[report->own_count], inside_instance_count(instance, report->own_count)};
}

static void report_content(const struct content_numbers *numbers, struct content_report *report) {
    *report = (struct content_report){
        .started = atomic_load(&numbers->started),
        .refused = atomic_load(&numbers->refused),
        .failed = atomic_load(&numbers->failed),
        .fetched = atomic_load(&numbers->fetched),
        .injected_bytes = atomic_load(&numbers->injected_bytes),
        .read_bytes = atomic_load(&numbers->read_bytes),
        .open = atomic_load(&numbers->open),
        .held_bytes = atomic_load(&numbers->held_bytes),
    };
}

static void inside_report_shared(struct shared_service *base, struct service_report *report) {
    const struct inside_shared *shared = inside_shared_of(base);
    struct service_endpoint_report *endpoint = &report->endpoints[0];
    report->state = endpoint->state = shared->instance != NULL ? SERVICE_UP : SERVICE_DOWN;
    endpoint->since = shared->since;
    endpoint->retry_at = TIMER_NEVER;
    snprintf(endpoint->error, sizeof endpoint->error, "%.*s", SERVICE_ERROR - 1, shared->error);
    if (shared->counts != NULL)
        report_content(shared->counts->content, &report->content);
    if (shared->instance == NULL)
        return;
    inside_report_counts(shared->instance, report);
    if (shared->instance->runners != NULL)
        inside_runners_report(shared->instance->runners, report);
    snprintf(endpoint->notice, sizeof endpoint->notice, "%s", shared->instance->host.notice);
}

static const char *inside_problem(struct shared_service *base) {
    const struct inside_shared *shared = inside_shared_of(base);
    return shared->instance == NULL && !base->unloaded ? shared->error : NULL;
}

/* A process that is started again may find other lists: that is a new version. */
static void tag_follow(struct inside_shared *shared, uint64_t fingerprint) {
    if (shared->instance->module != NULL)
        return;
    if (atomic_exchange(&shared->fingerprint, fingerprint) != fingerprint)
        atomic_store(&shared->era, UINT64_MAX);
}

/* Of what is made by who has that fingerprint: the instance may have got another one meanwhile. */
static uint64_t shared_tag(struct inside_shared *shared, uint64_t generation, uint64_t fingerprint,
                           struct loop *loop) {
    struct service_tag_moment asked = service_tag_moment(shared->shared.tag, 0);
    char version[INSIDE_VERSION];
    inside_version_write(fingerprint, version);
    tag_follow(shared, fingerprint);
    uint64_t unset = UINT64_MAX;
    if (!atomic_compare_exchange_strong(&shared->era, &unset, asked.era))
        asked.era = unset;
    asked.generation = generation;
    return service_tag_see(shared->shared.tag, 0, slice_from(version), &asked, loop->now).result;
}

/* The service, of one worker. */

/* Of results that a process makes behind the newest one: it was asked before all that is known now. */
static uint64_t overtaken_tag(struct inside_service *service, uint64_t generation,
                              uint64_t fingerprint) {
    const struct service_tag_moment asked = {generation, 0};
    char version[INSIDE_VERSION];
    inside_version_write(fingerprint, version);
    return service_tag_see(service->base.tag, 0, slice_from(version), &asked,
                           service->net->loop->now)
        .result;
}

uint64_t inside_service_tag(struct inside_service *service, uint64_t generation,
                            uint64_t fingerprint) {
    struct service_tag_moment now = service_tag_moment(service->base.tag, 0);
    if (fingerprint != atomic_load(&service->shared->instance->fingerprint))
        return overtaken_tag(service, generation, fingerprint);
    now.generation = generation;
    if (service->tag.value == 0 || now.era != service->tag.moment.era ||
        fingerprint != service->tag.fingerprint || generation != service->tag.moment.generation) {
        service->tag.moment = now;
        service->tag.fingerprint = fingerprint;
        service->tag.value =
            shared_tag(service->shared, generation, fingerprint, service->net->loop);
    }
    return service->tag.value;
}

static unsigned inside_fields_of(const struct service_settings *settings,
                                 const struct inside_instance *instance) {
    unsigned fields = instance != NULL && instance->ops->wants_client_ip ? CLIENT_FIELD_IP : 0;
    for (char **name = settings->include; name != NULL && *name != NULL; name++) {
        if (strcasecmp(*name, "X-Client-IP") == 0)
            fields |= CLIENT_FIELD_IP;
        else if (strcasecmp(*name, "X-Client-Username") == 0)
            fields |= CLIENT_FIELD_USERNAME;
    }
    return fields;
}

static void inside_refresh(struct adapter *adapter) {
    struct inside_service *service = inside_service_of(adapter);
    const struct inside_instance *instance = service->shared->instance;
    if (instance != NULL)
        inside_service_tag(service, service_tag_generation(adapter->tag),
                           atomic_load(&instance->fingerprint));
}

/* What is done once for all workers. */
static void inside_watch(struct inside_service *service) {
    struct inside_instance *instance = service->shared->instance;
    const struct inside_watches_tally tally = {&service->base.account.slow,
                                               &service->base.account.watches_refused,
                                               &service->base.host->foreign};
    if (service->base.host->first && instance->ops->timer != NULL)
        service->watches = inside_watches_new(service->net->loop, instance,
                                              service->base.settings->descriptors, &tally);
}

static void inside_know_ops(struct inside_service *service) {
    const struct inside_instance *instance = service->shared->instance;
    if (instance == NULL)
        return;
    service->base.module = instance->identity;
    service->base.hears = inside_event_calls_of(instance->ops);
    inside_watch(service);
}

static struct adapter *inside_open(struct shared_service *shared,
                                   const struct service_settings *settings,
                                   struct adapter_host *host) {
    struct inside_service *service;
    ALLOC_OBJ(service, INSIDE_SERVICE_MAGIC);
    adapter_init(&service->base, shared, settings, host);
    service->net = host->net;
    service->shared = inside_shared_of(shared);
    if (service->shared->instance != NULL && service->shared->instance->runners != NULL)
        service->runner_links = inside_runner_links_open(service->shared->instance->runners,
                                                         host->worker, host->net->loop);
    service->arguments = slice_from(settings->arguments);
    service->client_fields = inside_fields_of(settings, service->shared->instance);
    inside_queue_init(&service->queue, service->shared->places, settings, host->net->loop,
                      host->mailbox);
    inside_refresh(&service->base);
    inside_know_ops(service);
    return &service->base;
}

/* Its timer ends, since that of the instance in its place has begun. */
static void inside_retire(struct adapter *adapter) {
    inside_watches_free(&inside_service_of(adapter)->watches);
}

static void inside_close(struct adapter **adapterp) {
    struct inside_service *service = inside_service_of(*adapterp);
    *adapterp = NULL;
    ASSERT(service->calls == 0);
    inside_watches_free(&service->watches);
    inside_queue_release(&service->queue);
    if (service->runner_links != NULL)
        inside_runner_links_close(&service->runner_links);
    adapter_release(&service->base);
    FREE_OBJ(service);
}

static void inside_report(const struct adapter *adapter, struct service_report *report) {
    const struct inside_service *service = CONTAINER_OF(adapter, const struct inside_service, base);
    const struct inside_instance *instance = service->shared->instance;
    char version[INSIDE_VERSION];
    report->connections = service->calls;
    report->pending = service->queue.count;
    if (instance == NULL)
        return;
    snprintf(report->version, sizeof report->version, "%s",
             inside_instance_version(instance, version));
    snprintf(report->product, sizeof report->product, "%s", instance->ops->description);
    snprintf(report->id, sizeof report->id, "%s", instance->ops->name);
}

static unsigned inside_client_fields(const struct adapter *adapter) {
    return CONTAINER_OF(adapter, const struct inside_service, base)->client_fields;
}

/* One call. */

static void inside_start(struct adapter_call *base, struct adapter *adapter,
                         const struct adapter_request *request, struct http_head *adapted,
                         struct task *waker) {
    inside_call_start(CONTAINER_OF(base, struct inside_call, base), inside_service_of(adapter),
                      request, adapted, waker);
}

static struct source *inside_body(struct adapter_call *base) {
    return inside_call_body(call_of(base));
}

static void inside_end(struct adapter_call *base) {
    inside_call_close(CONTAINER_OF(base, struct inside_call, base));
}

const struct adapter_class inside_adapter_class = {
    .name = "inside",
    .share = inside_share,
    .share_waits = inside_share_waits,
    .unshare = inside_unshare,
    .report_shared = inside_report_shared,
    .problem = inside_problem,
    .open = inside_open,
    .retire = inside_retire,
    .close = inside_close,
    .report = inside_report,
    .refresh = inside_refresh,
    .client_fields = inside_client_fields,
    .call_size = sizeof(struct inside_call),
    .start = inside_start,
    .body = inside_body,
    .end = inside_end,
    .logged = inside_logged,
    .closed = inside_closed,
    .resolved = inside_resolved,
};
