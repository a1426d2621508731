#include "transaction/steps/store.h"

#include "cache/conditional.h"
#include "cache/key.h"
#include "cache/removal.h"
#include "http/date.h"
#include "transaction/forwarding.h"
#include "transaction/refresh.h"
#include "transaction/stored_part.h"
#include "transaction/stored_source.h"
#include "transaction/transaction.h"

#include <stdio.h>

/* STORE: the response's body begins to flow into memory. It is kept if it may be stored, and passes
 * through if not. DELIVER reads it from there while it arrives. */

static void complete_head(struct transaction *transaction) {
    response_date(transaction);
    forwarding_add_via(transaction, transaction->response.head);
}

static bool has_body(const struct transaction *transaction) {
    unsigned status = transaction->response.head->status;
    return transaction->response.body != NULL && status != 204 && status != 304;
}

/* The length that the client is told: that of the source, or, for a HEAD, the length that the
 * origin stated. */
static int64_t announced_length(const struct transaction *transaction) {
    uint64_t length;
    unsigned status = transaction->response.head->status;
    if (has_body(transaction))
        return transaction->response.body->length;
    if (transaction->request.head->method_id != HTTP_METHOD_HEAD && status != 304)
        return 0;
    struct slice field = http_head_value(transaction->response.head, HTTP_CONTENT_LENGTH);
    return slice_to_uint64(field, &length) && length <= INT64_MAX ? (int64_t)length : -1;
}

/* RFC 9110 §9.3.3: the answer to a POST may say that it is also the answer to a GET of the same
 * URL. */
static bool stands_for_get(struct transaction *transaction) {
    const struct http_head *response = transaction->response.head;
    const struct http_field *place = http_head_find(response, HTTP_CONTENT_LOCATION);
    return transaction->request.head->method_id == HTTP_METHOD_POST && response->status == 200 &&
           place != NULL && http_head_find_next(response, HTTP_CONTENT_LOCATION, place) == NULL &&
           slice_equal(request_resolve(transaction, place->value), transaction->request.url_text);
}

/* Prepares storing the answer to a POST, for which no lookup was made. */
static bool prepare_post(struct transaction *transaction) {
    if (transaction_is_unproven(transaction) || !stands_for_get(transaction) ||
        !caching_begin_post(transaction))
        return false;
    caching_take_name(transaction);
    /* The origin was asked for the whole URL. */
    return !caching_sends_name(transaction) ||
           slice_equal(transaction->caching.name.url, transaction->request.url_text);
}

static bool is_unable(const struct transaction *transaction) {
    return transaction->adapting != NULL && transaction->adapting->unable;
}

/* STORE_ON_DISK: it is too large for memory, but may stand on disk. */
enum storage { STORE_NOWHERE, STORE_ON_DISK, STORE_IN_MEMORY };

/* A response is not kept if a service had no chance to adapt it, or left it alone because this client
 * wants no change. Otherwise all clients would get it for its whole lifetime. */
static bool may_keep_adapted(const struct transaction *transaction) {
    const struct adapting *adapting = transaction->adapting;
    return transaction->outcome.result != RESULT_SERVICE &&
           (adapting == NULL || (!adapting->for_one &&
                                 !(adapting->asked && transaction->caching.control.no_transform)));
}

/* What a service could not work on is kept for a short time, or not at all: a part of a body never,
 * because others would be joined to it. */
static bool may_keep_unable(struct transaction *transaction, struct freshness *freshness) {
    uint64_t lifetime = transaction->settings->cache.failed_lifetime;
    if (lifetime == 0 || transaction->response.head->status == 206)
        return false;
    freshness_cut(freshness, lifetime);
    transaction->net->counters.adapted_unable++;
    return true;
}

static enum storage where_to_store(struct transaction *transaction, struct freshness *freshness) {
    bool post = !transaction->caching.allowed && prepare_post(transaction);
    if ((!transaction->caching.allowed && !post) || !may_keep_adapted(transaction))
        return STORE_NOWHERE;
    caching_review(transaction, transaction->response.head);
    struct freshness_rules rules = caching_freshness_rules(transaction, transaction->response.head);
    freshness_of_response(freshness, &rules,
                          post ? request_as_get(transaction) : transaction->request.head,
                          transaction->response.head, transaction->response.request_time,
                          transaction->response.response_time);
    if (!freshness->storable || (post && freshness->heuristic))
        return STORE_NOWHERE;
    if (is_unable(transaction) && !may_keep_unable(transaction, freshness))
        return STORE_NOWHERE;
    if (has_body(transaction) && transaction->response.body->length >= 0 &&
        (uint64_t)transaction->response.body->length > transaction->settings->cache.max_object) {
        transaction->net->counters.cache_too_large++;
        return STORE_ON_DISK;
    }
    return STORE_IN_MEMORY;
}

