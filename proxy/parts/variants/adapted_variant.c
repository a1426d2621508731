#include "variants/adapted_variant.h"

#include "adapt/told.h"
#include "transaction/disclosed_identity.h"
#include "transaction/request_rules.h"
#include "variants/variant_object.h"

/* How many of these services, counted from the first, are not told who asks, and want to be asked. */
static unsigned told_of_nobody(struct transaction *transaction, struct adapter *const *chosen,
                               unsigned count) {
    unsigned first = 0;
    while (first < count && !told_tells_service(transaction, chosen[first]) &&
           !adapt_opt_out_has(adaptation_of(transaction)->opt_outs, chosen[first]->module))
        first++;
    return first;
}

/* False: no service that is remembered may want the response. */
static bool adapted_variant_begin(struct transaction *transaction) {
    struct adapter *chosen[ADAPT_CHAIN_MAX];
    /* A request that forbids transformation gets a result of its own. */
    if (transaction->caching.control.no_transform || !adaptation_is_behind_cache(transaction))
        return false;
    unsigned count = adapt_set_choose(adapt_set_of(transaction), ADAPT_RESPMOD_POSTCACHE,
                                      request_rules(transaction), chosen);
    unsigned all = count;
    count = told_of_nobody(transaction, chosen, adapt_set_remembered(chosen, count));
    if (count == 0)
        return false;
    struct adapted_variant *variant = arena_zalloc(&transaction->arena, sizeof *variant);
    memcpy(variant->services, chosen, count * sizeof *chosen);
    variant->count = count;
    variant->others = count < all;
    variant->chain = chain_tags_chain(chosen, count);
    transaction->parts[PART_VARIANTS] = variant;
    adaptation_begin(transaction)->adapting.variants = &adapted_variant_class;
    transaction_begin(transaction, STEP_VARIANT);
    return true;
}

/* A service may have given the result a shorter lifetime than that of the original. */
static bool has_aged(const struct object *made, const struct object *of, time_t now) {
    struct freshness its_own = object_freshness(made), stored = object_freshness(of);
    return made->response_time == of->response_time && freshness_left(&its_own, now) < 0 &&
           freshness_left(&stored, now) >= 0;
}

static void adapted_variant_forget(struct transaction *transaction) {
    struct adapted_variant *variant = variant_of(transaction);
    object_release(&transaction->adapting->variant);
    variant->only = variant->applied = false;
}

static struct object *adapted_variant_look_up(struct transaction *transaction) {
    if (variant_of(transaction) != NULL)
        adapted_variant_forget(transaction);
    else if (!adapted_variant_begin(transaction))
        return cache_lookup(transaction->host->cache, &transaction->caching.name,
                            transaction->request.head, caching_scope(transaction));
    struct adapted_variant *variant = variant_of(transaction);
    struct object *object = cache_lookup_made(transaction->host->cache, &transaction->caching.name,
                                              transaction->request.head, caching_scope(transaction),
                                              variant->chain, &transaction->adapting->variant);
    if (transaction->adapting->variant == NULL)
        return object;
    if (chain_tags_are_old(variant->services, variant->count,
                           object_provenance(transaction->adapting->variant).tag)) {
        variant->old = true;
        object_release(&transaction->adapting->variant);
    } else if (object == NULL) {
        object = transaction->adapting->variant;
        transaction->adapting->variant = NULL;
        variant->only = true;
    } else if (has_aged(transaction->adapting->variant, object, transaction->net->loop->wall) ||
               object_provenance(transaction->adapting->variant).kind == OBJECT_LEFT_ALONE) {
        variant->applied =
            object_provenance(transaction->adapting->variant).kind == OBJECT_LEFT_ALONE;
        object_release(&transaction->adapting->variant);
    }
    return object;
}

bool adapted_variant_includes(const struct adapted_variant *variant,
                              const struct adapter *service) {
    for (unsigned i = 0; i < variant->count; i++)
        if (variant->services[i] == service)
            return true;
    return false;
}

static unsigned adapted_variant_leave_out(const struct transaction *transaction,
                                          struct adapter **chosen, unsigned count) {
    const struct adapted_variant *variant = variant_of(transaction);
    unsigned left = 0;
    for (unsigned i = 0; i < count; i++)
        if (!variant->applied || !adapted_variant_includes(variant, chosen[i]))
            chosen[left++] = chosen[i];
    return left;
}

void adapted_variant_finish(struct transaction *transaction, enum shared_fetch_outcome outcome) {
    variant_of(transaction)->state = ADAPTED_VARIANT_OVER;
    collapse_finish(&variant_of(transaction)->collapse, outcome);
}

