#include "adapt/representation.h"

static const enum http_name digests[REPRESENTATION_DIGESTS] = {
    HTTP_CONTENT_MD5, HTTP_CONTENT_DIGEST, HTTP_REPR_DIGEST, HTTP_DIGEST};

void representation_note(struct representation *before, const struct http_head *head) {
    before->etag = http_head_value(head, HTTP_ETAG);
    before->coded = http_head_has(head, HTTP_CONTENT_ENCODING);
    for (unsigned i = 0; i < REPRESENTATION_DIGESTS; i++)
        before->digests[i] = http_head_value(head, digests[i]);
}

static void representation_weaken_etag(struct http_head *head, struct arena *arena) {
    struct slice etag = http_head_value(head, HTTP_ETAG);
    if (etag.base != NULL && !slice_starts_with(etag, SLICE("W/")))
        http_head_set(head, HTTP_ETAG, arena_concat(arena, SLICE("W/"), etag));
}

/* Returns the list without the name; empty when nothing else was in it. */
static struct slice without(struct slice list, struct slice name, struct arena *arena) {
    struct slice rest = list, element, kept = SLICE("");
    while (slice_next_element(&rest, &element))
        if (!slice_equal_nocase(element, name))
            kept = kept.length == 0 ? element : arena_concat(arena, kept, SLICE(", "), element);
    return kept;
}

static struct slice vary_of(const struct http_head *head, struct arena *arena) {
    struct slice all = http_head_value(head, HTTP_VARY);
    const struct http_field *field = http_head_find(head, HTTP_VARY);
    while (field != NULL && (field = http_head_find_next(head, HTTP_VARY, field)) != NULL)
        all = arena_concat(arena, all, SLICE(", "), field->value);
    return all;
}

static void vary_no_longer(struct http_head *head, struct slice name, struct arena *arena) {
    if (!http_head_has_token(head, HTTP_VARY, name))
        return;
    struct slice kept = without(vary_of(head, arena), name, arena);
    http_head_remove(head, HTTP_VARY);
    if (kept.length > 0)
        http_head_set(head, HTTP_VARY, kept);
}

static void vary_too(struct http_head *head, struct slice name, struct arena *arena) {
    if (http_head_has_token(head, HTTP_VARY, name) ||
        http_head_has_token(head, HTTP_VARY, SLICE("*")))
        return;
    struct slice all = vary_of(head, arena);
    http_head_remove(head, HTTP_VARY);
    http_head_set(head, HTTP_VARY,
                  arena_concat(arena, all, all.length > 0 ? SLICE(", ") : SLICE(""), name));
}

void representation_untold(struct http_head *head, bool decoded, struct arena *arena) {
    if (decoded)
        http_head_remove(head, HTTP_CONTENT_ENCODING);
    http_head_remove(head, HTTP_CONTENT_LENGTH);
    http_head_remove(head, HTTP_ACCEPT_RANGES);
    for (unsigned i = 0; i < REPRESENTATION_DIGESTS; i++)
        http_head_remove(head, digests[i]);
    representation_weaken_etag(head, arena);
}

void representation_decoded(struct http_head *head, struct arena *arena) {
    representation_untold(head, true, arena);
    vary_no_longer(head, SLICE("Accept-Encoding"), arena);
}

static bool same(struct slice now, struct slice before) {
    return now.base != NULL && before.base != NULL && slice_equal(now, before);
}

void representation_changed(struct http_head *head, const struct representation *before,
                            struct arena *arena) {
    if (same(http_head_value(head, HTTP_ETAG), before->etag))
        representation_weaken_etag(head, arena);
    for (unsigned i = 0; i < REPRESENTATION_DIGESTS; i++)
        if (same(http_head_value(head, digests[i]), before->digests[i]))
            http_head_remove(head, digests[i]);
    http_head_remove(head, HTTP_ACCEPT_RANGES);
    if (http_head_has(head, HTTP_CONTENT_ENCODING) && !before->coded)
        vary_too(head, SLICE("Accept-Encoding"), arena);
}