static void store_begin_body(struct transaction *transaction, bool keep) {
    if (!has_body(transaction)) {
        response_close_body(&transaction->response);
        transaction->storing.body = body_of_bytes(slice_make("", 0));
        return;
    }
    transaction->storing.body = body_new(transaction->net, keep ? BODY_SHARED : BODY_PASSING,
                                         transaction->response.body->length);
}

/* The bytes that came with the head go on to the client in the buffer in which they came. */
static void pass_waiting(struct transaction *transaction) {
    struct origin_call *call = transaction->fetch.call;
    if (call == NULL || transaction->response.body != &call->body)
        return;
    struct net_buffer *waiting = origin_call_take_waiting(call);
    if (waiting != NULL)
        body_pass(transaction->storing.body, &waiting);
}

static void storing_unhold(struct transaction *transaction) {
    if (transaction->storing.held != NULL)
        cache_unhold(transaction->host->cache, transaction->storing.held);
    transaction->storing.held = NULL;
}

/* The object is held in memory, and stays so while its body arrives. */
static void hand_to_disk(struct transaction *transaction, struct object *object) {
    struct storing *storing = &transaction->storing;
    second_level_store(transaction->host->second_level, object, &storing->second_level_since);
    if (object == storing->object && body_state(object->body) == BODY_ARRIVING)
        storing->held = object;
    else
        cache_unhold(transaction->host->cache, object);
}

/* A response that was purged on its way is not put into the index. The transactions that wait for
 * it ask again. */
enum shared_fetch_outcome storing_insert(struct transaction *transaction, struct object *object) {
    struct cache_arrival arrival = {
        .since = transaction->storing.since,
        .max_variants = caching_max_variants(transaction),
        .held = transaction->host->second_level != NULL,
    };
    if (!cache_insert(transaction->host->cache, object, &arrival)) {
        cache_supersede(transaction->host->cache, object);
        second_level_supersede(transaction->host->second_level, object);
        return SHARED_FETCH_ABANDONED;
    }
    if (arrival.held)
        hand_to_disk(transaction, object);
    return SHARED_FETCH_STORED;
}

void storing_drop(struct transaction *transaction, struct object *object) {
    removal_of_object(transaction->host->cache, transaction->host->second_level, object);
}

void storing_note_moment(struct transaction *transaction) {
    transaction->storing.since = cache_now(transaction->host->cache);
    transaction->storing.second_level_since = second_level_now(transaction->host->second_level);
}

static void keep_object_now(struct transaction *transaction) {
    lookup_tell_followers(transaction, storing_insert(transaction, transaction->storing.object));
}

/* Notes which services the response has passed. */
static struct object_provenance seen_by(const struct transaction *transaction) {
    const struct adapting *adapting = transaction->adapting;
    struct object_provenance provenance = {.kind = OBJECT_UNSEEN};
    provenance.source = stored_source_of_response(transaction);
    if (is_unable(transaction)) {
        provenance.kind = OBJECT_UNABLE;
        return provenance;
    }
    if (adapting != NULL && adapting->asked)
        adapting->class->note_seen(transaction, &provenance);
    return provenance;
}

/* Those who find the object know the length of its body only if the origin announced it. Without it
 * they must not join: the body may become too large to keep. */
static void begin_object(struct transaction *transaction, const struct freshness *freshness) {
    struct object_provenance provenance = seen_by(transaction);
    const struct http_head *head = caching_head_to_store(transaction, transaction->response.head);
    transaction->storing.object = object_new_made(
        transaction->caching.name.key, transaction->caching.name.url, transaction->request.head,
        head, freshness, transaction->storing.body, &provenance, NULL);
    transaction->storing.object->scope = (uint8_t)caching_scope(transaction);
    transaction->net->counters.cache_stores++;
    if (transaction->storing.body->expected >= 0 ||
        body_state(transaction->storing.body) == BODY_COMPLETE)
        keep_object_now(transaction);
}

/* The stored page is no longer what the origin sends, and the new one may not be kept. So the old
 * page must go, or it could be served stale in place of the new one. An error, a response that
 * missed its service, or one for a single user says nothing about the stored page. */
static void drop_replaced(struct transaction *transaction, const struct freshness *freshness) {
    bool missed = transaction->adapting != NULL &&
                  (transaction->adapting->unable || transaction->adapting->missed);
    if (transaction->lookup.replaced != NULL && transaction->response.head->status < 500 &&
        !missed && transaction->request.head->method_id == HTTP_METHOD_GET &&
        !refresh_spares(transaction, freshness, transaction->lookup.replaced,
                        transaction->response.head))
        storing_drop(transaction, transaction->lookup.replaced);
}

