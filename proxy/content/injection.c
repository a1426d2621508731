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
    return INJECTION_GOOD;
}

/* Is the object on disk, and the one that it replaces is not? */
static bool is_on_disk(const struct content_store *store, struct object *object,
                       const struct disk_moment *since) {
    if (store->disk == NULL)
        return true;
    uint64_t lapses = disk_lapses(store->disk);
    disk_inject(store->disk, object, since);
    return disk_commit(store->disk) && disk_lapses(store->disk) == lapses &&
           disk_has_object(store->disk, object);
}

static enum injection_result injection_insert(struct injection *injection,
                                              const struct content_store *store,
                                              struct object **objectp) {
    struct cache_arrival arrival = {.since = cache_now(store->cache)};
    struct disk_moment since = disk_now(store->disk);
    if (!cache_insert(store->cache, *objectp, &arrival)) {
        object_release(objectp);
        snprintf(injection->error, sizeof injection->error,
                 "the object was purged at the same moment: repeat the request");
        return INJECTION_REFUSED;
    }
    if (is_on_disk(store, *objectp, &since))
        return INJECTION_GOOD;
    snprintf(injection->error, sizeof injection->error,
             "the object is in the cache now, but a disk could not store it or is too small for "
             "it, so a restart would undo it: see the error log, and repeat the request");
    return INJECTION_NOT_KEPT;
}

enum injection_result injection_store(struct injection *injection,
                                      const struct content_store *store,
                                      const struct cache_name *name, struct body *body,
                                      struct object **objectp) {
    const struct http_head request = request_for_all();
    *objectp = object_new(name->key, name->url, &request, injection->response,
                          &injection->freshness, body);
    return injection_insert(injection, store, objectp);
}
