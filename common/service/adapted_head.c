#include "service/adapted_head.h"

bool adapted_head_is_identity(const struct http_head *head) {
    const struct http_field *field = http_head_find(head, HTTP_CONTENT_ENCODING);
    for (; field != NULL; field = http_head_find_next(head, HTTP_CONTENT_ENCODING, field)) {
        struct slice rest = field->value, coding;
        while (slice_next_element(&rest, &coding))
            if (!slice_equal_nocase(coding, SLICE("identity")))
                return false;
    }
    return true;
}

bool adapted_head_allowed(const struct service_exchange *exchange) {
    const struct http_head *response = exchange->head;
    return exchange->point == SERVICE_RESPONSE && exchange->has_body && response->status == 200 &&
           exchange->request->method_id == HTTP_METHOD_GET &&
           !http_head_has(response, HTTP_CONTENT_RANGE) &&
           !http_head_has_token(response, HTTP_CACHE_CONTROL, SLICE("no-transform")) &&
           !http_head_has_token(exchange->request, HTTP_CACHE_CONTROL, SLICE("no-transform"));
}

static void adapted_head_weaken_etag(struct service_exchange *exchange) {
    struct slice etag = http_head_value(exchange->head, HTTP_ETAG);
    if (etag.base == NULL || slice_starts_with(etag, SLICE("W/")))
        return;
    http_head_set(exchange->head, HTTP_ETAG, arena_concat(exchange->arena, SLICE("W/"), etag));
}

void adapted_head_body_changed(struct service_exchange *exchange) {
    adapted_head_weaken_etag(exchange);
    http_head_remove(exchange->head, HTTP_ACCEPT_RANGES);
    http_head_remove(exchange->head, HTTP_CONTENT_MD5);
    http_head_remove(exchange->head, HTTP_DIGEST);
    http_head_remove(exchange->head, HTTP_CONTENT_DIGEST);
    http_head_remove(exchange->head, HTTP_REPR_DIGEST);
}

void adapted_head_add_vary(struct service_exchange *exchange, struct slice name) {
    struct http_head *head = exchange->head;
    const struct http_field *field = http_head_find(head, HTTP_VARY);
    if (http_head_has_token(head, HTTP_VARY, name) ||
        http_head_has_token(head, HTTP_VARY, SLICE("*")))
        return;
    struct slice merged = name;
    for (; field != NULL; field = http_head_find_next(head, HTTP_VARY, field))
        if (field->value.length > 0)
            merged = arena_printf(exchange->arena, "%.*s, %.*s", SLICE_PRINT(field->value),
                                  SLICE_PRINT(merged));
    http_head_remove(head, HTTP_VARY);
    http_head_add(head, SLICE("Vary"), merged);
}

void adapted_head_make_private(struct service_exchange *exchange) {
    struct http_head *head = exchange->head;
    struct slice merged = SLICE("private");
    const struct http_field *field = http_head_find(head, HTTP_CACHE_CONTROL);
    for (; field != NULL; field = http_head_find_next(head, HTTP_CACHE_CONTROL, field)) {
        struct slice rest = field->value, directive;
        while (slice_next_element(&rest, &directive)) {
            if (slice_equal_nocase(directive, SLICE("public")) ||
                slice_equal_nocase(directive, SLICE("private")) ||
                slice_starts_with_nocase(directive, SLICE("s-maxage")))
                continue;
            merged = arena_printf(exchange->arena, "%.*s, %.*s", SLICE_PRINT(merged),
                                  SLICE_PRINT(directive));
        }
    }
    http_head_remove(head, HTTP_CACHE_CONTROL);
    http_head_add(head, SLICE("Cache-Control"), merged);
}

uint64_t adapted_head_length(const struct http_head *head) {
    uint64_t length;
    struct slice value = http_head_value(head, HTTP_CONTENT_LENGTH);
    if (value.base == NULL || !slice_to_uint64(value, &length))
        return SERVICE_LENGTH_UNKNOWN;
    return length;
}

struct slice media_type_of(const struct http_head *head) {
    struct slice value = http_head_value(head, HTTP_CONTENT_TYPE);
    size_t length = 0;
    while (length < value.length && value.base[length] != ';')
        length++;
    return slice_trim(slice_make(value.base, length));
}

static bool media_type_matches(struct slice type, struct slice item) {
    if (slice_ends_with_nocase(item, SLICE("/*")))
        return slice_starts_with_nocase(type, slice_make(item.base, item.length - 1));
    if (item.length > 0 && item.base[0] == '+')
        return slice_ends_with_nocase(type, item);
    return slice_equal_nocase(type, item);
}

bool media_type_listed(struct slice type, const struct service_list *list) {
    for (unsigned i = 0; i < list->count; i++)
        if (type.length > 0 && media_type_matches(type, slice_from(list->items[i])))
            return true;
    return false;
}
