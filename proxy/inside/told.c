#include "inside/told.h"

#include "adapt/client_fields.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "inside/service.h"
#include "net/resolver.h"

#include <string.h>

unsigned inside_told_of(const struct service_ops *ops) {
    return (ops->logged != NULL ? (unsigned)ADAPTER_HEARS_LOG : 0) |
           (ops->closed != NULL ? (unsigned)ADAPTER_HEARS_CLOSED : 0) |
           (ops->resolved != NULL ? (unsigned)ADAPTER_HEARS_NAMES : 0);
}

static uint64_t told_clock(void) {
    return clocks_microseconds(CLOCK_MONOTONIC);
}

static void told_clocked(struct inside_service *service, const char *what, uint64_t began) {
    uint64_t took = told_clock() - began;
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

void inside_logged(struct adapter *adapter, const struct service_log_line *line) {
    struct inside_service *service = inside_service_of(adapter);
    const struct inside_instance *instance = service->shared->instance;
    struct service_log_line own = *line;
    own.client_ip = known(service, CLIENT_FIELD_IP, line->client_ip);
    own.client_user = known(service, CLIENT_FIELD_USERNAME, line->client_user);
    uint64_t began = told_clock();
    instance->ops->logged(instance->service, &own);
    told_clocked(service, "logged", began);
}

void inside_closed(struct adapter *adapter, const struct service_connection *connection) {
    struct inside_service *service = inside_service_of(adapter);
    const struct inside_instance *instance = service->shared->instance;
    struct service_connection own = *connection;
    own.client_ip = known(service, CLIENT_FIELD_IP, connection->client_ip);
    uint64_t began = told_clock();
    instance->ops->closed(instance->service, &own);
    told_clocked(service, "closed", began);
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

size_t inside_resolved(struct adapter *adapter, struct slice name,
                       struct sockaddr_storage *addresses, size_t count) {
    struct inside_service *service = inside_service_of(adapter);
    const struct inside_instance *instance = service->shared->instance;
    struct sockaddr_storage given[RESOLVER_ADDRESSES];
    ASSERT(count <= RESOLVER_ADDRESSES);
    memcpy(given, addresses, count * sizeof *given);
    uint64_t began = told_clock();
    size_t left = instance->ops->resolved(instance->service, name, addresses, count);
    told_clocked(service, "resolved", began);
    return left > count ? too_many_left(service, addresses, given, count)
                        : keep_given(service, addresses, left, given, count);
}