bool adapted_variant_join(struct transaction *transaction) {
    enum { ROUNDS = 3 };
    struct adapted_variant *variant = variant_of(transaction);
    struct loop *loop = transaction->net->loop;
    uint64_t timeout = transaction->settings->cache.collapse_timeout;
    if (timeout == 0 || variant->rounds++ >= ROUNDS)
        return false;
    const struct cache_name name = variant_object_fetch_name(transaction);
    if (collapse_join(&variant->collapse, transaction->host->shared_fetches, &name, loop) !=
        SHARED_FETCH_FOLLOWS)
        return false;
    variant->state = ADAPTED_VARIANT_FOLLOWS;
    transaction->net->counters.cache_collapsed++;
    collapse_follow(&variant->collapse, transaction->host->mailbox, &transaction->task,
                    loop->now + timeout);
    return true;
}

bool adapted_variant_has_followed(struct transaction *transaction) {
    enum { NO_MORE = 100 };
    struct adapted_variant *variant = variant_of(transaction);
    enum shared_fetch_outcome outcome;
    if (!collapse_has_ended(&variant->collapse, &outcome))
        return false;
    variant->state = ADAPTED_VARIANT_NONE;
    if (outcome != SHARED_FETCH_STORED && outcome != SHARED_FETCH_ABANDONED)
        variant->rounds = NO_MORE;
    struct object *object = adapted_variant_look_up(transaction);
    if (object == NULL || variant->only)
        adapted_variant_forget(
            transaction); /* the object that this transaction holds is still valid */
    object_release(&object);
    return true;
}

void adapted_variant_set_applied(struct transaction *transaction) {
    variant_of(transaction)->applied = true;
}

void adapted_variant_ask(struct transaction *transaction, struct http_head *response,
                         struct adapter *const *chosen, unsigned count) {
    struct adapted_variant *variant = variant_of(transaction);
    variant->state = ADAPTED_VARIANT_ASKS;
    variant->since = cache_now(transaction->host->cache);
    variant->of = object_reference(transaction_object(transaction));
    chain_tags_begin(&variant->mark, variant->services, variant->count);
    variant->postcache = arena_zalloc(&transaction->arena, sizeof *variant->postcache);
    postcache_start(variant->postcache, transaction, transaction_object(transaction), response,
                    chosen, count);
}

bool adapted_variant_renew(struct transaction *transaction) {
    const struct object *of = transaction_object(transaction);
    if (transaction->adapting->variant->response_time >= of->response_time)
        return true;
    /* If what the origin says of its lifetime is not what the variant says, either of origin and
     * service may have changed that. */
    if (variant_object_has_other_control(transaction, transaction->adapting->variant, of)) {
        object_release(&transaction->adapting->variant);
        return false;
    }
    struct object *renewed =
        variant_object_renewed(transaction, transaction->adapting->variant, of);
    const struct cache_arrival arrival = {
        .since = cache_now(transaction->host->cache),
        .max_variants = caching_max_variants(transaction),
        .of = of,
    };
    cache_insert(transaction->host->cache, renewed, &arrival);
    object_release(&transaction->adapting->variant);
    transaction->adapting->variant = renewed;
    return true;
}

/* Variants must not be in the index before what they are made of is. */
static bool adapted_variant_may_be_stored(const struct transaction *transaction) {
    const struct body *body = variant_of(transaction)->of->body;
    return transaction->storing.object == NULL || transaction->storing.settled ||
           body->expected >= 0 || transaction->storing.pump.state == PUMP_IDLE;
}

static void adapted_variant_store(struct transaction *transaction) {
    struct adapted_variant *variant = variant_of(transaction);
    const struct cache_arrival arrival = {
        .since = variant->since,
        .max_variants = caching_max_variants(transaction),
        .of = variant->of,
    };
    bool stored = cache_insert(transaction->host->cache, transaction->adapting->variant, &arrival);
    adapted_variant_finish(transaction, stored ? SHARED_FETCH_STORED : SHARED_FETCH_ABANDONED);
}

static void adapted_variant_settle(struct transaction *transaction) {
    const struct adapted_variant *variant = variant_of(transaction);
    if (variant->state != ADAPTED_VARIANT_STORES || transaction->adapting->variant == NULL)
        return;
    const struct pump *pump = &variant->postcache->pump;
    /* The variant or the stored response is too large. */
    if (transaction->adapting->variant->body->kind == BODY_PASSING)
        adapted_variant_finish(transaction, SHARED_FETCH_UNSTORED);
    else if (body_state(variant->of->body) == BODY_FAILED || pump->state == PUMP_FAILED)
        adapted_variant_finish(transaction, SHARED_FETCH_FAILED);
    else if (pump->state != PUMP_RUNNING && adapted_variant_may_be_stored(transaction))
        adapted_variant_store(transaction);
}

