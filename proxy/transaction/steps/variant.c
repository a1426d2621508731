#include "transaction/transaction.h"

#include "cache/vary.h"
#include "transaction/adapted_variant.h"
#include "transaction/fail.h"
#include "transaction/postcache.h"
#include "transaction/request_rules.h"

/* VARIANT: what services behind the cache make of a stored response for all clients: used again, or
 * made, once for all who want it, and stored beside what it is made of. */

static void variant_finish(struct transaction *transaction, enum shared_fetch_outcome outcome) {
    transaction->variant->state = ADAPTED_VARIANT_OVER;
    collapse_finish(&transaction->variant->collapse, outcome);
}

/* What the stored response was selected by, then what the variant is: the fields that its services
 * are said to depend on, and those that they name themselves (`theirs`). */
static struct slice write_selector(struct transaction *transaction, const struct object *of,
                                   struct slice theirs) {
    const struct adapted_variant *variant = transaction->variant;
    struct http_head *vary = arena_alloc(&transaction->arena, sizeof *vary);
    http_head_init(vary);
    for (unsigned i = 0; i < variant->count; i++)
        for (char **by = variant->services[i]->settings->remember_by; by != NULL && *by != NULL;
             by++)
            if (strcmp(*by, "none") != 0)
                http_head_add(vary, SLICE("Vary"), slice_from(*by));
    if (theirs.length > 0)
        http_head_add(vary, SLICE("Vary"), theirs);
    struct slice first = object_selector(of);
    size_t length = vary_write(transaction->request.head, vary, NULL, 0);
    char *text = arena_alloc(&transaction->arena, first.length + length + 1);
    memcpy(text, first.base, first.length);
    vary_write(transaction->request.head, vary, text + first.length, length);
    return slice_make(text, first.length + length);
}

/* The names in a selector's lines, as a list. */
static struct slice fields_of(struct arena *arena, const char *line, const char *end) {
    struct slice fields = SLICE("");
    const char *colon, *line_end;
    for (; line < end && (line_end = memchr(line, '\n', (size_t)(end - line))) != NULL;
         line = line_end + 1)
        if ((colon = memchr(line, ':', (size_t)(line_end - line))) != NULL)
            fields =
                arena_concat(arena, fields, SLICE(", "), slice_make(line, (size_t)(colon - line)));
    return fields;
}

/* The fields by which the services have told variants of this response apart before: those of one
 * that is stored; empty: none is. */
static struct slice known_fields(struct transaction *transaction) {
    const struct object *of = transaction_object(transaction);
    struct slice fields = SLICE("");
    struct cache_walk walk = {0};
    cache_walk_name(transaction->host->cache, &walk, &transaction->caching.name);
    for (size_t i = 0; i < walk.count && fields.length == 0; i++) {
        const struct object *made = walk.objects[i];
        struct slice selector = object_selector(made);
        if (object_chain(made) == transaction->variant->chain && object_is_made_of(made, of))
            fields = fields_of(&transaction->arena, selector.base + object_selector(of).length,
                               selector.base + selector.length);
    }
    cache_walk_end(&walk);
    return fields;
}

/* Those who want the same variant of the same response, as far as it is known before it is made
 * which one that is. Line ends tell such a name from a URL. */
static struct cache_name shared_fetch_name(struct transaction *transaction) {
    char hex[SLICE_HEX];
    struct slice url = transaction->caching.name.url;
    struct slice selector =
        write_selector(transaction, transaction_object(transaction), known_fields(transaction));
    slice_put_hex(hex, transaction->variant->chain);
    return cache_name_of(arena_concat(&transaction->arena, url, SLICE("\n"),
                                      slice_make(hex, SLICE_HEX), SLICE("\n"), selector));
}

static enum step variant_follow(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    variant->state = ADAPTED_VARIANT_FOLLOWS;
    transaction->net->counters.cache_collapsed++;
    collapse_follow(&variant->collapse, transaction->host->mailbox, &transaction->task,
                    transaction->net->loop->now + transaction->settings->cache.collapse_timeout);
    return STEP_WAIT;
}

static enum step variant_go_on(struct transaction *transaction) {
    transaction->variant->applied = true;
    return transaction->variant->others ? STEP_RESPMOD_POSTCACHE : STEP_DELIVER;
}

/* The services that want this response, of those that are remembered. */
static unsigned variant_choose(struct transaction *transaction, const struct http_head *response,
                               struct icap_service **chosen) {
    const uint64_t *rules = request_rules_for_response(transaction, response);
    unsigned all = adapt_set_choose(transaction->adapt, ADAPT_RESPMOD_POSTCACHE, rules, chosen);
    unsigned count = 0;
    while (count < all && adapted_variant_includes(transaction->variant, chosen[count]))
        count++;
    return count;
}

