#include "admin/cache_object_page.h"

#include "base/assert.h"
#include "cache/key.h"
#include "http/date.h"
#include "http/head_parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { VARIANTS_MOST = 1000 };

static const char *cache_object_page_state_of(struct cache *cache, struct object *object,
                                              const struct freshness *freshness, int64_t left) {
    enum body_state body = body_state(object->body);
    if (cache_is_banned(cache, object))
        return "banned";
    if (body != BODY_COMPLETE)
        return body == BODY_FAILED ? "failed" : "arriving";
    return freshness->always_revalidate || left <= 0 ? "stale" : "fresh";
}

json_t *cache_object_page_json(const struct cache_call *call, struct object *object) {
    static const char *const services[] = {[OBJECT_UNSEEN] = "none",
                                           [OBJECT_SEEN] = "before it was stored",
                                           [OBJECT_MADE] = "behind the cache",
                                           [OBJECT_LEFT_ALONE] = "behind the cache, unchanged",
                                           [OBJECT_UNABLE] = "before it was stored, unable"};
    struct cache *cache = call->cache;
    time_t now = time(NULL);
    struct freshness freshness = object_freshness(object);
    int64_t age = freshness_age(&freshness, now);
    int64_t left = freshness.lifetime - age;
    json_t *json = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o, s:s}", "url",
        cache_call_text(object_url(object)), "state",
        cache_object_page_state_of(cache, object, &freshness, left), "status",
        (json_int_t)object->status, "size", (json_int_t)body_length(object->body), "memory",
        (json_int_t)object_cost(object), "age", (json_int_t)age, "fresh_for", (json_int_t)left,
        "stored", (json_int_t)object->response_time, "hits",
        (json_int_t)atomic_load_explicit(&object->hits, memory_order_relaxed), "pinned",
        (int)object->pinned, "on_disk", (int)disk_has(call->disk, object->key), "vary",
        cache_call_text(object_selector(object)), "services", services[object_making(object).kind]);
    return json;
}

void cache_object_page_show(const struct cache_call *call) {
    struct cache_walk walk = {0};
    struct cache_name name;
    if (!cache_call_take_stored(call, &name))
        return;
    json_t *variants = json_array();
    cache_walk_name(call->cache, &walk, &name);
    for (size_t i = 0; i < walk.count; i++) {
        json_t *json = cache_object_page_json(call, walk.objects[i]);
        json_object_set_new(json, "head", cache_call_text(object_head(walk.objects[i])));
        json_array_append_new(variants, json);
    }
    if (walk.count == 0) {
        json_decref(variants);
        cache_call_not_stored(call);
    } else {
        page_json(call->page, 200, json_pack("{s:o}", "variants", variants));
    }
    cache_walk_end(&walk);
}

/* False: it can't be read. */
static bool write_body(FILE *out, struct body *body) {
    enum { PIECE = 64 * 1024 };
    char *bytes = xmalloc(PIECE);
    uint64_t left = body_length(body), position = 0;
    bool good = true;
    while (good && left > 0) {
        size_t length = left < PIECE ? (size_t)left : PIECE;
        good = body_copy(body, position, bytes, length);
        fwrite(bytes, 1, length, out);
        position += length;
        left -= length;
    }
    free(bytes);
    return good;
}

/* As an HTTP message: head, Content-Length, empty line, body. */
static void write_message(struct page *page, const struct object *object) {
    FILE *out = open_memstream(&page->text, &page->length);
    if (out == NULL) {
        page_end_text(page, out);
        return;
    }
    struct slice head = object_head(object);
    fwrite(head.base, 1, head.length, out);
    fprintf(out, "Content-Length: %llu\r\n\r\n", (unsigned long long)body_length(object->body));
    bool good = write_body(out, object->body);
    if (!page_end_text(page, out))
        return;
    if (!good) {
        free(page->text);
        page->text = NULL;
        page_error(page, 500, "the object can't be read from disk; see the error log");
        return;
    }
    page->status = 200;
    page->content_type = "application/http";
}

void cache_object_page_content(const struct cache_call *call) {
    struct cache_walk walk = {0};
    struct cache_name name;
    uint64_t variant;
    if (!cache_call_take_stored(call, &name) ||
        !cache_call_take_number(call, "variant", 0, VARIANTS_MOST, &variant))
        return;
    cache_walk_name(call->cache, &walk, &name);
    if (variant >= walk.count)
        cache_call_not_stored(call);
    else if (body_state(walk.objects[variant]->body) == BODY_FAILED)
        page_error(call->page, 500, "the object can't be read from disk; see the error log");
    else if (body_state(walk.objects[variant]->body) != BODY_COMPLETE)
        page_error(call->page, 409, "the object has not arrived completely yet");
    else
        write_message(call->page, walk.objects[variant]);
    cache_walk_end(&walk);
}

