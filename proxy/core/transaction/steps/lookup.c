#include "transaction/steps/lookup.h"

#include "base/clocks.h"
#include "cache/key.h"
#include "cache/vary.h"
#include "cache/vouching.h"
#include "transaction/disclosed_identity.h"
#include "transaction/fail.h"
#include "transaction/https.h"
#include "transaction/request_rules.h"
#include "transaction/stored_part.h"
#include "transaction/stored_source.h"
#include "transaction/transaction.h"

/* LOOKUP: finds a stored response that this request may use (RFC 9111 §4). */

static bool matter_for_cache(const struct transaction *transaction) {
    const struct http_head *request = transaction->request.head;
    return (request->method_id == HTTP_METHOD_GET || request->method_id == HTTP_METHOD_HEAD) &&
           transaction->request.body == NULL && transaction->exchange->body_length == 0 &&
           !transaction_is_unproven(transaction) && !https_is_personal(transaction->exchange);
}

/* Clients that accept the same codings find the same variant, and the origin is asked for it. */
static void reduce_accept_encoding(struct transaction *transaction) {
    char text[ACCEPT_ENCODING_MAX];
    char *const *codings = transaction->settings->cache.accept_encoding;
    struct http_head *request = transaction->request.head;
    const struct http_field *field = http_head_find(request, HTTP_ACCEPT_ENCODING);
    struct slice reduced = accept_encoding_reduce(request, codings, text);
    if (reduced.base == NULL || (field != NULL && slice_equal(field->value, reduced) &&
                                 http_head_find_next(request, HTTP_ACCEPT_ENCODING, field) == NULL))
        return;
    http_head_set(request, HTTP_ACCEPT_ENCODING, arena_slice(&transaction->arena, reduced));
}

static bool has_codings(const struct settings *settings) {
    return strcmp(settings->cache.accept_encoding[0], "none") != 0;
}

/* Sends the stored response, or a 304 when the client's copy is still valid. */
static enum step hit(struct transaction *transaction, enum cache_result result) {
    outcome_set_result(&transaction->outcome, result);
    if (result != RESULT_REVALIDATED)
        transaction->net->counters.cache_hits++;
    return STEP_ANSWER;
}

static enum step lookup_pass(struct transaction *transaction) {
    outcome_set_result(&transaction->outcome, RESULT_PASS);
    return STEP_NEXT;
}

static bool may_wait(const struct transaction *transaction) {
    return transaction->settings->cache.collapse_timeout > 0 &&
           (transaction->lookup.collapse_until == 0 ||
            transaction->net->loop->now < transaction->lookup.collapse_until);
}

static bool may_collapse(const struct transaction *transaction) {
    return !transaction->lookup.alone && may_wait(transaction) &&
           transaction->request.head->method_id == HTTP_METHOD_GET &&
           !http_head_has(transaction->request.head, HTTP_RANGE) &&
           !http_head_has(transaction->request.head, HTTP_AUTHORIZATION) &&
           !transaction->caching.control.no_store && !transaction->caching.control.no_cache;
}

/* Another request is already fetching this response. Waits for it, but not for ever. */
static enum step lookup_follow(struct transaction *transaction) {
    transaction->net->counters.cache_collapsed++;
    request_own(transaction);
    struct lookup *lookup = &transaction->lookup;
    if (lookup->collapse_until == 0)
        lookup->collapse_until =
            transaction->net->loop->now + transaction->settings->cache.collapse_timeout;
    collapse_follow(&lookup->collapse, transaction->host->mailbox, &transaction->task,
                    lookup->collapse_until);
    return STEP_WAIT;
}

static enum step miss(struct transaction *transaction) {
    if (may_collapse(transaction)) {
        enum shared_fetch_role role =
            collapse_join(&transaction->lookup.collapse, transaction->host->shared_fetches,
                          &transaction->caching.name, transaction->net->loop);
        if (role == SHARED_FETCH_FOLLOWS)
            return lookup_follow(transaction);
    }
    outcome_set_result(&transaction->outcome, RESULT_MISS);
    transaction->net->counters.cache_misses++;
    return STEP_NEXT;
}

/* Handles the outcome of the fetch that was followed. Returns false when it is still running.
 * When it failed, this request fetches for itself. Only when the leader has just left, the
 * followers try together again. */
static bool shared_fetch_has_ended(struct transaction *transaction) {
    enum shared_fetch_outcome outcome;
    if (!collapse_has_ended(&transaction->lookup.collapse, &outcome))
        return false;
    transaction->lookup.alone = outcome != SHARED_FETCH_ABANDONED;
    lookup_forget(transaction);
    object_release(&transaction->lookup.replaced);
    return true;
}

/* RFC 5861 §3: the client need not wait for the origin; one request asks for all. */
static enum step stale_meanwhile(struct transaction *transaction) {
    if (shared_fetch_may_refresh(transaction->host->shared_fetches, &transaction->caching.name,
                                 loop_seconds(transaction->net->loop)) &&
        exchange_repeat_in_background(transaction->exchange,
                                      disclosed_identity_at_client(transaction)))
        transaction->net->counters.cache_background++;
    return hit(transaction, RESULT_STALE);
}

