#include "transaction/transaction.h"

#include "cache/key.h"

/* What an unsafe method may have changed is not served any more (RFC 9111 §4.4): the target, and
 * what Location and Content-Location name on the same origin. */

/* The directory of the request's path, with the slash. */
static struct slice directory(const struct transaction *transaction) {
    struct slice path = url_path(&transaction->request.url);
    const char *slash = path.length > 0 ? memrchr(path.base, '/', path.length) : NULL;
    return slash == NULL ? SLICE("/") : slice_make(path.base, (size_t)(slash + 1 - path.base));
}

/* A reference made absolute (RFC 3986 §5.2); its dot segments go when it is normalised. */
static struct slice make_absolute(struct transaction *transaction, struct slice reference) {
    struct arena *arena = &transaction->arena;
    struct url url;
    if (url_parse(&url, reference))
        return reference;
    if (slice_starts_with(reference, SLICE("//")))
        return arena_printf(arena, "http:%.*s", SLICE_PRINT(reference));
    struct slice before =
        slice_starts_with(reference, SLICE("/")) ? slice_make("", 0) : directory(transaction);
    return arena_printf(arena, "http://%.*s%.*s%.*s", SLICE_PRINT(transaction->request.authority),
                        SLICE_PRINT(before), SLICE_PRINT(reference));
}

static struct cache_name invalidate_name_of(struct transaction *transaction,
                                            struct slice url_text) {
    return cache_name_of(cache_url_by_settings(url_text, transaction->settings,
                                               &transaction->exchange->ends->client,
                                               &transaction->arena));
}

struct slice request_resolve(struct transaction *transaction, struct slice reference) {
    struct url url;
    if (reference.length == 0)
        return slice_make("", 0);
    struct slice absolute = make_absolute(transaction, reference);
    size_t capacity = absolute.length + 16;
    char *text = arena_alloc(&transaction->arena, capacity);
    return slice_make(text, url_parse(&url, absolute) ? url_normalise(&url, text, capacity) : 0);
}

static void remove_stored(struct transaction *transaction, const struct cache_name *name) {
    cache_remove_name(transaction->host->cache, name);
    disk_remove(transaction->host->disk, name, NULL);
}

static void invalidate_reference(struct transaction *transaction, struct slice reference) {
    struct url url;
    struct slice text = request_resolve(transaction, reference);
    /* Another origin's objects are not this one's to invalidate. */
    if (text.length > 0 && url_parse(&url, text) &&
        slice_equal(url.host, transaction->request.url.host) &&
        url.port == transaction->request.url.port) {
        struct cache_name name = invalidate_name_of(transaction, text);
        remove_stored(transaction, &name);
    }
}

/* What the response itself brings is newer than what it makes stale, unless somebody else has
 * removed the same since the origin was asked. */
void invalidate_stored(struct transaction *transaction) {
    struct cache *cache = transaction->host->cache;
    const struct http_head *response = transaction->response.head;
    if (http_method_is_safe(transaction->request.head->method_id) || response->status < 200 ||
        response->status >= 400)
        return;
    struct cache_name name = invalidate_name_of(transaction, transaction->request.url_text);
    bool disturbed = purges_has_key(cache_purges(cache), name.key, transaction->storing.since.keys);
    remove_stored(transaction, &name);
    invalidate_reference(transaction, http_head_value(response, HTTP_LOCATION));
    invalidate_reference(transaction, http_head_value(response, HTTP_CONTENT_LOCATION));
    if (!disturbed)
        transaction->storing.since.keys = cache_now(cache).keys;
}
