#include "icap/quota.h"

#include "base/assert.h"

/* The health of the same endpoint as before, of whatever service it was. */
static struct icap_health *health_for(const struct adapter_class *class,
                                      const struct service_settings *settings, unsigned index,
                                      const struct shared_services *before) {
    for (size_t i = 0; before != NULL && i < before->count; i++) {
        if (before->services[i]->class != class)
            continue;
        const struct icap_quota *quota = icap_quota_of(before->services[i]);
        for (unsigned j = 0; j < quota->endpoint_count; j++) {
            struct icap_health *health = quota->health[j];
            if (!icap_health_is_of(health, settings, index))
                continue;
            icap_health_configure(health, settings);
            return icap_health_reference(health);
        }
    }
    return icap_health_new(settings, index);
}

struct icap_quota *icap_quota_new(const struct adapter_class *class,
                                  const struct settings *settings, size_t index,
                                  const struct shared_services *before) {
    const struct service_settings *service = &settings->services[index];
    struct icap_quota *quota;
    ALLOC_OBJ(quota, ICAP_QUOTA_MAGIC);
    shared_service_init(&quota->shared, class, service, before);
    pthread_mutex_init(&quota->lock, NULL);
    list_init(&quota->waiting);
    list_init(&quota->holding);
    quota->most = service->max_connections;
    quota->endpoint_count = service->endpoint_count;
    quota->workers = settings->workers;
    for (unsigned i = 0; i < quota->endpoint_count; i++) {
        quota->health[i] = health_for(class, service, i, before);
        quota->servers[i] = icap_server_get(service, i);
    }
    return quota;
}

void icap_quota_free(struct icap_quota **quotap) {
    struct icap_quota *quota = *quotap;
    *quotap = NULL;
    CHECK_OBJ(quota, ICAP_QUOTA_MAGIC);
    ASSERT(list_empty(&quota->waiting));
    ASSERT(list_empty(&quota->holding));
    pthread_mutex_destroy(&quota->lock);
    for (unsigned i = 0; i < quota->endpoint_count; i++) {
        icap_health_release(&quota->health[i]);
        icap_server_release(&quota->servers[i]);
    }
    shared_service_end(&quota->shared);
    FREE_OBJ(quota);
}

static struct icap_quota_endpoint *endpoint_of(struct icap_quota *quota, unsigned index) {
    CHECK_OBJ(quota, ICAP_QUOTA_MAGIC);
    ASSERT(index < quota->endpoint_count);
    return &quota->endpoints[index];
}

/* The worker may have closed connections while it was idle. */
static void quota_count(struct icap_quota *quota, const struct icap_quota_bid *bid, unsigned open) {
    struct icap_quota_endpoint *endpoint = endpoint_of(quota, bid->endpoint);
    endpoint->open += open - *bid->counted;
    quota->open += open - *bid->counted;
    *bid->counted = open;
}

/* Of all workers together. */
static unsigned quota_limit(const struct icap_quota *quota,
                            const struct icap_quota_endpoint *endpoint) {
    unsigned most = quota->most;
    if (endpoint->stated > 0 && endpoint->stated < most)
        most = endpoint->stated;
    return most;
}

static bool quota_has_room(const struct icap_quota *quota, const struct icap_quota_bid *bid,
                           uint64_t now) {
    const struct icap_quota_endpoint *endpoint = &quota->endpoints[bid->endpoint];
    if (endpoint->lowered > 0 && now < endpoint->lowered_until &&
        endpoint->busy >= endpoint->lowered)
        return false;
    if (bid->alone && endpoint->busy > 0)
        return false;
    if (bid->idle > 0)
        return endpoint->busy < quota_limit(quota, endpoint);
    return endpoint->open < quota_limit(quota, endpoint) && quota->open < quota->most;
}

bool icap_quota_may_ask(struct icap_quota *quota, unsigned index) {
    pthread_mutex_lock(&quota->lock);
    const struct icap_quota_endpoint *endpoint = endpoint_of(quota, index);
    bool may = endpoint->busy < quota_limit(quota, endpoint);
    pthread_mutex_unlock(&quota->lock);
    return may;
}

