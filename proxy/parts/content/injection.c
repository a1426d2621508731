#include "content/injection.h"

#include "http/head_parser.h"

#include <stdio.h>
#include <time.h>

size_t injection_read_head(struct http_head *response, struct slice message) {
    ssize_t used = http_head_parse_response(response, message.base, message.length, 0);
    bool whole =
        used > 0 && response->status >= 200 && response->status != 206 && response->status != 304;
    return whole ? (size_t)used : 0;
}

/* A head that announces another body was written wrongly, or is not meant as one head. */
bool injection_states_length(const struct http_head *response, uint64_t length) {
    uint64_t announced;
    unsigned count = 0;
    const struct http_field *field = http_head_find(response, HTTP_CONTENT_LENGTH);
    for (; field != NULL;
         field = http_head_find_next(response, HTTP_CONTENT_LENGTH, field), count++)
        if (!slice_to_uint64(field->value, &announced) || announced != length)
            return false;
    return count <= 1;
}

/* A larger one would evict everything and then itself. */
bool injection_fits(const struct content_store *store, uint64_t length) {
    struct cache_statistics statistics;
    cache_statistics(store->cache, &statistics);
    return length < statistics.limit;
}

/* RFC 9110 §6.6.1: "A recipient with a clock that receives a response message without a Date header
 * field MUST record the time it was received and append a corresponding Date header field". */
static void date_response(struct injection *injection) {
    if (http_head_has(injection->response, HTTP_DATE))
        return;
    http_date_format(injection->date, time(NULL));
    http_head_set(injection->response, HTTP_DATE, slice_make(injection->date, HTTP_DATE_LENGTH));
}

static struct http_head request_for_all(void) {
    struct http_head request;
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    return request;
}

enum injection_result injection_judge(struct injection *injection) {
    const struct freshness_rules rules = {0};
    const struct http_head request = request_for_all();
    struct freshness *freshness = &injection->freshness;
    time_t now = time(NULL);
    http_head_remove_hop_by_hop(injection->response);
    http_head_remove(injection->response, HTTP_TRANSFER_ENCODING);
    date_response(injection);
    freshness_of_response(freshness, &rules, &request, injection->response, now, now);
    if (injection->lifetime != INJECTION_BY_HEAD) {
        freshness->lifetime = freshness->initial_age + injection->lifetime;
        freshness->always_revalidate = false;
    } else if (!freshness->storable) {
        snprintf(injection->error, sizeof injection->error,
                 "the response may not be stored (%s); add lifetime= to store it all the same",
                 freshness->reason);
        return INJECTION_REFUSED;
    }
    http_head_remove_set_cookies(injection->response); /* nobody's request fetched it */
    return INJECTION_GOOD;
}

static enum injection_result injection_refuse(struct injection *injection, const char *what) {
    snprintf(injection->error, sizeof injection->error,
             "the object was %s at the same moment: repeat the request", what);
    return INJECTION_REFUSED;
}

/* What is newer may take its place once it is queued for the disk: the one that it has replaced does
 * not come back then. Before that, nobody knows. */
static enum injection_result keep_injected(struct injection *injection,
                                           const struct content_store *store, struct object *object,
                                           const struct second_level_moment *since) {
    if (store->second_level == NULL)
        return INJECTION_GOOD;
    uint64_t lapses = second_level_lapses(store->second_level);
    bool queued = second_level_inject(store->second_level, object, since);
    bool there = cache_has(store->cache, object);
    if (!queued && !there)
        return injection_refuse(injection, "replaced or removed");
    if (second_level_commit(store->second_level) &&
        second_level_lapses(store->second_level) == lapses &&
        (second_level_has_object(store->second_level, object) || !cache_has(store->cache, object)))
        return INJECTION_GOOD;
    snprintf(injection->error, sizeof injection->error,
             "the object is in the cache now, but a disk could not store it or is too small for "
             "it, so a restart would undo it: see the error log, and repeat the request");
    return INJECTION_NOT_KEPT;
}

static enum injection_result injection_insert(struct injection *injection,
                                              const struct content_store *store,
                                              struct object *object) {
    struct cache_arrival arrival = {.since = cache_now(store->cache), .held = true};
    struct second_level_moment since = second_level_now(store->second_level);
    if (!cache_insert(store->cache, object, &arrival))
        return injection_refuse(injection, "purged");
    enum injection_result result = keep_injected(injection, store, object, &since);
    cache_unhold(store->cache, object);
    return result;
}

enum injection_result injection_store(struct injection *injection,
                                      const struct content_store *store,
                                      const struct cache_name *name, struct body *body,
                                      struct object **objectp) {
    const struct http_head request = request_for_all();
    *objectp = object_new(name->key, name->url, &request, injection->response,
                          &injection->freshness, body);
    enum injection_result result = injection_insert(injection, store, *objectp);
    if (result == INJECTION_REFUSED)
        object_release(objectp);
    return result;
}