/* A large body goes to disk as it passes. */
static void begin_stream(struct transaction *transaction, const struct freshness *freshness) {
    struct body *nothing = body_of_bytes(SLICE(""));
    const struct http_head *head = caching_head_to_store(transaction, transaction->response.head);
    struct object_provenance provenance = seen_by(transaction);
    struct object *object =
        object_new_made(transaction->caching.name.key, transaction->caching.name.url,
                        transaction->request.head, head, freshness, nothing, &provenance, NULL);
    object->scope = (uint8_t)caching_scope(transaction);
    transaction->storing.pump.stream = second_level_stream_open(
        transaction->host->second_level, object, (uint64_t)transaction->response.body->length,
        &transaction->storing.second_level_since);
    if (transaction->storing.pump.stream != NULL)
        cache_supersede(transaction->host->cache, object);
    object_release(&object);
    body_release(&nothing);
}

static enum step store_run(struct transaction *transaction) {
    struct freshness freshness = {.for_one = false};
    adapting_forget_variant(transaction);
    complete_head(transaction);
    enum storage storage = where_to_store(transaction, &freshness);
    bool keep = storage == STORE_IN_MEMORY;
    if (transaction->response.head->status == 206)
        keep = stored_part_join(transaction, keep);
    transaction->storing.announced_length = announced_length(transaction);
    store_begin_body(transaction, keep);
    if (keep) {
        begin_object(transaction, &freshness);
    } else {
        drop_replaced(transaction, &freshness);
        stored_part_drop(transaction, &freshness);
        lookup_tell_followers(transaction, SHARED_FETCH_UNSTORED);
        if (transaction->caching.allowed)
            transaction->net->counters.cache_uncacheable++;
    }
    if (storage == STORE_ON_DISK && transaction->response.head->status == 200 &&
        transaction->request.head->method_id == HTTP_METHOD_GET)
        begin_stream(transaction, &freshness);
    if (transaction->response.body != NULL && !keep && transaction->storing.pump.stream == NULL)
        pass_waiting(transaction);
    struct source *arriving = response_give_body(&transaction->response);
    if (arriving != NULL)
        pump_start(&transaction->storing.pump, transaction->net->loop, &arriving,
                   transaction->storing.body, transaction->settings->cache.max_object,
                   &transaction->task);
    return STEP_ANSWER;
}

void storing_drop_broken(struct transaction *transaction, struct object *object) {
    removal_of_broken(transaction->host->cache, transaction->host->second_level, object);
}

static void settle_object(struct transaction *transaction) {
    struct object *object = transaction->storing.object;
    if (object == NULL || transaction->storing.settled)
        return;
    if (transaction->storing.pump.overflowed)
        lookup_tell_followers(transaction, SHARED_FETCH_UNSTORED);
    if (transaction->storing.pump.state == PUMP_RUNNING)
        return;
    transaction->storing.settled = true;
    transaction->net->counters.cache_too_large += transaction->storing.pump.overflowed;
    if (body_state(object->body) != BODY_COMPLETE) {
        storing_drop_broken(transaction, object);
        lookup_tell_followers(transaction, SHARED_FETCH_FAILED);
    } else if (object->body->expected < 0 && !transaction->storing.pump.overflowed) {
        keep_object_now(transaction);
    } else if (transaction->storing.pump.state !=
               PUMP_IDLE) { /* else it was complete from the start */
        second_level_store(transaction->host->second_level, object,
                           &transaction->storing.second_level_since);
    }
    storing_unhold(transaction);
}

void storing_settle(struct transaction *transaction) {
    settle_object(transaction);
    if (transaction->adapting != NULL && transaction->adapting->variants != NULL)
        transaction->adapting->variants->settle(transaction);
}

bool storing_is_worth_finishing(const struct storing *storing) {
    return storing->object != NULL && !storing->pump.overflowed;
}

static void storing_let_client_go(struct transaction *transaction) {
    struct storing *storing = &transaction->storing;
    if (storing->pump.state == PUMP_RUNNING && !storing_is_worth_finishing(storing))
        pump_stop(&storing->pump);
    pump_set_unread(&storing->pump);
}

static void storing_end(struct transaction *transaction) {
    pump_stop(&transaction->storing.pump);
    response_close_body(&transaction->response);
}

void storing_release(struct transaction *transaction) {
    storing_unhold(transaction);
    object_release(&transaction->storing.object);
    body_release(&transaction->storing.body);
}

void storing_see_own_removal(struct transaction *transaction) {
    transaction->storing.since.keys = cache_now(transaction->host->cache).keys;
}

const struct step_row store_step = {
    .name = "STORE",
    .step = STEP_STORE,
    .run = store_run,
    .begins = true,
    .let_go = storing_let_client_go,
    .end = storing_end,
};