/* A service behind the cache that sets a cookie has answered one client. */
static bool is_for_one(struct transaction *transaction, const struct http_head *head) {
    return http_head_sets_cookies(head) &&
           !caching_stores_cookies(caching_policy_for(transaction, head));
}

/* The body of the variant is the output of the services. */
static void adapted_variant_begin_body(struct transaction *transaction,
                                       const struct http_head *head, enum object_kind kind,
                                       const struct freshness *freshness) {
    struct adapted_variant *variant = variant_of(transaction);
    struct postcache *postcache = variant->postcache;
    if (postcache->message.body == NULL)
        postcache->body = body_of_bytes(slice_make("", 0));
    else
        postcache->body = body_new(transaction->net, variant->keep ? BODY_SHARED : BODY_PASSING,
                                   postcache->message.body->length);
    transaction->adapting->variant =
        variant_object_new(transaction, head, kind, freshness, postcache->body);
    if (postcache->message.body != NULL)
        pump_start(&postcache->pump, transaction->net->loop, &postcache->message.body,
                   postcache->body, transaction->settings->cache.max_object, &transaction->task);
    if (!variant->keep)
        adapted_variant_finish(transaction, SHARED_FETCH_UNSTORED);
    adapted_variant_settle(transaction);
}

static void adapted_variant_left_alone(struct transaction *transaction) {
    struct adapted_variant *variant = variant_of(transaction);
    struct freshness freshness = object_freshness(variant->of);
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    object_parse_head(variant->of, head);
    /* A response that is not stored can be read only once, and the services have done that. */
    if (variant->of->body->kind == BODY_PASSING) {
        variant->keep = false;
        adapted_variant_begin_body(transaction, head, OBJECT_LEFT_ALONE, &freshness);
        return;
    }
    postcache_end(variant->postcache);
    if (!variant->keep) {
        adapted_variant_finish(transaction, SHARED_FETCH_FAILED);
        return;
    }
    transaction->adapting->variant =
        variant_object_new(transaction, head, OBJECT_LEFT_ALONE, &freshness, variant->of->body);
    adapted_variant_settle(transaction);
}

static void adapted_variant_changed(struct transaction *transaction) {
    struct adapted_variant *variant = variant_of(transaction);
    struct http_head *head = variant->postcache->message.response;
    struct freshness freshness;
    postcache_forget_etag(head, object_etag(variant->of));
    const struct object_provenance provenance = {
        .kind = OBJECT_MADE,
        .chain = variant->chain,
        .tag = chain_tags_tag(&variant->mark),
    };
    variant_object_set_validator(transaction, head, &provenance);
    variant_object_keep_tags(transaction, head);
    variant->keep = variant_object_freshness(transaction, head, &freshness) && variant->keep &&
                    !is_for_one(transaction, head);
    adapted_variant_begin_body(transaction, head, OBJECT_MADE, &freshness);
}

void adapted_variant_take_answer(struct transaction *transaction) {
    struct adapted_variant *variant = variant_of(transaction);
    struct adapt_chain *chain = &variant->postcache->chain;
    struct counters *counters = &transaction->net->counters;
    chain_tags_take(&variant->mark, chain);
    variant->keep =
        adapt_chain_is_storable(chain) && !chain->unable && chain_tags_tag(&variant->mark) != 0;
    variant->state = ADAPTED_VARIANT_STORES;
    counters->adapted_made++;
    counters->adapted_made_again += variant->old;
    if (chain->modified)
        adapted_variant_changed(transaction);
    else
        adapted_variant_left_alone(transaction);
}

static bool adapted_variant_goes_on(struct transaction *transaction) {
    return variant_of(transaction)->state == ADAPTED_VARIANT_STORES;
}

void adapted_variant_let_client_go(struct transaction *transaction) {
    struct adapted_variant *variant = variant_of(transaction);
    if (adapted_variant_goes_on(transaction))
        pump_set_unread(&variant->postcache->pump);
    else
        adapted_variant_end(transaction);
}

void adapted_variant_end(struct transaction *transaction) {
    struct adapted_variant *variant = variant_of(transaction);
    adapted_variant_finish(transaction, SHARED_FETCH_ABANDONED);
    collapse_end(&variant->collapse);
    if (variant->postcache != NULL)
        postcache_end(variant->postcache);
    object_release(&transaction->adapting->variant);
    object_release(&variant->of);
}

const struct variant_class adapted_variant_class = {
    .look_up = adapted_variant_look_up,
    .forget = adapted_variant_forget,
    .leave_out = adapted_variant_leave_out,
    .settle = adapted_variant_settle,
    .goes_on = adapted_variant_goes_on,
};