int icap_quota_take(struct icap_quota *quota, const struct icap_quota_bid *bids, unsigned bid_count,
                    uint64_t now) {
    int best = -1;
    pthread_mutex_lock(&quota->lock);
    for (unsigned i = 0; i < bid_count; i++) {
        quota_count(quota, &bids[i], bids[i].busy + bids[i].idle);
        if (quota_has_room(quota, &bids[i], now) &&
            (best < 0 ||
             quota->endpoints[bids[i].endpoint].busy < quota->endpoints[bids[best].endpoint].busy))
            best = (int)i;
    }
    if (best >= 0) {
        const struct icap_quota_bid *bid = &bids[best];
        endpoint_of(quota, bid->endpoint)->busy++;
        if (bid->idle == 0)
            quota_count(quota, bid, bid->busy + 1);
    }
    pthread_mutex_unlock(&quota->lock);
    return best;
}

static void wake(struct icap_quota *quota, const struct loop *loop) {
    quota->asking = 0;
    waiters_wake(&quota->waiting, loop);
}

void icap_quota_leave(struct icap_quota *quota, const struct icap_quota_bid *bid,
                      const struct loop *loop) {
    pthread_mutex_lock(&quota->lock);
    struct icap_quota_endpoint *endpoint = endpoint_of(quota, bid->endpoint);
    ASSERT(endpoint->busy > 0);
    endpoint->busy--;
    quota_count(quota, bid, bid->busy + bid->idle);
    wake(quota, loop);
    pthread_mutex_unlock(&quota->lock);
}

void icap_quota_note(struct icap_quota *quota, const struct icap_quota_bid *bid,
                     const struct loop *loop) {
    pthread_mutex_lock(&quota->lock);
    quota_count(quota, bid, bid->busy + bid->idle);
    wake(quota, loop);
    pthread_mutex_unlock(&quota->lock);
}

void icap_quota_wait(struct icap_quota *quota, struct waiter **slot, struct mailbox *mailbox,
                     struct task *task) {
    if (*slot != NULL)
        return;
    pthread_mutex_lock(&quota->lock);
    waiter_add(&quota->waiting, slot, mailbox, task);
    quota->asking++;
    waiters_wake(&quota->holding, NULL);
    pthread_mutex_unlock(&quota->lock);
}

/* For a share below one. Call with the lock held. */
static unsigned keep_one(struct icap_quota *quota, const struct icap_quota_keeper *keeper,
                         bool others) {
    if ((others && !keeper->next) || keeper->mailbox == NULL)
        return 0;
    if (*keeper->slot == NULL)
        waiter_add(&quota->holding, keeper->slot, keeper->mailbox, keeper->release);
    return 1;
}

unsigned icap_quota_idle(struct icap_quota *quota, const struct icap_quota_bid *bid,
                         const struct icap_quota_keeper *keeper) {
    pthread_mutex_lock(&quota->lock);
    unsigned share = quota_limit(quota, endpoint_of(quota, bid->endpoint)) / quota->workers;
    bool others = quota->asking > (keeper->waits ? 1u : 0u);
    unsigned most = share;
    if (share == 0)
        most = keep_one(quota, keeper, others);
    else if (others && bid->busy + bid->idle > share)
        most = 0;
    pthread_mutex_unlock(&quota->lock);
    return most;
}

void icap_quota_state(struct icap_quota *quota, unsigned endpoint, unsigned max_connections) {
    pthread_mutex_lock(&quota->lock);
    endpoint_of(quota, endpoint)->stated = max_connections;
    pthread_mutex_unlock(&quota->lock);
}

void icap_quota_lower(struct icap_quota *quota, unsigned index, uint64_t until) {
    pthread_mutex_lock(&quota->lock);
    struct icap_quota_endpoint *endpoint = endpoint_of(quota, index);
    endpoint->lowered = endpoint->busy > 1 ? endpoint->busy / 2 : 1;
    endpoint->lowered_until = until;
    pthread_mutex_unlock(&quota->lock);
}
