#include "admin/cache_page.h"

#include "base/assert.h"
#include "base/log.h"
#include "cache/content.h"
#include "cache/key.h"
#include "http/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LIST_USUAL = 100, LIST_MOST = 1000 };

/* What the calls have in common. */
struct cache_call {
    struct page *page;
    const struct admin_calls *calls;
    const struct page_request *request;
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
};

static const char *argument(const struct cache_call *call, const char *name) {
    const char *value = page_argument(call->request, name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool is_set(const struct cache_call *call, const char *name) {
    const char *value = argument(call, name);
    return value != NULL && strcmp(value, "no") != 0 && strcmp(value, "0") != 0;
}

/* Without a number: `otherwise`. False: an answer has been made. */
static bool take_number(const struct cache_call *call, const char *name, uint64_t otherwise,
                        uint64_t most, uint64_t *number) {
    char reason[100];
    const char *text = argument(call, name);
    *number = otherwise;
    if (text == NULL || (slice_to_uint64(slice_from(text), number) && *number <= most))
        return true;
    snprintf(reason, sizeof reason, "%s must be a number up to %llu", name,
             (unsigned long long)most);
    page_error(call->page, 400, reason);
    return false;
}

/* As requests are normalised; the caller frees it. NULL: no URL. */
static char *normalised(const char *text, size_t *length) {
    struct url url;
    size_t capacity = strlen(text) + 16;
    char *out = xmalloc(capacity);
    *length = url_parse(&url, slice_from(text)) ? url_normalise(&url, out, capacity) : 0;
    if (*length > 0)
        return out;
    free(out);
    return NULL;
}

static bool take_url(const struct cache_call *call, char **url, size_t *length) {
    const char *text = argument(call, "url");
    *url = text == NULL ? NULL : normalised(text, length);
    if (*url == NULL)
        page_error(call->page, 400, "say which: url=http://HOST/PATH, percent-encoded");
    return *url != NULL;
}

/* As the policies have it now; a reload may have left objects under other keys. */
static struct cache_key key_of(const struct cache_call *call, struct slice url) {
    struct settings *settings = call->calls->settings(call->calls->context);
    struct cache_key key = cache_key_by_settings(url, settings, NULL);
    settings_release(&settings);
    return key;
}

static bool take_key(const struct cache_call *call, struct cache_key *key) {
    char *url;
    size_t length;
    if (!take_url(call, &url, &length))
        return false;
    *key = key_of(call, slice_make(url, length));
    free(url);
    return true;
}

/* The variants of a URL, those from disk too. */
static bool take_stored(const struct cache_call *call, struct cache_key *key) {
    if (!take_key(call, key))
        return false;
    disk_load_now(call->disk, *key);
    return true;
}

/* What was changed in memory, as it is now. */
static void keep_on_disk(const struct cache_call *call, struct cache_key key) {
    struct cache_walk walk = {0};
    struct disk_moment since = disk_now(call->disk);
    cache_walk_key(call->cache, &walk, key);
    for (size_t i = 0; i < walk.count; i++)
        disk_store(call->disk, walk.objects[i], &since);
    cache_walk_end(&walk);
}

static void answer_count(const struct cache_call *call, const char *what, uint64_t count) {
    page_json(call->page, 200, json_pack("{s:I}", what, (json_int_t)count));
}

static void not_stored(const struct cache_call *call) {
    page_error(call->page, 404, "nothing is stored for this URL");
}

/* One object. */

/* JSON carries UTF-8 only, heads any bytes. */
static json_t *text_to_json(struct slice text) {
    json_t *json = json_stringn(text.base == NULL ? "" : text.base, text.length);
    if (json != NULL)
        return json;
    char *copy = slice_dup(text);
    for (size_t i = 0; i < text.length; i++)
        if ((unsigned char)copy[i] >= 0x80)
            copy[i] = '?';
    json = json_stringn(copy, text.length);
    free(copy);
    return json == NULL ? json_string("?") : json;
}

static const char *state_of(struct cache *cache, struct object *object,
                            const struct freshness *freshness, int64_t left) {
    enum body_state body = body_state(object->body);
    if (cache_is_banned(cache, object))
        return "banned";
    if (body != BODY_COMPLETE)
        return body == BODY_FAILED ? "failed" : "arriving";
    return freshness->always_revalidate || left <= 0 ? "stale" : "fresh";
}

static json_t *object_to_json(const struct cache_call *call, struct object *object) {
    struct cache *cache = call->cache;
    time_t now = time(NULL);
    struct freshness freshness = object_freshness(object);
    int64_t age = freshness_age(&freshness, now);
    int64_t left = freshness.lifetime - age;
    json_t *json = json_pack(
        "{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o}", "url",
        text_to_json(object_url(object)), "state", state_of(cache, object, &freshness, left),
        "status", (json_int_t)object->status, "size", (json_int_t)body_length(object->body),
        "memory", (json_int_t)object_cost(object), "age", (json_int_t)age, "fresh_for",
        (json_int_t)left, "stored", (json_int_t)object->response_time, "hits",
        (json_int_t)atomic_load_explicit(&object->hits, memory_order_relaxed), "pinned",
        (int)object->pinned, "on_disk", (int)disk_has(call->disk, object->key), "vary",
        text_to_json(object_vary(object)));
    ASSERT(json != NULL);
    return json;
}

static void page_object(const struct cache_call *call) {
    struct cache_walk walk = {0};
    struct cache_key key;
    if (!take_stored(call, &key))
        return;
    json_t *variants = json_array();
    cache_walk_key(call->cache, &walk, key);
    for (size_t i = 0; i < walk.count; i++) {
        json_t *json = object_to_json(call, walk.objects[i]);
        json_object_set_new(json, "head", text_to_json(object_head(walk.objects[i])));
        json_array_append_new(variants, json);
    }
    if (walk.count == 0) {
        json_decref(variants);
        not_stored(call);
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
    ASSERT(out != NULL);
    struct slice head = object_head(object);
    fwrite(head.base, 1, head.length, out);
    fprintf(out, "Content-Length: %llu\r\n\r\n", (unsigned long long)body_length(object->body));
    bool good = write_body(out, object->body);
    ASSERT(fclose(out) == 0);
    if (!good) {
        free(page->text);
        page->text = NULL;
        page_error(page, 500, "it can't be read from disk; see the log");
        return;
    }
    page->status = 200;
    page->content_type = "application/http";
}

static void page_content(const struct cache_call *call) {
    struct cache_walk walk = {0};
    struct cache_key key;
    uint64_t variant;
    if (!take_stored(call, &key) || !take_number(call, "variant", 0, LIST_MOST, &variant))
        return;
    cache_walk_key(call->cache, &walk, key);
    if (variant >= walk.count)
        not_stored(call);
    else if (body_state(walk.objects[variant]->body) == BODY_FAILED)
        page_error(call->page, 500, "it can't be read from disk; see the log");
    else if (body_state(walk.objects[variant]->body) != BODY_COMPLETE)
        page_error(call->page, 409, "it has not arrived yet");
    else
        write_message(call->page, walk.objects[variant]);
    cache_walk_end(&walk);
}

/* Many objects. */

struct chosen {
    struct object_filter filter;
    struct regexes regex;
    char *prefix; /* of filter, when it could be normalised */
};

static void release_chosen(struct chosen *chosen) {
    regexes_release(&chosen->regex);
    free(chosen->prefix);
}

/* False: an answer has been made. */
static bool choose(const struct cache_call *call, struct chosen *chosen) {
    char reason[300];
    size_t length;
    const char *prefix = argument(call, "prefix"), *regex = argument(call, "regex");
    *chosen = (struct chosen){0};
    if (regex != NULL && !regex_check(regex, reason, sizeof reason)) {
        page_error(call->page, 400, reason);
        return false;
    }
    if (regex != NULL) {
        regexes_compile(&chosen->regex, (char *[]){(char *)regex, NULL});
        chosen->filter.regex = &chosen->regex;
        chosen->filter.regex_text = regex;
    }
    chosen->filter.host = slice_from(argument(call, "host"));
    chosen->filter.tag = slice_from(argument(call, "tag"));
    chosen->filter.prefix = slice_from(prefix);
    chosen->prefix = prefix == NULL ? NULL : normalised(prefix, &length);
    if (chosen->prefix != NULL)
        chosen->filter.prefix = slice_make(chosen->prefix, length);
    return true;
}

/* Where a list goes on, as one number: in memory the walk's position, on disk that with a mark and
 * the volume. */
enum { ON_DISK_BIT = 62, VOLUME_SHIFT = 48 };

static uint64_t disk_position(const struct disk_walk *walk) {
    return UINT64_C(1) << ON_DISK_BIT | (uint64_t)walk->volume << VOLUME_SHIFT | walk->position;
}

static bool is_disk_position(uint64_t position, struct disk_walk *walk) {
    walk->volume = (unsigned)(position >> VOLUME_SHIFT) & 0x3fff;
    walk->position = position & ((UINT64_C(1) << VOLUME_SHIFT) - 1);
    return (position >> ON_DISK_BIT & 1) != 0;
}

static bool is_in_memory(const struct cache_call *call, const struct object *object) {
    struct cache_walk walk = {0};
    bool found = false;
    cache_walk_key(call->cache, &walk, object->key);
    for (size_t i = 0; i < walk.count; i++)
        found = found || object_same_variant(walk.objects[i], object);
    cache_walk_end(&walk);
    return found;
}

/* What is on disk only, read one by one; true when that was all. */
static bool list_disk(const struct cache_call *call, const struct chosen *chosen, json_t *objects,
                      size_t limit, struct disk_walk *walk) {
    struct object *object;
    while (json_array_size(objects) < limit) {
        if (disk_walk(call->disk, walk, &object, 1) == 0)
            return true;
        if (object_filter_fits(&chosen->filter, object) && !is_in_memory(call, object))
            json_array_append_new(objects, object_to_json(call, object));
        object_release(&object);
    }
    return false;
}

/* Up to `limit` objects, or a few more: where it stopped has no place within a hash chain. */
static void list(const struct cache_call *call, const struct chosen *chosen, uint64_t after,
                 size_t limit) {
    struct cache_walk walk = {.filter = &chosen->filter, .position = after};
    struct disk_walk disk;
    json_t *objects = json_array(), *next = NULL;
    bool on_disk = is_disk_position(after, &disk);
    if (!on_disk)
        disk = (struct disk_walk){0};
    while (!on_disk && json_array_size(objects) < limit &&
           cache_walk(call->cache, &walk, limit - json_array_size(objects)))
        for (size_t i = 0; i < walk.count; i++)
            json_array_append_new(objects, object_to_json(call, walk.objects[i]));
    if (!on_disk && json_array_size(objects) >= limit)
        next = json_integer((json_int_t)walk.position);
    else if (call->disk != NULL && !list_disk(call, chosen, objects, limit, &disk))
        next = json_integer((json_int_t)disk_position(&disk));
    cache_walk_end(&walk);
    page_json(
        call->page, 200,
        json_pack("{s:o, s:o}", "objects", objects, "next", next == NULL ? json_null() : next));
}

static void page_objects(const struct cache_call *call) {
    struct chosen chosen;
    uint64_t after, limit;
    if (!take_number(call, "after", 0, INT64_MAX, &after) ||
        !take_number(call, "limit", LIST_USUAL, LIST_MOST, &limit) || !choose(call, &chosen))
        return;
    list(call, &chosen, after, limit == 0 ? 1 : (size_t)limit);
    release_chosen(&chosen);
}

static enum purge_action action_of(const struct cache_call *call) {
    return is_set(call, "soft") ? PURGE_STALE : PURGE_REMOVE;
}

static void page_purge(const struct cache_call *call) {
    struct chosen chosen;
    bool narrow = argument(call, "prefix") != NULL || argument(call, "host") != NULL ||
                  argument(call, "tag") != NULL || argument(call, "regex") != NULL;
    if (narrow == is_set(call, "all")) {
        page_error(call->page, 400, "say what: prefix=, host=, tag=, regex=, or else all=yes");
        return;
    }
    if (!choose(call, &chosen))
        return;
    /* The disk first: what is stored from now on does not fall under it. */
    disk_purge(call->disk, &chosen.filter, action_of(call));
    uint64_t count = content_purge(call->cache, &chosen.filter, action_of(call));
    release_chosen(&chosen);
    log_info("%llu cached objects purged by the admin plane", (unsigned long long)count);
    answer_count(call, "purged", count);
}

static void page_delete(const struct cache_call *call) {
    struct cache_key key;
    if (!take_stored(call, &key))
        return;
    uint64_t count = content_purge_key(call->cache, key, action_of(call)), on_disk = 0;
    if (action_of(call) == PURGE_STALE)
        keep_on_disk(call, key);
    else
        on_disk = disk_remove(call->disk, key, NULL);
    count = count > on_disk ? count : on_disk; /* most are at both places */
    disk_flush(call->disk);
    if (count == 0)
        not_stored(call);
    else
        answer_count(call, "purged", count);
}

/* Bans. */

static void add_ban(void *arg, const struct ban *ban) {
    json_array_append_new(arg, json_pack("{s:I, s:o, s:I}", "number", (json_int_t)ban->number,
                                         "regex", text_to_json(slice_from(ban->filter.regex_text)),
                                         "made", (json_int_t)ban->made));
}

static void page_bans(const struct cache_call *call) {
    json_t *bans = json_array();
    bans_each(cache_bans(call->cache), add_ban, bans);
    page_json(call->page, 200, json_pack("{s:o}", "bans", bans));
}

static void page_ban(const struct cache_call *call) {
    char reason[300];
    const char *regex = argument(call, "regex");
    if (regex == NULL) {
        page_error(call->page, 400, "say what: regex=");
        return;
    }
    struct chosen chosen;
    if (!choose(call, &chosen))
        return;
    disk_purge(call->disk, &chosen.filter, PURGE_REMOVE);
    release_chosen(&chosen);
    uint32_t number = cache_ban(call->cache, regex, reason, sizeof reason);
    if (number == 0)
        page_error(call->page, 400, reason);
    else
        answer_count(call, "number", number);
}

/* One URL. */

static void answer_changed(const struct cache_call *call, uint64_t count) {
    if (count == 0)
        not_stored(call);
    else
        answer_count(call, "changed", count);
}

static void page_lifetime(const struct cache_call *call) {
    struct cache_key key;
    uint64_t seconds;
    if (argument(call, "seconds") == NULL) {
        page_error(call->page, 400, "say how long from now: seconds=");
        return;
    }
    if (!take_stored(call, &key) || !take_number(call, "seconds", 0, INT32_MAX, &seconds))
        return;
    uint64_t count = content_set_lifetime(call->cache, key, (int64_t)seconds);
    keep_on_disk(call, key);
    answer_changed(call, count);
}

static void page_pin(const struct cache_call *call) {
    struct cache_key key;
    if (take_stored(call, &key))
        answer_changed(call, content_pin(call->cache, key, true));
}

static void page_unpin(const struct cache_call *call) {
    struct cache_key key;
    if (take_key(call, &key))
        answer_changed(call, content_pin(call->cache, key, false));
}

/* Injection: the body of the call is the response, head and all. */

static bool judge(const struct cache_call *call, const struct http_head *request,
                  const struct http_head *response, struct freshness *freshness) {
    const struct freshness_rules rules = {0};
    uint64_t lifetime;
    time_t now = time(NULL);
    if (!take_number(call, "lifetime", 0, INT32_MAX, &lifetime))
        return false;
    freshness_of_response(freshness, &rules, request, response, now, now);
    if (argument(call, "lifetime") != NULL) {
        freshness->lifetime = freshness->initial_age + (int64_t)lifetime;
        freshness->always_revalidate = false;
    } else if (!freshness->storable) {
        char reason[200];
        snprintf(reason, sizeof reason, "it may not be stored (%s); with lifetime= it is",
                 freshness->reason);
        page_error(call->page, 409, reason);
        return false;
    }
    return true;
}

static void store(const struct cache_call *call, struct slice url, const struct http_head *response,
                  struct slice bytes) {
    struct http_head request;
    struct freshness freshness;
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    if (!judge(call, &request, response, &freshness))
        return;
    struct body *body = body_of_bytes(bytes);
    struct object *object =
        object_new(key_of(call, url), url, &request, response, &freshness, body);
    body_release(&body);
    struct cache_arrival arrival = {.since = cache_now(call->cache)};
    struct disk_moment since = disk_now(call->disk);
    cache_insert(call->cache, object, &arrival);
    disk_store(call->disk, object, &since);
    page_json(call->page, 200, json_pack("{s:o}", "stored", object_to_json(call, object)));
    object_release(&object);
}

/* It would displace everything and then itself. */
static bool too_large(const struct cache_call *call) {
    struct cache_statistics statistics;
    cache_statistics(call->cache, &statistics);
    if (call->request->body.length < statistics.limit)
        return false;
    page_error(call->page, 413, "the cache is not that large");
    return true;
}

static void page_inject(const struct cache_call *call) {
    struct http_head response;
    struct slice message = call->request->body;
    char *url;
    size_t length;
    if (too_large(call) || !take_url(call, &url, &length))
        return;
    ssize_t used = http_head_parse_response(&response, message.base, message.length, 0);
    if (used <= 0 || response.status < 200 || response.status == 206 || response.status == 304)
        page_error(call->page, 400, "the body must be a whole final response: HTTP/1.1 200 OK ...");
    else {
        http_head_remove_hop_by_hop(&response);
        http_head_remove(&response, HTTP_TRANSFER_ENCODING);
        store(call, slice_make(url, length), &response,
              slice_make(message.base + used, message.length - (size_t)used));
    }
    free(url);
}

static const struct cache_route {
    const char *path, *method;
    void (*make)(const struct cache_call *call);
} routes[] = {
    {"/cache/object", "GET", page_object},      {"/cache/object", "PUT", page_inject},
    {"/cache/object", "DELETE", page_delete},   {"/cache/content", "GET", page_content},
    {"/cache/objects", "GET", page_objects},    {"/cache/purge", "POST", page_purge},
    {"/cache/bans", "GET", page_bans},          {"/cache/bans", "POST", page_ban},
    {"/cache/lifetime", "POST", page_lifetime}, {"/cache/pin", "POST", page_pin},
    {"/cache/unpin", "POST", page_unpin},
};

bool cache_page_make(struct page *page, const struct admin_calls *calls,
                     const struct page_request *request) {
    struct cache_call call = {page, calls, request, calls->cache, calls->disk};
    const char *allow = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof *routes && call.cache != NULL; i++) {
        if (strcmp(request->path, routes[i].path) != 0)
            continue;
        if (strcmp(request->method, routes[i].method) == 0) {
            routes[i].make(&call);
            return true;
        }
        allow = allow == NULL                                 ? routes[i].method
                : strcmp(request->path, "/cache/object") == 0 ? "GET, PUT, DELETE"
                                                              : "GET, POST";
    }
    if (allow == NULL)
        return false;
    page->allow = allow;
    page_error(page, 405, "this page has other methods; Allow says which");
    return true;
}
