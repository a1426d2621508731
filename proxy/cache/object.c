#include "cache/object.h"

#include "base/assert.h"
#include "cache/vary.h"
#include "http/date.h"

#include <stdio.h>
#include <xxhash.h>

struct cache_key cache_key_of(struct slice url) {
    XXH128_hash_t hash = XXH3_128bits(url.base, url.length);
    return (struct cache_key){hash.high64, hash.low64};
}

/* Fields that belong to a delivery rather than to what is stored. */
static bool made_at_delivery(enum http_name id) {
    return id == HTTP_AGE || id == HTTP_CONTENT_LENGTH || id == HTTP_CONNECTION ||
           id == HTTP_TRANSFER_ENCODING || id == HTTP_TRAILER || id == HTTP_KEEP_ALIVE ||
           id == HTTP_PROXY_CONNECTION;
}

static size_t put(char *at, struct slice text) {
    if (at != NULL && text.length > 0)
        memcpy(at, text.base, text.length);
    return text.length;
}

/* Writes the head when `out` is not NULL; returns its length. */
static size_t write_head(const struct http_head *response, char *out) {
    char line[32];
    size_t length = 0;
#define PUT(text) length += put(out == NULL ? NULL : out + length, (text))
    int start = snprintf(line, sizeof line, "HTTP/1.1 %u ", response->status);
    PUT(slice_make(line, (size_t)start));
    PUT(response->reason);
    PUT(SLICE("\r\n"));
    for (unsigned i = 0; i < response->field_count; i++) {
        const struct http_field *field = &response->fields[i];
        if (made_at_delivery(field->id))
            continue;
        PUT(field->name);
        PUT(SLICE(": "));
        PUT(field->value);
        PUT(SLICE("\r\n"));
    }
#undef PUT
    return length;
}

static const char *const tag_fields[] = {"surrogate-key", "cache-tag"};

static bool is_tag_field(struct slice name) {
    return slice_equal_nocase(name, slice_from(tag_fields[0])) ||
           slice_equal_nocase(name, slice_from(tag_fields[1]));
}

static bool names_tags(const struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++)
        if (is_tag_field(head->fields[i].name))
            return true;
    return false;
}

static bool separates_tags(char c) {
    return c == ' ' || c == '\t' || c == ',';
}

static bool has_word(struct slice list, struct slice word) {
    const char *at = list.base, *end = list.base + list.length;
    while (at < end) {
        const char *begin = at;
        while (at < end && !separates_tags(*at))
            at++;
        if (at > begin && slice_equal(slice_make(begin, (size_t)(at - begin)), word))
            return true;
        at++;
    }
    return false;
}

bool object_has_tag(const struct object *object, struct slice tag) {
    struct http_head head;
    if (!object->tagged)
        return false;
    object_parse_head(object, &head);
    for (unsigned i = 0; i < head.field_count; i++)
        if (is_tag_field(head.fields[i].name) && has_word(head.fields[i].value, tag))
            return true;
    return false;
}

struct object *object_new(struct cache_key key, struct slice url, const struct http_head *request,
                          const struct http_head *response, const struct freshness *freshness,
                          struct body *body) {
    size_t head_length = write_head(response, NULL);
    size_t vary_length = vary_write(request, response, NULL, 0);
    size_t length = head_length + vary_length + url.length;
    struct object *object = xmalloc(sizeof *object + length);
    memset(object, 0, sizeof *object);
    object->magic = OBJECT_MAGIC;
    atomic_init(&object->references, 1);
    object->key = key;
    object->status = response->status;
    object->freshness = *freshness;
    object->body = body_reference(body);
    list_init(&object->sieve);
    /* The URL first: searching it, PCRE2's machine code reads a few bytes past its end. */
    memcpy(object->bytes, url.base, url.length);
    object->url = slice_make(object->bytes, url.length);
    char *head = object->bytes + url.length, *vary = head + head_length;
    object->head = slice_make(head, write_head(response, head));
    object->vary = slice_make(vary, vary_write(request, response, vary, vary_length));
    object->tagged = names_tags(response);
    struct slice modified = http_head_value(response, HTTP_LAST_MODIFIED);
    if (modified.base == NULL || !http_date_parse(modified, &object->last_modified))
        object->last_modified = 0;
    struct slice date = http_head_value(response, HTTP_DATE);
    object->changed_by = object->last_modified;
    if (object->changed_by == 0 && !http_date_parse(date, &object->changed_by))
        object->changed_by = freshness->response_time;
    struct slice etag = http_head_value(response, HTTP_ETAG);
    if (etag.length > 0) {
        struct http_head stored;
        object_parse_head(object, &stored);
        object->etag = http_head_value(&stored, HTTP_ETAG);
    }
    object->cost = sizeof *object + length;
    return object;
}