static enum step variant_ask(struct transaction *transaction, struct http_head *response,
                             struct icap_service *const *chosen, unsigned count) {
    struct adapted_variant *variant = transaction->variant;
    variant->state = ADAPTED_VARIANT_ASKS;
    variant->since = cache_now(transaction->host->cache);
    variant->of = object_reference(transaction_object(transaction));
    adapt_mark_begin(&variant->mark, variant->services, variant->count);
    variant->postcache = arena_zalloc(&transaction->arena, sizeof *variant->postcache);
    postcache_start(variant->postcache, transaction, transaction_object(transaction), response,
                    chosen, count);
    return STEP_WAIT;
}

/* There is no variant: it has to be made, by this request or another one. */
static enum step variant_make(struct transaction *transaction) {
    enum { ROUNDS = 3 };
    struct adapted_variant *variant = transaction->variant;
    struct icap_service *chosen[ADAPT_CHAIN_MAX];
    struct http_head *response = postcache_head(transaction, transaction_object(transaction));
    unsigned count = variant_choose(transaction, response, chosen), status = response->status;
    if (transaction->request.head->method_id == HTTP_METHOD_HEAD || status == 304 || status == 206)
        return STEP_RESPMOD_POSTCACHE;
    if (count == 0)
        return variant_go_on(transaction);
    request_own(transaction);
    if (transaction->settings->cache.collapse_timeout > 0 && variant->rounds++ < ROUNDS) {
        const struct cache_name name = shared_fetch_name(transaction);
        enum shared_fetch_role role = collapse_join(
            &variant->collapse, transaction->host->shared_fetches, &name, transaction->net->loop);
        if (role == SHARED_FETCH_FOLLOWS)
            return variant_follow(transaction);
    }
    return variant_ask(transaction, response, chosen, count);
}

static enum step use(struct transaction *transaction, uint64_t *counter) {
    (*counter)++;
    return variant_go_on(transaction);
}

static struct slice field_of(struct transaction *transaction, const struct object *object,
                             enum http_name id) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    object_parse_head(object, head);
    return transaction_joined_value(transaction, head, id);
}

/* Puts the variant, with its new head, in the place of the old one. */
static void variant_renew(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    const struct object *stored = transaction_object(transaction);
    static const enum http_name kept[] = {HTTP_DATE, HTTP_EXPIRES};
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    object_parse_head(variant->object, head);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct slice value = field_of(transaction, stored, kept[i]);
        if (value.length > 0)
            http_head_set(head, kept[i], value);
    }
    struct freshness freshness = object_freshness(stored);
    struct object_making making = object_making(variant->object);
    struct slice selector = object_selector(variant->object);
    struct object *renewed =
        object_new_made(stored->key, object_url(stored), transaction->request.head, head,
                        &freshness, variant->object->body, &making, &selector);
    renewed->scope = variant->object->scope;
    const struct cache_arrival arrival = {
        .since = cache_now(transaction->host->cache),
        .max_variants = caching_max_variants(transaction),
        .of = stored,
    };
    cache_insert(transaction->host->cache, renewed, &arrival);
    object_release(&variant->object);
    variant->object = renewed;
}

/* A variant that was there. */
static enum step variant_show(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    struct counters *counters = &transaction->net->counters;
    if (variant->object->response_time >= transaction_object(transaction)->response_time)
        return use(transaction, &counters->adapted_hits);
    /* The origin has confirmed what it was made of. If what it said of its lifetime is not what the
     * variant says, either of origin and service may have changed that. */
    if (!slice_equal(field_of(transaction, variant->object, HTTP_CACHE_CONTROL),
                     field_of(transaction, transaction_object(transaction), HTTP_CACHE_CONTROL))) {
        object_release(&variant->object);
        return variant_make(transaction);
    }
    variant_renew(transaction);
    return use(transaction, &counters->adapted_hits);
}

static enum step variant_begin(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    struct counters *counters = &transaction->net->counters;
    if (variant->only)
        return use(transaction,
                   object_making(transaction_object(transaction)).kind == OBJECT_LEFT_ALONE
                       ? &counters->adapted_left_alone
                       : &counters->adapted_hits);
    if (variant->applied)
        return use(transaction, &counters->adapted_left_alone);
    return variant->object != NULL ? variant_show(transaction) : variant_make(transaction);
}

