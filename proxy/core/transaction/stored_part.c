#include "transaction/stored_part.h"

#include "base/assert.h"
#include "cache/range.h"
#include "transaction/join.h"
#include "transaction/refresh.h"
#include "transaction/stored_source.h"
#include "transaction/transaction.h"

/* Partial responses in the cache (RFC 9111 §3.3, §3.4): when a stored part is sufficient, how it
 * is completed, and how a new part is stored. */

static bool part_of_object(struct partial *part, const struct object *object) {
    struct http_head head;
    if (object->status != 206)
        return false;
    object_parse_head(object, &head);
    return partial_of_head(part, &head);
}

/* Finds the range that the request asks for, and whether the part contains all of it. */
static enum range_kind wanted(struct transaction *transaction, const struct http_head *response,
                              const struct partial *part, bool *is_in) {
    struct range_subject subject;
    unsigned count, most = transaction->settings->cache.max_ranges;
    struct range *ranges = arena_alloc(&transaction->arena, most * sizeof *ranges);
    range_subject_of(&subject, response, part->whole);
    enum range_kind kind =
        range_of_request(ranges, most, &count, transaction->request.head, &subject);
    *is_in = kind == RANGE_PARTS && partial_holds(part, ranges, count);
    return kind;
}

bool stored_part_will_do(struct transaction *transaction) {
    struct partial part;
    bool is_in;
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    object_parse_head(transaction->lookup.object, head);
    if (!partial_of_head(&part, head))
        return false;
    return wanted(transaction, head, &part, &is_in) == RANGE_UNSATISFIABLE || is_in;
}

bool stored_part_ask_for_rest(struct transaction *transaction, struct http_head *head) {
    struct partial part;
    const struct object *object = transaction->lookup.part;
    if (object == NULL || head->method_id != HTTP_METHOD_GET || http_head_has(head, HTTP_RANGE) ||
        body_state(object->body) != BODY_COMPLETE ||
        !partial_same_etag(object_etag(object), object_etag(object)) ||
        !part_of_object(&part, object) || part.first != 0)
        return false;
    http_head_set(
        head, HTTP_RANGE,
        arena_printf(&transaction->arena, "bytes=%lu-", (unsigned long)partial_end(&part)));
    http_head_set(head, HTTP_IF_RANGE, object_etag(object));
    return true;
}

/* Describes the received part if its body is as long as its head says. */
static bool arrived(const struct transaction *transaction, struct partial *part) {
    return partial_of_head(part, transaction->response.head) &&
           transaction->response.body != NULL &&
           transaction->response.body->length == (int64_t)part->count;
}

/* Returns the stored part that can be combined with the received one, or NULL. */
static struct object *partner(struct transaction *transaction, const struct partial *part,
                              struct partial *stored) {
    struct object *object =
        transaction->lookup.part != NULL ? transaction->lookup.part : transaction->lookup.replaced;
    if (object == NULL || !part_of_object(stored, object) ||
        body_state(object->body) != BODY_COMPLETE ||
        !partial_same_etag(object_etag(object),
                           http_head_value(transaction->response.head, HTTP_ETAG)) ||
        !partial_joins(part, stored) || !stored_source_is_same(transaction, object))
        return NULL;
    return object;
}

bool stored_part_completes(struct transaction *transaction) {
    struct partial part, stored;
    return transaction->response.head->status == 206 && arrived(transaction, &part) &&
           partner(transaction, &part, &stored) != NULL && partial_end(&part) == part.whole;
}

/* Where both parts overlap, the received bytes are used. */
static void join_bodies(struct transaction *transaction, struct object *object,
                        const struct partial *part, const struct partial *stored) {
    uint64_t before = stored->first < part->first ? part->first - stored->first : 0;
    uint64_t after =
        partial_end(stored) > partial_end(part) ? partial_end(stored) - partial_end(part) : 0;
    struct source *arriving = response_give_body(&transaction->response);
    struct source *joined = join_new(&transaction->arena, transaction->net->loop, object->body,
                                     before, &arriving, stored->count - after, after);
    response_set(&transaction->response, transaction->response.head, &joined);
}

/* RFC 9110 §15.3.7.3: the stored fields, updated by those of the new response. Returns false
 * when they are too many; the client then gets only the new ones. */
static bool join_heads(struct transaction *transaction, const struct object *object) {
    struct http_head *merged = arena_alloc(&transaction->arena, sizeof *merged);
    if (!object_merge_head(object, transaction->response.head, merged))
        return false;
    merged->status = 206;
    response_set_head(&transaction->response, merged);
    return true;
}

static void stored_part_describe(struct transaction *transaction, const struct partial *part) {
    struct http_head *response = transaction->response.head;
    http_head_remove(response, HTTP_CONTENT_LENGTH);
    if (partial_is_whole(part)) {
        response->status = 200;
        response->reason = SLICE("OK");
        http_head_remove(response, HTTP_CONTENT_RANGE);
        return;
    }
    http_head_set(response, HTTP_CONTENT_RANGE,
                  arena_printf(&transaction->arena, "bytes %lu-%lu/%lu", (unsigned long)part->first,
                               (unsigned long)(partial_end(part) - 1), (unsigned long)part->whole));
}

/* A larger part of the same bytes is more useful than another part. */
static bool stored_is_better(const struct transaction *transaction, const struct partial *part) {
    struct partial stored;
    return transaction->lookup.part != NULL && part_of_object(&stored, transaction->lookup.part) &&
           stored.whole == part->whole && stored.count > part->count &&
           partial_same_etag(object_etag(transaction->lookup.part),
                             http_head_value(transaction->response.head, HTTP_ETAG));
}

bool stored_part_join(struct transaction *transaction, bool keep) {
    struct partial part, stored, all;
    bool asked =
        transaction->fetch.completing || http_head_has(transaction->request.head, HTTP_RANGE);
    if (!asked || !arrived(transaction, &part))
        return false;
    struct object *object = partner(transaction, &part, &stored);
    all = object != NULL ? partial_union(&part, &stored) : part;
    if (all.count > transaction->settings->cache.max_object)
        keep = false;
    if (!transaction->fetch.completing) {
        bool is_in;
        wanted(transaction, transaction->response.head, &all, &is_in);
        if (!keep || !is_in)
            return false;
        if (object == NULL && stored_is_better(transaction, &part))
            return false;
    }
    if (object != NULL) {
        join_bodies(transaction, object, &part, &stored);
        keep = join_heads(transaction, object) && keep;
        transaction->net->counters.cache_combined++;
    }
    stored_part_describe(transaction, &all);
    return keep;
}

/* The stored part is outdated: the page has changed, or is not stored any more. */
static bool part_is_outdated(const struct transaction *transaction) {
    const struct http_head *response = transaction->response.head;
    return response->status == 200 ||
           (response->status == 206 && !partial_same_etag(object_etag(transaction->lookup.part),
                                                          http_head_value(response, HTTP_ETAG)));
}

void stored_part_drop(struct transaction *transaction, const struct freshness *freshness) {
    if (transaction->lookup.part != NULL &&
        transaction->request.head->method_id == HTTP_METHOD_GET && part_is_outdated(transaction) &&
        !refresh_spares(transaction, freshness, transaction->lookup.part,
                        transaction->response.head))
        storing_drop(transaction, transaction->lookup.part);
}
