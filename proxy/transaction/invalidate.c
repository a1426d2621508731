#include "transaction/transaction.h"

#include "cache/key.h"

/* What an unsafe method may have changed is not served any more (RFC 9111 §4.4): the target, and
 * what Location and Content-Location name on the same origin. */

/* The directory of the request's path, with the slash. */
static struct slice directory(const struct transaction *transaction) {
    struct slice path = url_path(&transaction->url);
    const char *slash = path.length > 0 ? memrchr(path.base, '/', path.length) : NULL;
    return slash == NULL ? SLICE("/") : slice_make(path.base, (size_t)(slash + 1 - path.base));
}

/* A reference made absolute (RFC 3986 §5.2, without dot segments, which caches do not resolve
 * either). */
static struct slice resolve(struct transaction *transaction, struct slice reference) {
    struct arena *arena = &transaction->arena;
    struct url url;
    if (url_parse(&url, reference))
        return reference;
    if (slice_starts_with(reference, SLICE("//")))
        return arena_printf(arena, "http:%.*s", SLICE_PRINT(reference));
    struct slice before =
        slice_starts_with(reference, SLICE("/")) ? slice_make("", 0) : directory(transaction);
    return arena_printf(arena, "http://%.*s%.*s%.*s", SLICE_PRINT(transaction->authority),
                        SLICE_PRINT(before), SLICE_PRINT(reference));
}

/* What is stored of a URL, by the key that a GET of it has. */
static void remove_stored(struct transaction *transaction, struct slice url_text) {
    struct cache_key key = cache_key_by_settings(url_text, transaction->settings,
                                                 &transaction->exchange->client->address);
    cache_remove_key(transaction->host->cache, key);
}

static void invalidate_reference(struct transaction *transaction, struct slice reference) {
    struct url url;
    if (reference.length == 0)
        return;
    struct slice absolute = resolve(transaction, reference);
    size_t capacity = absolute.length + 16;
    char *text = arena_alloc(&transaction->arena, capacity);
    size_t length = url_parse(&url, absolute) ? url_normalise(&url, text, capacity) : 0;
    /* Another origin's objects are not this one's to invalidate. */
    if (length == 0 || !url_parse(&url, slice_make(text, length)) ||
        !slice_equal(url.host, transaction->url.host) || url.port != transaction->url.port)
        return;
    remove_stored(transaction, slice_make(text, length));
}

void transaction_invalidate(struct transaction *transaction) {
    unsigned status = transaction->response->status;
    if (http_method_is_safe(transaction->request->method_id) || status < 200 || status >= 400)
        return;
    remove_stored(transaction, transaction->url_text);
    invalidate_reference(transaction, http_head_value(transaction->response, HTTP_LOCATION));
    invalidate_reference(transaction,
                         http_head_value(transaction->response, HTTP_CONTENT_LOCATION));
}