/* The one who was followed has come to something, or it takes too long. */
static enum step variant_resume(struct transaction *transaction) {
    enum { NO_MORE = 100 };
    struct adapted_variant *variant = transaction->variant;
    enum shared_fetch_outcome outcome;
    if (!collapse_has_ended(&variant->collapse, &outcome))
        return STEP_WAIT;
    variant->state = ADAPTED_VARIANT_NONE;
    if (outcome != SHARED_FETCH_STORED && outcome != SHARED_FETCH_ABANDONED)
        variant->rounds = NO_MORE;
    struct object *object = adapted_variant_look_up(transaction);
    if (object == NULL || variant->only)
        adapted_variant_forget(variant); /* what this transaction holds is still good for it */
    object_release(&object);
    return variant_begin(transaction);
}

/* Its own validator: the stored one's would be another thing's. Weak, since a service asked again
 * may write other bytes. When a service changed it, nobody knows. */
static void set_validator(struct transaction *transaction, struct http_head *head,
                          const struct object_making *making) {
    const struct object *of = transaction->variant->of;
    struct slice etag = object_etag(of);
    http_head_remove(head, HTTP_LAST_MODIFIED);
    if (http_head_has(head, HTTP_ETAG))
        return;
    if (slice_starts_with(etag, SLICE("W/")))
        etag = slice_make(etag.base + 2, etag.length - 2);
    uint32_t mark = making->chain ^ making->tag;
    if (etag.length >= 2 && etag.base[0] == '"')
        http_head_set(head, HTTP_ETAG,
                      arena_printf(&transaction->arena, "W/%.*s-%08x\"", (int)etag.length - 1,
                                   etag.base, mark));
    else if (object_last_modified(of) != 0)
        http_head_set(head, HTTP_ETAG,
                      arena_printf(&transaction->arena, "W/\"%lx-%08x\"",
                                   (unsigned long)object_last_modified(of), mark));
}

/* By these it is purged with what it was made of. */
static void keep_tags(struct transaction *transaction, struct http_head *head) {
    static const char *const fields[] = {"Surrogate-Key", "Cache-Tag"};
    struct http_head *stored = arena_alloc(&transaction->arena, sizeof *stored);
    object_parse_head(transaction->variant->of, stored);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const struct http_field *field = http_head_find_text(stored, slice_from(fields[i]));
        if (field == NULL)
            continue;
        http_head_remove_text(head, slice_from(fields[i]));
        http_head_add(head, field->name, field->value);
    }
}

/* The stored response's, unless a service has shortened its life; may it be stored at all? */
static bool take_freshness(struct transaction *transaction, const struct http_head *head,
                           struct freshness *freshness) {
    const struct object *of = transaction->variant->of;
    struct freshness its_own;
    *freshness = object_freshness(of);
    struct slice control = transaction_joined_value(transaction, head, HTTP_CACHE_CONTROL);
    if (slice_equal(control, field_of(transaction, of, HTTP_CACHE_CONTROL)))
        return vary_usable(head);
    struct freshness_rules rules = caching_freshness_rules(transaction);
    freshness_of_response(&its_own, &rules, transaction->request.head, head,
                          (time_t)of->response_time, (time_t)of->response_time);
    if (its_own.lifetime < freshness->lifetime)
        freshness->lifetime = its_own.lifetime;
    return its_own.storable && vary_usable(head);
}

static struct object *new_variant(struct transaction *transaction, const struct http_head *head,
                                  enum object_kind kind, const struct freshness *freshness,
                                  struct body *body) {
    struct adapted_variant *variant = transaction->variant;
    const struct object_making making = {kind, variant->chain, adapt_mark_tag(&variant->mark)};
    struct slice theirs = transaction_joined_value(transaction, head, HTTP_VARY);
    struct slice selector = write_selector(transaction, variant->of, theirs);
    struct object *object =
        object_new_made(variant->of->key, object_url(variant->of), transaction->request.head, head,
                        freshness, body, &making, &selector);
    object->scope = variant->of->scope;
    return object;
}

/* The variant's body is what comes out of the services. */
static void variant_begin_body(struct transaction *transaction, const struct http_head *head,
                               enum object_kind kind, const struct freshness *freshness) {
    struct adapted_variant *variant = transaction->variant;
    struct postcache *postcache = variant->postcache;
    if (postcache->message.body == NULL)
        postcache->body = body_of_bytes(slice_make("", 0));
    else
        postcache->body = body_new(transaction->net, variant->keep ? BODY_SHARED : BODY_PASSING,
                                   postcache->message.body->length);
    variant->object = new_variant(transaction, head, kind, freshness, postcache->body);
    if (postcache->message.body != NULL)
        pump_start(&postcache->pump, transaction->net->loop, &postcache->message.body,
                   postcache->body, transaction->settings->cache.max_object, &transaction->task);
    if (!variant->keep)
        variant_finish(transaction, SHARED_FETCH_UNSTORED);
    adapted_variant_settle(transaction);
}

