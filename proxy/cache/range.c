#include "cache/range.h"

/* Does the client's part belong to the response that is stored? */
static bool if_range_holds(const struct http_head *request, struct slice etag,
                           struct slice last_modified) {
    struct slice condition = http_head_value(request, HTTP_IF_RANGE);
    if (condition.base == NULL)
        return true;
    if (condition.length > 0 && condition.base[0] == '"')
        return slice_equal(condition, etag);
    /* A weak tag never holds; a date only to the letter. */
    return last_modified.length > 0 && slice_equal(condition, last_modified);
}

/* "first-last", "first-" or "-suffix". False: not of the grammar. */
static bool parse_spec(struct slice spec, uint64_t length, struct range *range, bool *satisfiable) {
    const char *dash = memchr(spec.base, '-', spec.length);
    uint64_t first, last;
    if (dash == NULL)
        return false;
    struct slice before = slice_make(spec.base, (size_t)(dash - spec.base));
    struct slice after = slice_make(dash + 1, spec.length - before.length - 1);
    if (before.length == 0) {
        if (!slice_to_uint64(after, &last))
            return false;
        *satisfiable = last > 0 && length > 0;
        range->count = last < length ? last : length;
        range->first = length - range->count;
        return true;
    }
    if (!slice_to_uint64(before, &first))
        return false;
    last = UINT64_MAX;
    if (after.length > 0 && (!slice_to_uint64(after, &last) || last < first))
        return false;
    *satisfiable = first < length;
    range->first = first;
    if (*satisfiable)
        range->count = (last < length - 1 ? last : length - 1) - first + 1;
    return true;
}

enum range_kind range_of_request(struct range *range, const struct http_head *request,
                                 struct slice etag, struct slice last_modified, uint64_t length) {
    bool satisfiable = false;
    struct slice value = http_head_value(request, HTTP_RANGE);
    if (value.base == NULL || request->method_id != HTTP_METHOD_GET ||
        !slice_starts_with_nocase(value, SLICE("bytes=")) ||
        !if_range_holds(request, etag, last_modified))
        return RANGE_WHOLE;
    struct slice rest = slice_make(value.base + 6, value.length - 6), spec, more;
    if (!slice_next_element(&rest, &spec) || slice_next_element(&rest, &more) ||
        !parse_spec(spec, length, range, &satisfiable))
        return RANGE_WHOLE;
    return satisfiable ? RANGE_PART : RANGE_UNSATISFIABLE;
}