/* Injection. */

static bool cache_object_page_judge(const struct cache_call *call, const struct http_head *request,
                                    const struct http_head *response, struct freshness *freshness) {
    const struct freshness_rules rules = {0};
    uint64_t lifetime;
    time_t now = time(NULL);
    if (!cache_call_take_number(call, "lifetime", 0, INT32_MAX, &lifetime))
        return false;
    freshness_of_response(freshness, &rules, request, response, now, now);
    if (cache_call_argument(call, "lifetime") != NULL) {
        freshness->lifetime = freshness->initial_age + (int64_t)lifetime;
        freshness->always_revalidate = false;
    } else if (!freshness->storable) {
        char reason[200];
        snprintf(reason, sizeof reason,
                 "the response may not be stored (%s); add lifetime= to store it all the same",
                 freshness->reason);
        page_error(call->page, 409, reason);
        return false;
    }
    return true;
}

/* Checks that the object is on disk and the one that it replaces is not. */
static bool is_on_disk(const struct cache_call *call, struct object *object,
                       const struct disk_moment *since) {
    if (call->disk == NULL)
        return true;
    uint64_t lapses = disk_lapses(call->disk);
    disk_inject(call->disk, object, since);
    return disk_commit(call->disk) && disk_lapses(call->disk) == lapses &&
           disk_has_object(call->disk, object);
}

static void cache_object_page_store(const struct cache_call *call, struct slice url,
                                    const struct http_head *response, struct slice bytes) {
    struct http_head request;
    struct freshness freshness;
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    if (!cache_object_page_judge(call, &request, response, &freshness))
        return;
    struct body *body = body_of_many_bytes(bytes);
    if (body == NULL) {
        page_error(call->page, 503, "there is not enough memory now: try again later");
        return;
    }
    struct cache_name name = cache_call_name_of(call, url);
    struct object *object = object_new(name.key, name.url, &request, response, &freshness, body);
    body_release(&body);
    struct cache_arrival arrival = {.since = cache_now(call->cache)};
    struct disk_moment since = disk_now(call->disk);
    if (!cache_insert(call->cache, object, &arrival))
        page_error(call->page, 409, "the object was purged at the same moment: repeat the request");
    else if (!is_on_disk(call, object, &since))
        page_error(call->page, 500,
                   "the object is in the cache now, but a disk could not store it or is too small "
                   "for it, so a restart would undo it: see the error log, and repeat the request");
    else
        page_json(call->page, 200,
                  json_pack("{s:o}", "stored", cache_object_page_json(call, object)));
    object_release(&object);
}

/* Such an object would evict everything and then itself. */
static bool too_large(const struct cache_call *call) {
    struct cache_statistics statistics;
    cache_statistics(call->cache, &statistics);
    if (call->request->body.length < statistics.limit)
        return false;
    page_error(call->page, 413, "the response is larger than the whole cache");
    return true;
}

/* RFC 9110 §6.6.1: "A recipient with a clock that receives a response message without a Date header
 * field MUST record the time it was received and append a corresponding Date header field". */
static void date_response(struct http_head *response, char date[HTTP_DATE_LENGTH + 1]) {
    if (http_head_has(response, HTTP_DATE))
        return;
    http_date_format(date, time(NULL));
    http_head_set(response, HTTP_DATE, slice_make(date, HTTP_DATE_LENGTH));
}

/* A head that announces another body was written wrongly, or is not meant as one head. */
static bool announces(const struct http_head *response, size_t length) {
    uint64_t announced;
    unsigned count = 0;
    const struct http_field *field = http_head_find(response, HTTP_CONTENT_LENGTH);
    for (; field != NULL;
         field = http_head_find_next(response, HTTP_CONTENT_LENGTH, field), count++)
        if (!slice_to_uint64(field->value, &announced) || announced != length)
            return false;
    return count <= 1;
}

void cache_object_page_inject(const struct cache_call *call) {
    struct http_head response;
    struct slice message = call->request->body;
    char *url, date[HTTP_DATE_LENGTH + 1];
    size_t length;
    if (too_large(call) || !cache_call_take_url(call, &url, &length))
        return;
    ssize_t used = http_head_parse_response(&response, message.base, message.length, 0);
    if (used <= 0 || response.status < 200 || response.status == 206 || response.status == 304)
        page_error(call->page, 400, "the body must be a whole final response: HTTP/1.1 200 OK ...");
    else if (!announces(&response, message.length - (size_t)used))
        page_error(call->page, 400, "the response's Content-Length is not the length of its body");
    else {
        http_head_remove_hop_by_hop(&response);
        http_head_remove(&response, HTTP_TRANSFER_ENCODING);
        date_response(&response, date);
        cache_object_page_store(call, slice_make(url, length), &response,
                                slice_make(message.base + used, message.length - (size_t)used));
    }
    free(url);
}
