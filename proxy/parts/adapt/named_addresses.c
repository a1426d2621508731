#include "adapt/named_addresses.h"

#include "base/assert.h"
#include "net/resolver.h"

static size_t named_addresses_review(struct name_reviewer *reviewer, struct slice name,
                                     struct sockaddr_storage *addresses, size_t count,
                                     const char **by) {
    const struct named_addresses *names = CONTAINER_OF(reviewer, struct named_addresses, reviewer);
    const struct adapt_set *set = names->set;
    for (size_t i = 0; count > 0 && i < set->service_count; i++) {
        struct adapter *service = set->services[i];
        if ((service->hears & ADAPTER_HEARS_NAMES) == 0)
            continue;
        count = service->class->resolved(service, name, addresses, count);
        *by = service->settings->name;
    }
    return count;
}

void named_addresses_use(struct named_addresses *names, struct net_context *net,
                         const struct adapt_set *set) {
    bool hears = set != NULL && (set->hears & ADAPTER_HEARS_NAMES) != 0;
    bool heard = names->set != NULL;
    names->reviewer.review = named_addresses_review;
    names->set = hears ? set : NULL;
    net->reviewer = hears ? &names->reviewer : NULL;
    if ((hears || heard) && net->resolver != NULL)
        resolver_forget(net->resolver, slice_make("", 0));
}
