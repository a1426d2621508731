#include "icap/quota.h"

#include "base/assert.h"

/* The same service's as before, if it was there. */
static struct service_tag *tag_for(const struct icap_service_settings *settings,
                                   const struct icap_quotas *before) {
    for (size_t i = 0; before != NULL && i < before->count; i++)
        if (service_tag_is_of(before->services[i].tag, settings))
            return service_tag_reference(before->services[i].tag);
    return service_tag_new(settings);
}

static struct bypasses *bypasses_for(const char *name, const struct icap_quotas *before) {
    for (size_t i = 0; before != NULL && i < before->count; i++)
        if (strcmp(before->names[i], name) == 0)
            return bypasses_reference(before->services[i].bypasses);
    return bypasses_new(name);
}

static struct icap_health *health_for(const struct icap_service_settings *settings, unsigned index,
                                      const struct icap_quotas *before) {
    for (size_t i = 0; before != NULL && i < before->count; i++)
        for (unsigned j = 0; j < before->services[i].endpoint_count; j++) {
            struct icap_health *health = before->services[i].health[j];
            if (!icap_health_is_of(health, settings, index))
                continue;
            icap_health_configure(health, settings);
            return icap_health_reference(health);
        }
    return icap_health_new(settings, index);
}

struct icap_quotas *icap_quotas_new(const struct settings *settings,
                                    const struct icap_quotas *before) {
    struct icap_quotas *quotas;
    ALLOC_OBJ(quotas, ICAP_QUOTAS_MAGIC);
    quotas->references = 1;
    quotas->count = settings->icap_service_count;
    quotas->services = xcalloc(quotas->count + 1, sizeof *quotas->services);
    quotas->names = xcalloc(quotas->count + 1, sizeof *quotas->names);
    for (size_t i = 0; i < quotas->count; i++) {
        struct icap_quota *quota = &quotas->services[i];
        INIT_OBJ(quota, ICAP_QUOTA_MAGIC);
        pthread_mutex_init(&quota->lock, NULL);
        list_init(&quota->waiting);
        list_init(&quota->holding);
        quota->most = settings->icap_services[i].max_connections;
        quota->endpoint_count = settings->icap_services[i].endpoint_count;
        quota->workers = settings->workers;
        quota->tag = tag_for(&settings->icap_services[i], before);
        for (unsigned j = 0; j < quota->endpoint_count; j++)
            quota->health[j] = health_for(&settings->icap_services[i], j, before);
        quota->bypasses = bypasses_for(settings->icap_services[i].name, before);
        quotas->names[i] = xstrdup(settings->icap_services[i].name);
    }
    return quotas;
}

struct icap_quotas *icap_quotas_reference(struct icap_quotas *quotas) {
    CHECK_OBJ(quotas, ICAP_QUOTAS_MAGIC);
    atomic_fetch_add(&quotas->references, 1);
    return quotas;
}

void icap_quotas_release(struct icap_quotas **quotasp) {
    struct icap_quotas *quotas = *quotasp;
    *quotasp = NULL;
    if (quotas == NULL)
        return;
    CHECK_OBJ(quotas, ICAP_QUOTAS_MAGIC);
    if (atomic_fetch_sub(&quotas->references, 1) != 1)
        return;
    for (size_t i = 0; i < quotas->count; i++) {
        ASSERT(list_empty(&quotas->services[i].waiting));
        ASSERT(list_empty(&quotas->services[i].holding));
        pthread_mutex_destroy(&quotas->services[i].lock);
        service_tag_release(&quotas->services[i].tag);
        bypasses_release(&quotas->services[i].bypasses);
        for (unsigned j = 0; j < quotas->services[i].endpoint_count; j++)
            icap_health_release(&quotas->services[i].health[j]);
        free(quotas->names[i]);
    }
    free(quotas->services);
    free(quotas->names);
    FREE_OBJ(quotas);
}

struct service_tag *icap_quotas_tag(const struct icap_quotas *quotas, const char *name) {
    CHECK_OBJ(quotas, ICAP_QUOTAS_MAGIC);
    for (size_t i = 0; i < quotas->count; i++)
        if (strcmp(quotas->names[i], name) == 0)
            return quotas->services[i].tag;
    return NULL;
}

static struct icap_quota_endpoint *endpoint_of(struct icap_quota *quota, unsigned index) {
    CHECK_OBJ(quota, ICAP_QUOTA_MAGIC);
    ASSERT(index < quota->endpoint_count);
    return &quota->endpoints[index];
}

/* What the worker has open may have become less while it was idle. */
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

/* Of a share that is less than one; the lock is held. */
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
