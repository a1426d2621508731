#include "spans/span.h"

#include "base/assert.h"

enum { ROOM_FIRST = 16 };

struct span_set *span_set_new(const struct trace_context *context) {
    struct span_set *set;
    ALLOC_OBJ(set, SPAN_SET_MAGIC);
    list_init(&set->link);
    arena_init(&set->arena);
    set->context = *context;
    set->context.state = arena_slice(&set->arena, context->state);
    return set;
}

void span_set_free(struct span_set **setp) {
    struct span_set *set = *setp;
    *setp = NULL;
    CHECK_OBJ(set, SPAN_SET_MAGIC);
    list_remove(&set->link);
    arena_release(&set->arena);
    free(set->spans);
    FREE_OBJ(set);
}

static struct slice span_copy(struct span_set *set, struct slice text) {
    if (text.length > SPAN_TEXT_MOST)
        text.length = SPAN_TEXT_MOST;
    return arena_slice(&set->arena, text);
}

struct span *span_set_add(struct span_set *set, struct slice name, enum span_kind kind) {
    CHECK_OBJ(set, SPAN_SET_MAGIC);
    if (set->count == SPANS_MOST)
        return NULL;
    if (set->count == set->room) {
        set->room += set->room == 0 ? ROOM_FIRST : set->room;
        set->spans = xrealloc(set->spans, set->room * sizeof *set->spans);
    }
    struct span *span = &set->spans[set->count++];
    *span = (struct span){.name = span_copy(set, name), .kind = kind};
    return span;
}

static struct span_attribute *put(struct span *span, const char *name) {
    ASSERT(span->attribute_count < SPAN_ATTRIBUTES);
    struct span_attribute *attribute = &span->attributes[span->attribute_count++];
    *attribute = (struct span_attribute){.name = name};
    return attribute;
}

void span_put_text(struct span_set *set, struct span *span, const char *name, struct slice text) {
    if (text.length == 0)
        return;
    struct span_attribute *attribute = put(span, name);
    attribute->is_text = true;
    attribute->text = span_copy(set, text);
}

void span_put_number(struct span *span, const char *name, int64_t number) {
    put(span, name)->number = number;
}

void span_fail(struct span_set *set, struct span *span, const char *error) {
    span->failed = true;
    span->error = span_copy(set, slice_from(error));
}