static enum step only_if_cached(struct transaction *transaction) {
    return fail_with(
        transaction, 504,
        "the client accepts only a stored response (only-if-cached), and there is none");
}

/* An object that memory has evicted may still be on disk. Looks there once. Returns true when it
 * is being read. */
static bool is_reading_disk(struct transaction *transaction) {
    struct transaction_host *host = transaction->host;
    if (transaction->lookup.disk_asked || host->second_level == NULL)
        return false;
    if (transaction->lookup.load == NULL) {
        /* What the kernel has in memory comes within one round of the loop, whose time stands. */
        transaction->lookup.load_started = clocks_microseconds(CLOCK_MONOTONIC);
        transaction->lookup.load = second_level_load_start(
            host->second_level, &transaction->caching.name, host->mailbox, &transaction->task);
    }
    if (transaction->lookup.load != NULL && !second_level_load_is_done(transaction->lookup.load)) {
        request_own(transaction);
        return true;
    }
    transaction->lookup.disk_asked = true;
    return false;
}

static struct object *lookup_look_up(struct transaction *transaction) {
    if (transaction->settings->any_remembered)
        return transaction->host->variants->look_up(transaction);
    return cache_lookup(transaction->host->cache, &transaction->caching.name,
                        transaction->request.head, caching_scope(transaction));
}

/* Takes the object from memory, which an object from disk enters first, also for another
 * request. When memory is too small to keep it, takes it from the load. */
static void take_from_disk(struct transaction *transaction) {
    if (transaction->lookup.load == NULL)
        return;
    times_add(&transaction->net->durations.disk_read_seconds,
              clocks_microseconds(CLOCK_MONOTONIC) - transaction->lookup.load_started);
    if (transaction->lookup.object != NULL) { /* it entered memory before the load reported it */
        transaction->net->counters.cache_disk_hits++;
        transaction->lookup.disk_asked = true;
        second_level_load_end(&transaction->lookup.load);
        return;
    }
    struct object *read = second_level_load_take(
        transaction->lookup.load, transaction->request.head, caching_scope(transaction));
    second_level_load_end(&transaction->lookup.load);
    transaction->net->counters.cache_disk_hits += read != NULL;
    transaction->lookup.object = lookup_look_up(transaction);
    if (transaction->lookup.object == NULL)
        transaction->lookup.object = read;
    else
        object_release(&read);
}

/* A body that ended early, or that is damaged on disk, is useless. */
static void drop_spoiled(struct transaction *transaction) {
    if (transaction->lookup.object == NULL ||
        body_state(transaction->lookup.object->body) != BODY_FAILED)
        return;
    storing_drop_broken(transaction, transaction->lookup.object);
    object_release(&transaction->lookup.object);
}

/* A name led to another address when the response was fetched, and the client may not reach that.
 * The response is nothing to it: the origin is asked where the name leads now. */
static void drop_denied(struct transaction *transaction) {
    struct object *object = transaction->lookup.object;
    if (object == NULL || stored_source_is_permitted(transaction, object))
        return;
    transaction->net->counters.cache_denied++;
    adapting_forget_variant(transaction);
    object_release(&transaction->lookup.object);
}

/* Another client might get less, or more, than the origin has for this one. */
static void drop_excluded(struct transaction *transaction) {
    struct object *object = transaction->lookup.object;
    if (!transaction->settings->any_told_class || object == NULL ||
        !disclosed_identity_excludes(transaction, object))
        return;
    transaction->net->counters.cache_excluded++;
    transaction->lookup.alone = true;
    adapting_forget_variant(transaction);
    object_release(&transaction->lookup.object);
}

/* Services at respmod_postcache get whole responses only. */
static bool part_will_do(struct transaction *transaction) {
    return !adapting_behind_cache(transaction) && stored_part_will_do(transaction);
}

/* A service that adapted the response before it was stored has changed since then (RFC 3507
 * §4.7). It has to adapt the response again, so the response is fetched again. */
static void drop_outdated(struct transaction *transaction) {
    struct object *object = transaction->lookup.object;
    if (object == NULL || !object_is_made(object) ||
        !transaction->settings->asks_at[ADAPT_RESPMOD_PRECACHE] ||
        !transaction->host->adapting->is_outdated(transaction, object))
        return;
    transaction->net->counters.adapted_outdated++;
    transaction->lookup.replaced = object;
    transaction->lookup.object = NULL;
}

/* A response that a service could not adapt is used while it is fresh. Then it is fetched again
 * without conditions, because a 304 would renew it and the service would not see it. */
static bool drop_unable(struct transaction *transaction) {
    if (object_provenance(transaction->lookup.object).kind != OBJECT_UNABLE)
        return false;
    transaction->lookup.replaced = transaction->lookup.object;
    transaction->lookup.object = NULL;
    return true;
}

/* Called once, because it changes the request and other policies might match then. Returns false
 * when the cache is not used. */
