#include "admin/cache_object_page.h"

#include "base/assert.h"
#include "record/mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARIANTS_MOST = 1000 };

/* Of those to whom the content belongs, not of who looks. */
static json_t *object_masked_text(struct slice fields) {
    size_t length;
    char *masked = record_mask_head(fields, &length);
    json_t *json = cache_call_text(slice_make(masked, masked != NULL ? length : 0));
    free(masked);
    return json;
}

json_t *cache_object_page_json(const struct cache_call *call, struct object *object) {
    const struct content_store store = cache_call_store(call);
    struct stored_facts facts;
    stored_look(&store, object, &facts);
    return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o, s:s}", "url",
                     cache_call_text(facts.url), "state", facts.state, "status",
                     (json_int_t)facts.status, "size", (json_int_t)facts.size, "memory",
                     (json_int_t)facts.memory, "age", (json_int_t)facts.age, "fresh_for",
                     (json_int_t)facts.left, "stored", (json_int_t)facts.stored, "hits",
                     (json_int_t)facts.hits, "pinned", (int)facts.pinned, "on_disk",
                     (int)facts.on_disk, "vary", object_masked_text(facts.vary), "services",
                     facts.services);
}

void cache_object_page_show(const struct cache_call *call) {
    const struct content_store store = cache_call_store(call);
    struct cache_walk walk = {0};
    struct cache_name name;
    if (!cache_call_take_name(call, &name))
        return;
    json_t *variants = json_array();
    stored_variants(&store, &name, &walk);
    for (size_t i = 0; i < walk.count; i++) {
        json_t *json = cache_object_page_json(call, walk.objects[i]);
        json_object_set_new(json, "head", object_masked_text(object_head(walk.objects[i])));
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

/* The content of a variant as an HTTP message: head, Content-Length, empty line, body. */
struct content {
    unsigned magic;
#define CONTENT_MAGIC 0x43545854u
    struct object *object; /* referenced */
    char *head;
    size_t head_length;
};

static ssize_t content_read(void *arg, uint64_t at, char *bytes, size_t most) {
    struct content *content;
    CAST_OBJ(content, arg, CONTENT_MAGIC);
    if (at < content->head_length) {
        size_t left = content->head_length - (size_t)at, length = left < most ? left : most;
        memcpy(bytes, content->head + at, length);
        return (ssize_t)length;
    }
    uint64_t begin = at - content->head_length, left = body_length(content->object->body) - begin;
    size_t length = left < most ? (size_t)left : most;
    return body_copy(content->object->body, begin, bytes, length) ? (ssize_t)length : -1;
}

static void content_release(void *arg) {
    struct content *content;
    CAST_OBJ(content, arg, CONTENT_MAGIC);
    object_release(&content->object);
    free(content->head);
    FREE_OBJ(content);
}

static struct content *content_new(struct object *object) {
    struct content *content;
    struct slice head = object_head(object);
    ALLOC_OBJ(content, CONTENT_MAGIC);
    content->object = object_reference(object);
    int length = asprintf(&content->head, "%.*sContent-Length: %llu\r\n\r\n", SLICE_PRINT(head),
                          (unsigned long long)body_length(object->body));
    ASSERT(length >= 0);
    content->head_length = (size_t)length;
    return content;
}

/* So that a body which can't be read is told with a status. */
static bool begin_can_be_read(struct body *body) {
    char first;
    return body_length(body) == 0 || body_copy(body, 0, &first, 1);
}

static void write_message(struct page *page, struct object *object) {
    if (!begin_can_be_read(object->body)) {
        page_error(page, 500, "the object can't be read from disk; see the error log");
        return;
    }
    struct content *content = content_new(object);
    page->source = (struct page_source){.arg = content,
                                        .length = content->head_length + body_length(object->body),
                                        .read = content_read,
                                        .release = content_release};
    page->status = 200;
    page->content_type = "application/http";
}

void cache_object_page_content(const struct cache_call *call) {
    const struct content_store store = cache_call_store(call);
    struct cache_walk walk = {0};
    struct cache_name name;
    uint64_t variant;
    if (!cache_call_take_name(call, &name) ||
        !cache_call_take_number(call, "variant", 0, VARIANTS_MOST, &variant))
        return;
    stored_variants(&store, &name, &walk);
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
