#include "transaction/refresh.h"

#include "cache/range.h"
#include "http/date.h"
#include "transaction/stored_source.h"
#include "transaction/transaction.h"

/* Gives a stored response a new head: after a 304 (RFC 9111 §4.3.4), or after the response to a
 * HEAD that describes the same bytes (§4.3.5). */

bool refresh_spares(struct transaction *transaction, const struct freshness *freshness,
                    const struct object *stored, const struct http_head *news) {
    if (!freshness->for_one)
        return false;
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    struct freshness_rules rules = caching_freshness_rules(transaction, news);
    object_parse_head(stored, head);
    return freshness_is_for_all(&rules, news) || !freshness_is_for_all(&rules, head);
}

bool refresh_object(struct transaction *transaction, const struct http_head *news,
                    enum shared_fetch_outcome *outcome) {
    struct http_head *merged = arena_alloc(&transaction->arena, sizeof *merged);
    const struct http_head *request = request_as_get(transaction);
    struct object *object = transaction->lookup.object;
    struct freshness freshness;
    if (!stored_source_is_same(transaction, object) || !object_merge_head(object, news, merged))
        return false;
    caching_review(transaction, merged);
    struct freshness_rules rules = caching_freshness_rules(transaction, merged);
    freshness_of_response(&freshness, &rules, request, merged, transaction->response.request_time,
                          transaction->response.response_time);
    if (freshness.storable || caching_gives_cookies(transaction))
        merged = caching_head_to_store(transaction, merged);
    const struct object_provenance provenance = object_provenance(object);
    struct object *fresh =
        object_new_made(transaction->caching.name.key, transaction->caching.name.url, request,
                        merged, &freshness, object->body, &provenance, NULL);
    fresh->scope = object->scope;
    *outcome = SHARED_FETCH_UNSTORED;
    if (freshness.storable)
        *outcome = storing_insert(transaction, fresh);
    else if (!refresh_spares(transaction, &freshness, object, merged))
        storing_drop(transaction, object);
    lookup_renew(transaction, fresh);
    return true;
}

/* What a field of the response to a HEAD shows about the stored bytes. */
enum evidence { SILENT, SAME, OTHER };

static enum evidence refresh_compare(struct slice told, bool same) {
    if (told.base == NULL)
        return SILENT;
    return same ? SAME : OTHER;
}

static bool same_length(struct slice told, const struct object *object) {
    struct http_head head;
    struct partial part;
    uint64_t length, stored = body_length(object->body);
    if (object->status == 206) {
        object_parse_head(object, &head);
        stored = partial_of_head(&part, &head) ? part.whole : stored;
    } else if (body_state(object->body) != BODY_COMPLETE) {
        stored = (uint64_t)object->body->expected;
    }
    return slice_to_uint64(told, &length) && length == stored;
}

static bool same_date(struct slice told, const struct object *object) {
    time_t modified;
    return object_last_modified(object) != 0 && http_date_parse(told, &modified) &&
           modified == object_last_modified(object);
}

static enum evidence refresh_judge(const struct http_head *response, const struct object *object) {
    struct slice etag = http_head_value(response, HTTP_ETAG);
    struct slice date = http_head_value(response, HTTP_LAST_MODIFIED);
    struct slice length = http_head_value(response, HTTP_CONTENT_LENGTH);
    enum evidence all[] = {
        refresh_compare(etag, slice_equal(etag, object_etag(object))),
        refresh_compare(date, date.base != NULL && same_date(date, object)),
        refresh_compare(length, length.base != NULL && same_length(length, object)),
    };
    enum evidence evidence = SILENT;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        evidence = all[i] > evidence ? all[i] : evidence;
    return evidence;
}

/* Another user may have other bytes at the same place. */
static bool head_spares(struct transaction *transaction, const struct object *object) {
    const struct response *response = &transaction->response;
    struct freshness_rules rules = caching_freshness_rules(transaction, response->head);
    struct freshness freshness;
    freshness_of_response(&freshness, &rules, request_as_get(transaction), response->head,
                          response->request_time, response->response_time);
    return refresh_spares(transaction, &freshness, object, response->head);
}

/* A response without a field to compare updates nothing, because the stored bytes may be old. */
void refresh_from_head(struct transaction *transaction) {
    struct object *object =
        transaction->lookup.object != NULL ? transaction->lookup.object : transaction->lookup.part;
    if (transaction->request.head->method_id != HTTP_METHOD_HEAD ||
        transaction->response.head->status != 200 || object == NULL ||
        (object->status != 200 && object->status != 206))
        return;
    enum shared_fetch_outcome outcome;
    enum evidence evidence = refresh_judge(transaction->response.head, object);
    bool renews = evidence == SAME && object == transaction->lookup.object;
    if (renews && refresh_object(transaction, transaction->response.head, &outcome)) {
        transaction->net->counters.cache_head_updated++;
    } else if ((renews || evidence == OTHER) && !head_spares(transaction, object)) {
        storing_drop(transaction, object);
        transaction->net->counters.cache_head_dropped++;
    }
}
