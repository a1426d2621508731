#include "transaction/adapted_variant.h"

#include "transaction/request_rules.h"
#include "transaction/steps/respmod_postcache.h"
#include "transaction/transaction.h"

bool adapted_variant_begin(struct transaction *transaction) {
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    if (transaction->variant != NULL)
        return true;
    /* Who wants no change gets what services make for him alone. */
    if (!transaction->adapt->any_remembered || transaction->caching.control.no_transform ||
        !respmod_postcache_may_want(transaction))
        return false;
    unsigned count = adapt_set_choose(transaction->adapt, ADAPT_RESPMOD_POSTCACHE,
                                      request_rules(transaction), chosen);
    unsigned all = count;
    count = adapt_set_remembered(chosen, count);
    if (count == 0)
        return false;
    struct adapted_variant *variant = arena_zalloc(&transaction->arena, sizeof *variant);
    memcpy(variant->services, chosen, count * sizeof *chosen);
    variant->count = count;
    variant->others = count < all;
    variant->chain = adapt_mark_chain(chosen, count);
    transaction->variant = variant;
    return true;
}

/* A service may have given it a shorter life than what it was made of has. */
static bool has_aged(const struct object *made, const struct object *of, time_t now) {
    struct freshness its_own = object_freshness(made), stored = object_freshness(of);
    return made->response_time == of->response_time &&
           its_own.lifetime < freshness_age(&its_own, now) &&
           stored.lifetime >= freshness_age(&stored, now);
}

struct object *adapted_variant_look_up(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    adapted_variant_forget(variant);
    struct object *object = cache_lookup_made(transaction->host->cache, &transaction->caching.name,
                                              transaction->request.head, caching_scope(transaction),
                                              variant->chain, &variant->object);
    if (variant->object == NULL)
        return object;
    if (adapt_mark_is_old(variant->services, variant->count, object_making(variant->object).tag)) {
        variant->old = true;
        object_release(&variant->object);
    } else if (object == NULL) {
        object = variant->object;
        variant->object = NULL;
        variant->only = true;
    } else if (has_aged(variant->object, object, transaction->net->loop->wall) ||
               object_making(variant->object).kind == OBJECT_LEFT_ALONE) {
        variant->applied = object_making(variant->object).kind == OBJECT_LEFT_ALONE;
        object_release(&variant->object);
    }
    return object;
}

void adapted_variant_forget(struct adapted_variant *variant) {
    object_release(&variant->object);
    variant->only = variant->applied = false;
}

bool adapted_variant_includes(const struct adapted_variant *variant,
                              const struct icap_service *service) {
    for (unsigned i = 0; i < variant->count; i++)
        if (variant->services[i] == service)
            return true;
    return false;
}

unsigned adapted_variant_leave_out(const struct adapted_variant *variant,
                                   struct icap_service **chosen, unsigned count) {
    unsigned left = 0;
    for (unsigned i = 0; i < count; i++)
        if (!variant->applied || !adapted_variant_includes(variant, chosen[i]))
            chosen[left++] = chosen[i];
    return left;
}