static enum step left_alone(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    struct freshness freshness = object_freshness(variant->of);
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    object_parse_head(variant->of, head);
    /* What passes by is read once, and that the services have done. */
    if (variant->of->body->kind == BODY_PASSING) {
        variant->keep = false;
        variant_begin_body(transaction, head, OBJECT_LEFT_ALONE, &freshness);
        return variant_go_on(transaction);
    }
    postcache_end(variant->postcache);
    if (!variant->keep) {
        variant_finish(transaction, SHARED_FETCH_FAILED);
        return variant_go_on(transaction);
    }
    variant->object =
        new_variant(transaction, head, OBJECT_LEFT_ALONE, &freshness, variant->of->body);
    adapted_variant_settle(transaction);
    return variant_go_on(transaction);
}

static enum step variant_changed(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    struct http_head *head = variant->postcache->message.response;
    struct freshness freshness;
    postcache_forget_etag(head, object_etag(variant->of));
    const struct object_making making = {OBJECT_MADE, variant->chain,
                                         adapt_mark_tag(&variant->mark)};
    set_validator(transaction, head, &making);
    keep_tags(transaction, head);
    variant->keep = take_freshness(transaction, head, &freshness) && variant->keep;
    variant_begin_body(transaction, head, OBJECT_MADE, &freshness);
    return variant_go_on(transaction);
}

static enum step variant_answered(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    struct adapt_chain *chain = &variant->postcache->chain;
    struct counters *counters = &transaction->net->counters;
    adapt_mark_take(&variant->mark, chain);
    variant->keep =
        adapt_chain_is_storable(chain) && !chain->unable && adapt_mark_tag(&variant->mark) != 0;
    variant->state = ADAPTED_VARIANT_STORES;
    counters->adapted_made++;
    counters->adapted_made_again += variant->old;
    return chain->modified ? variant_changed(transaction) : left_alone(transaction);
}

enum step step_variant(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    storing_settle(transaction);
    if (variant->state == ADAPTED_VARIANT_NONE)
        return variant_begin(transaction);
    if (variant->state == ADAPTED_VARIANT_FOLLOWS)
        return variant_resume(transaction);
    switch (variant->postcache->chain.state) {
    case ADAPT_RUNNING: return STEP_WAIT;
    case ADAPT_DONE: return variant_answered(transaction);
    default: break;
    }
    variant_finish(transaction, SHARED_FETCH_FAILED);
    return fail_with(transaction, 502, variant->postcache->chain.error);
}

/* Until it is in the index, its variants must not be. */
static bool variant_is_stored(const struct transaction *transaction) {
    const struct body *body = transaction->variant->of->body;
    return transaction->storing.object == NULL || transaction->storing.settled ||
           body->expected >= 0 || transaction->storing.pump.state == PUMP_IDLE;
}

static void variant_store(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    const struct cache_arrival arrival = {
        .since = variant->since,
        .max_variants = caching_max_variants(transaction),
        .of = variant->of,
    };
    bool stored = cache_insert(transaction->host->cache, variant->object, &arrival);
    variant_finish(transaction, stored ? SHARED_FETCH_STORED : SHARED_FETCH_ABANDONED);
}

void adapted_variant_settle(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    if (variant->state != ADAPTED_VARIANT_STORES || variant->object == NULL)
        return;
    const struct pump *pump = &variant->postcache->pump;
    /* It is too large, or what it is made of is. */
    if (variant->object->body->kind == BODY_PASSING)
        variant_finish(transaction, SHARED_FETCH_UNSTORED);
    else if (body_state(variant->of->body) == BODY_FAILED || pump->state == PUMP_FAILED)
        variant_finish(transaction, SHARED_FETCH_FAILED);
    else if (pump->state != PUMP_RUNNING && variant_is_stored(transaction))
        variant_store(transaction);
}

bool adapted_variant_is_at_work(const struct adapted_variant *variant) {
    return variant->state == ADAPTED_VARIANT_STORES;
}

void adapted_variant_let_client_go(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    if (adapted_variant_is_at_work(variant))
        pump_set_unread(&variant->postcache->pump);
    else
        adapted_variant_end(transaction);
}

void adapted_variant_end(struct transaction *transaction) {
    struct adapted_variant *variant = transaction->variant;
    variant_finish(transaction, SHARED_FETCH_ABANDONED);
    collapse_end(&variant->collapse);
    if (variant->postcache != NULL)
        postcache_end(variant->postcache);
    object_release(&variant->object);
    object_release(&variant->of);
}