static bool lookup_begin(struct transaction *transaction) {
    if (!caching_begin(transaction))
        return false;
    if (has_codings(transaction->settings))
        reduce_accept_encoding(transaction);
    caching_take_name(transaction);
    caching_ask_by_name(transaction);
    return true;
}

/* Nothing that is stored will do. */
static enum step lookup_failed(struct transaction *transaction) {
    return transaction->caching.control.only_if_cached ? only_if_cached(transaction)
                                                       : miss(transaction);
}

/* What was found has to be confirmed by the origin, where the origin can be asked about it. */
static enum step lookup_revalidate(struct transaction *transaction) {
    struct object *object = transaction->lookup.object;
    if (transaction->caching.control.only_if_cached)
        return only_if_cached(transaction);
    if (drop_unable(transaction))
        return miss(transaction);
    if (object_chain(object) !=
        0) { /* only a variant is stored, which the origin does not understand */
        object_release(&transaction->lookup.object);
        return miss(transaction);
    }
    transaction->lookup.revalidating = object->etag_length > 0 || object_last_modified(object) != 0;
    return miss(transaction);
}

/* Stored responses are not vouched for at present (cache/vouching.h). */
static enum step lookup_doubt(struct transaction *transaction) {
    if (transaction->host->vouching->refuses)
        return fail_later(transaction, 503,
                          "this proxy can't know at present whether what it has stored was purged "
                          "elsewhere in its fleet",
                          1);
    return lookup_revalidate(transaction);
}

/* RFC 9111 §4.2: may what was found be used without a question to the origin? */
static enum step lookup_judge(struct transaction *transaction) {
    if (vouching_is_over(transaction->host->vouching, transaction->net->loop->now_nanoseconds))
        return lookup_doubt(transaction);
    struct freshness freshness = object_freshness(transaction->lookup.object);
    switch (
        freshness_judge(&freshness, &transaction->caching.control, transaction->net->loop->wall)) {
    case FRESHNESS_FRESH: return hit(transaction, RESULT_HIT);
    case FRESHNESS_STALE_ALLOWED: return hit(transaction, RESULT_STALE);
    case FRESHNESS_STALE_MEANWHILE:
        if (!transaction->exchange->background && transaction->lookup.object->status != 206)
            return stale_meanwhile(transaction);
        break;
    case FRESHNESS_REVALIDATE: break;
    }
    return lookup_revalidate(transaction);
}

static enum step lookup_run(struct transaction *transaction) {
    if (transaction->request.kind == REQUEST_CONNECT ||
        transaction->request.kind == REQUEST_UPGRADE || !matter_for_cache(transaction))
        return lookup_pass(transaction);
    if (transaction->lookup.collapse.fetch != NULL && !shared_fetch_has_ended(transaction))
        return STEP_WAIT;
    if (!transaction->caching.allowed && !lookup_begin(transaction))
        return transaction->caching.control.only_if_cached ? only_if_cached(transaction)
                                                           : lookup_pass(transaction);
    if (transaction->lookup.load == NULL)
        storing_note_moment(transaction);
    transaction->lookup.object = lookup_look_up(transaction);
    if (transaction->lookup.object == NULL && is_reading_disk(transaction))
        return STEP_WAIT;
    take_from_disk(transaction);
    drop_spoiled(transaction);
    drop_denied(transaction);
    drop_excluded(transaction);
    drop_outdated(transaction);
    if (transaction->lookup.object == NULL)
        return lookup_failed(transaction);
    if (transaction->lookup.object->status == 206 && !part_will_do(transaction)) {
        transaction->lookup.part = transaction->lookup.object;
        transaction->lookup.object = NULL;
        return lookup_failed(transaction);
    }
    return lookup_judge(transaction);
}

void lookup_tell_followers(struct transaction *transaction, enum shared_fetch_outcome outcome) {
    collapse_finish(&transaction->lookup.collapse, outcome);
}

void lookup_renew(struct transaction *transaction, struct object *fresh) {
    object_release(&transaction->lookup.object);
    transaction->lookup.object = fresh;
}

void lookup_replace(struct transaction *transaction) {
    transaction->lookup.replaced = transaction->lookup.object;
    transaction->lookup.object = NULL;
    transaction->lookup.revalidating = false;
}

void lookup_stop_revalidating(struct transaction *transaction) {
    transaction->lookup.revalidating = false;
}

void lookup_forget_part(struct transaction *transaction) {
    object_release(&transaction->lookup.part);
}

void lookup_forget(struct transaction *transaction) {
    object_release(&transaction->lookup.object);
    object_release(&transaction->lookup.part);
    transaction->lookup.revalidating = false;
}

void lookup_end(struct transaction *transaction) {
    collapse_end(&transaction->lookup.collapse);
    second_level_load_end(&transaction->lookup.load);
}

void lookup_release(struct transaction *transaction) {
    object_release(&transaction->lookup.object);
    object_release(&transaction->lookup.replaced);
    object_release(&transaction->lookup.part);
}

const struct step_row lookup_step = {.name = "LOOKUP", .step = STEP_LOOKUP, .run = lookup_run};
