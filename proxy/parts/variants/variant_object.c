#include "variants/variant_object.h"

#include "cache/vary.h"
#include "variants/adapted_variant.h"

/* The selector of a variant: that of the stored response, then the fields in remember_by, and
 * the fields that the services name themselves (`theirs`). */
static struct slice variant_object_selector(struct transaction *transaction,
                                            const struct object *of, struct slice theirs) {
    const struct adapted_variant *variant = variant_of(transaction);
    struct http_head *vary = arena_alloc(&transaction->arena, sizeof *vary);
    http_head_init(vary);
    for (unsigned i = 0; i < variant->count; i++)
        for (char **by = variant->services[i]->settings->remember_by; by != NULL && *by != NULL;
             by++)
            if (strcmp(*by, "none") != 0)
                http_head_add(vary, SLICE("Vary"), slice_from(*by));
    if (theirs.length > 0)
        http_head_add(vary, SLICE("Vary"), theirs);
    struct slice first = object_selector(of);
    size_t length = vary_write(transaction->request.head, vary, NULL, 0);
    char *text = arena_alloc(&transaction->arena, first.length + length + 1);
    memcpy(text, first.base, first.length);
    vary_write(transaction->request.head, vary, text + first.length, length);
    return slice_make(text, first.length + length);
}

/* Lists the names in the lines of a selector. */
static struct slice fields_of(struct arena *arena, const char *line, const char *end) {
    struct slice fields = SLICE("");
    const char *colon, *line_end;
    for (; line < end && (line_end = memchr(line, '\n', (size_t)(end - line))) != NULL;
         line = line_end + 1)
        if ((colon = memchr(line, ':', (size_t)(line_end - line))) != NULL)
            fields =
                arena_concat(arena, fields, SLICE(", "), slice_make(line, (size_t)(colon - line)));
    return fields;
}

/* The fields that the services named for an earlier variant of this response; empty when no
 * variant is stored. */
static struct slice known_fields(struct transaction *transaction) {
    const struct object *of = transaction_object(transaction);
    struct slice fields = SLICE("");
    struct cache_walk walk = {0};
    cache_walk_name(transaction->host->cache, &walk, &transaction->caching.name);
    for (size_t i = 0; i < walk.count && fields.length == 0; i++) {
        const struct object *made = walk.objects[i];
        struct slice selector = object_selector(made);
        if (object_chain(made) == variant_of(transaction)->chain && object_is_made_of(made, of))
            fields = fields_of(&transaction->arena, selector.base + object_selector(of).length,
                               selector.base + selector.length);
    }
    cache_walk_end(&walk);
    return fields;
}

struct cache_name variant_object_fetch_name(struct transaction *transaction) {
    char hex[SLICE_HEX];
    struct slice url = transaction->caching.name.url;
    struct slice selector = variant_object_selector(transaction, transaction_object(transaction),
                                                    known_fields(transaction));
    slice_put_hex(hex, variant_of(transaction)->chain);
    return cache_name_of(arena_concat(&transaction->arena, url, SLICE("\n"),
                                      slice_make(hex, SLICE_HEX), SLICE("\n"), selector));
}

static struct slice variant_object_field(struct transaction *transaction,
                                         const struct object *object, enum http_name id) {
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    object_parse_head(object, head);
    return http_head_joined_value(head, id, &transaction->arena);
}

bool variant_object_has_other_control(struct transaction *transaction, const struct object *object,
                                      const struct object *of) {
    return !slice_equal(variant_object_field(transaction, object, HTTP_CACHE_CONTROL),
                        variant_object_field(transaction, of, HTTP_CACHE_CONTROL));
}

struct object *variant_object_renewed(struct transaction *transaction, const struct object *object,
                                      const struct object *of) {
    static const enum http_name kept[] = {HTTP_DATE, HTTP_EXPIRES};
    struct http_head *head = arena_alloc(&transaction->arena, sizeof *head);
    object_parse_head(object, head);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct slice value = variant_object_field(transaction, of, kept[i]);
        if (value.length > 0)
            http_head_set(head, kept[i], value);
    }
    struct freshness freshness = object_freshness(of);
    struct object_provenance provenance = object_provenance(object);
    provenance.source = object_provenance(of).source;
    struct slice selector = object_selector(object);
    struct object *renewed =
        object_new_made(of->key, object_url(of), transaction->request.head, head, &freshness,
                        object->body, &provenance, &selector);
    renewed->scope = object->scope;
    return renewed;
}

void variant_object_set_validator(struct transaction *transaction, struct http_head *head,
                                  const struct object_provenance *provenance) {
    const struct object *of = variant_of(transaction)->of;
    struct slice etag = object_etag(of);
    http_head_remove(head, HTTP_LAST_MODIFIED);
    if (http_head_has(head, HTTP_ETAG))
        return;
    if (slice_starts_with(etag, SLICE("W/")))
        etag = slice_make(etag.base + 2, etag.length - 2);
    uint32_t mark = provenance->chain ^ provenance->tag;
    if (etag.length >= 2 && etag.base[0] == '"')
        http_head_set(head, HTTP_ETAG,
                      arena_printf(&transaction->arena, "W/%.*s-%08x\"", (int)etag.length - 1,
                                   etag.base, mark));
    else if (object_last_modified(of) != 0)
        http_head_set(head, HTTP_ETAG,
                      arena_printf(&transaction->arena, "W/\"%lx-%08x\"",
                                   (unsigned long)object_last_modified(of), mark));
}

void variant_object_keep_tags(struct transaction *transaction, struct http_head *head) {
    static const char *const fields[] = {"Surrogate-Key", "Cache-Tag"};
    struct http_head *stored = arena_alloc(&transaction->arena, sizeof *stored);
    object_parse_head(variant_of(transaction)->of, stored);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const struct http_field *field = http_head_find_text(stored, slice_from(fields[i]));
        if (field == NULL)
            continue;
        http_head_remove_text(head, slice_from(fields[i]));
        http_head_add(head, field->name, field->value);
    }
}

bool variant_object_freshness(struct transaction *transaction, const struct http_head *head,
                              struct freshness *freshness) {
    const struct object *of = variant_of(transaction)->of;
    struct freshness its_own;
    *freshness = object_freshness(of);
    struct slice control = http_head_joined_value(head, HTTP_CACHE_CONTROL, &transaction->arena);
    if (slice_equal(control, variant_object_field(transaction, of, HTTP_CACHE_CONTROL)))
        return vary_usable(head);
    struct freshness_rules rules = caching_freshness_rules(transaction, head);
    freshness_of_response(&its_own, &rules, transaction->request.head, head,
                          (time_t)of->response_time, (time_t)of->response_time);
    if (its_own.lifetime < freshness->lifetime)
        freshness->lifetime = its_own.lifetime;
    return its_own.storable && vary_usable(head);
}

struct object *variant_object_new(struct transaction *transaction, const struct http_head *head,
                                  enum object_kind kind, const struct freshness *freshness,
                                  struct body *body) {
    const struct adapted_variant *variant = variant_of(transaction);
    const struct object_provenance provenance = {
        .kind = kind,
        .chain = variant->chain,
        .tag = chain_tags_tag(&variant->mark),
        .source = object_provenance(variant->of).source,
    };
    struct slice theirs = http_head_joined_value(head, HTTP_VARY, &transaction->arena);
    struct slice selector = variant_object_selector(transaction, variant->of, theirs);
    struct object *object =
        object_new_made(variant->of->key, object_url(variant->of), transaction->request.head, head,
                        freshness, body, &provenance, &selector);
    object->scope = variant->of->scope;
    return object;
}
