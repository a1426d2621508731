#include "cache/conditional.h"

#include "http/date.h"

static struct slice opaque(struct slice etag) {
    return slice_starts_with(etag, SLICE("W/")) ? slice_make(etag.base + 2, etag.length - 2) : etag;
}

static bool none_match(const struct http_head *request, struct slice etag) {
    for (const struct http_field *field = http_head_find(request, HTTP_IF_NONE_MATCH);
         field != NULL; field = http_head_find_next(request, HTTP_IF_NONE_MATCH, field)) {
        struct slice rest = field->value, element;
        while (slice_next_element(&rest, &element)) {
            if (slice_equal(element, SLICE("*")))
                return false;
            if (etag.base != NULL && slice_equal(opaque(element), opaque(etag)))
                return false;
        }
    }
    return true;
}

bool conditional_present(const struct http_head *request) {
    return http_head_has(request, HTTP_IF_NONE_MATCH) ||
           http_head_has(request, HTTP_IF_MODIFIED_SINCE);
}

bool conditional_not_modified(const struct http_head *request, struct slice etag,
                              time_t last_modified) {
    time_t since;
    if (http_head_has(request, HTTP_IF_NONE_MATCH))
        return !none_match(request, etag);
    struct slice value = http_head_value(request, HTTP_IF_MODIFIED_SINCE);
    if (value.base == NULL || last_modified == 0 || !http_date_parse(value, &since))
        return false;
    return last_modified <= since;
}

bool conditional_kept_in_304(enum http_name id) {
    return id == HTTP_CACHE_CONTROL || id == HTTP_CONTENT_LOCATION || id == HTTP_DATE ||
           id == HTTP_ETAG || id == HTTP_EXPIRES || id == HTTP_VARY || id == HTTP_LAST_MODIFIED ||
           id == HTTP_VIA || id == HTTP_SET_COOKIE || id == HTTP_SET_COOKIE2;
}