struct object *object_with_freshness(const struct object *object,
                                     const struct freshness *freshness) {
    size_t length = object->head.length + object->vary.length + object->url.length;
    struct object *copy = xmalloc(sizeof *copy + length);
    memset(copy, 0, sizeof *copy);
    memcpy(copy->bytes, object->bytes, length);
    copy->magic = OBJECT_MAGIC;
    atomic_init(&copy->references, 1);
    atomic_init(&copy->hits, atomic_load_explicit(&object->hits, memory_order_relaxed));
    copy->key = object->key;
    copy->status = object->status;
    copy->freshness = *freshness;
    copy->body = body_reference(object->body);
    copy->last_modified = object->last_modified;
    copy->changed_by = object->changed_by;
    copy->tagged = object->tagged;
    copy->scope = object->scope;
    list_init(&copy->sieve);
    copy->url = slice_make(copy->bytes, object->url.length);
    copy->head = slice_make(copy->bytes + object->url.length, object->head.length);
    copy->vary = slice_make(copy->head.base + object->head.length, object->vary.length);
    if (object->etag.base != NULL)
        copy->etag =
            slice_make(copy->bytes + (object->etag.base - object->bytes), object->etag.length);
    copy->cost = sizeof *copy + length;
    return copy;
}

struct object *object_reference(struct object *object) {
    CHECK_OBJ(object, OBJECT_MAGIC);
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
    return object;
}

void object_release(struct object **objectp) {
    struct object *object = *objectp;
    *objectp = NULL;
    if (object == NULL)
        return;
    CHECK_OBJ(object, OBJECT_MAGIC);
    if (atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) != 1)
        return;
    ASSERT(!object->indexed);
    body_release(&object->body);
    FREE_OBJ(object);
}

void object_parse_head(const struct object *object, struct http_head *head) {
    /* The stored head lacks the empty line: parse the status line by hand, the fields one by one.
     */
    http_head_init(head);
    struct slice rest = object->head;
    head->version = 11;
    head->status = object->status;
    const char *end = memchr(rest.base, '\n', rest.length);
    ASSERT(end != NULL && (size_t)(end - rest.base) >= sizeof "HTTP/1.1 200 \r" - 1);
    const char *reason = rest.base + sizeof "HTTP/1.1 200 " - 1;
    head->reason = slice_make(reason, (size_t)(end - 1 - reason));
    rest.length -= (size_t)(end + 1 - rest.base);
    rest.base = end + 1;
    while (rest.length > 0) {
        end = memchr(rest.base, '\n', rest.length);
        const char *colon = memchr(rest.base, ':', rest.length);
        ASSERT(end != NULL && colon != NULL && colon < end);
        struct slice value = slice_make(colon + 2, (size_t)(end - 1 - (colon + 2)));
        http_head_add(head, slice_make(rest.base, (size_t)(colon - rest.base)), value);
        rest.length -= (size_t)(end + 1 - rest.base);
        rest.base = end + 1;
    }
}

bool object_matches(const struct object *object, const struct http_head *request,
                    enum object_scope scope) {
    return (object->scope == scope || object->scope == OBJECT_FOR_ALL) &&
           vary_matches(object->vary, request);
}

bool object_same_variant(const struct object *a, const struct object *b) {
    return a->scope == b->scope && slice_equal(a->vary, b->vary);
}

/* A 304 does not speak for these: they describe the stored bytes. */
static bool kept_from_stored(enum http_name id) {
    return id == HTTP_CONTENT_LENGTH || id == HTTP_CONTENT_ENCODING || id == HTTP_CONTENT_RANGE ||
           id == HTTP_CONTENT_MD5 || id == HTTP_ETAG || made_at_delivery(id);
}

void object_merge_head(const struct object *object, const struct http_head *not_modified,
                       struct http_head *merged) {
    object_parse_head(object, merged);
    for (unsigned i = 0; i < not_modified->field_count; i++)
        if (!kept_from_stored(not_modified->fields[i].id))
            http_head_remove_text(merged, not_modified->fields[i].name);
    for (unsigned i = 0; i < not_modified->field_count; i++)
        if (!kept_from_stored(not_modified->fields[i].id))
            http_head_add(merged, not_modified->fields[i].name, not_modified->fields[i].value);
    const struct http_field *age = http_head_find(not_modified, HTTP_AGE);
    if (age != NULL)
        http_head_add(merged, age->name, age->value);
}
