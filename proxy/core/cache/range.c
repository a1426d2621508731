#include "cache/range.h"

#include "http/date.h"

/* About the size of the head of a part: a smaller gap is cheaper to send than to leave out. */
enum { GAP = 80 };

void range_subject_of(struct range_subject *subject, const struct http_head *response,
                      uint64_t length) {
    time_t modified, date;
    *subject =
        (struct range_subject){.etag = http_head_value(response, HTTP_ETAG), .length = length};
    struct slice field = http_head_value(response, HTTP_LAST_MODIFIED);
    if (field.base != NULL && http_date_parse(field, &modified) &&
        http_date_parse(http_head_value(response, HTTP_DATE), &date) && modified < date)
        subject->last_modified = field;
}

/* Does the client's part belong to the response that is stored? */
static bool if_range_holds(const struct http_head *request, const struct range_subject *subject) {
    struct slice condition = http_head_value(request, HTTP_IF_RANGE);
    if (condition.base == NULL)
        return true;
    if (condition.length > 0 && condition.base[0] == '"')
        return slice_equal(condition, subject->etag);
    /* A weak tag never holds. A date holds only if it is the same text. */
    return subject->last_modified.length > 0 && slice_equal(condition, subject->last_modified);
}

/* "first-last", "first-" or "-suffix". False: the text is malformed. Count 0: the range can't
 * be satisfied. */
static bool parse_spec(struct slice spec, uint64_t length, struct range *range) {
    const char *dash = memchr(spec.base, '-', spec.length);
    uint64_t first, last;
    if (dash == NULL)
        return false;
    struct slice before = slice_make(spec.base, (size_t)(dash - spec.base));
    struct slice after = slice_make(dash + 1, spec.length - before.length - 1);
    if (before.length == 0) {
        if (!slice_to_uint64(after, &last))
            return false;
        range->count = last < length ? last : length;
        range->first = length - range->count;
        return true;
    }
    if (!slice_to_uint64(before, &first))
        return false;
    last = UINT64_MAX;
    if (after.length > 0 && (!slice_to_uint64(after, &last) || last < first))
        return false;
    range->first = first;
    range->count = first < length ? (last < length - 1 ? last : length - 1) - first + 1 : 0;
    return true;
}

static bool touch(const struct range *a, const struct range *b) {
    return a->first <= b->first + b->count + GAP && b->first <= a->first + a->count + GAP;
}

static void range_grow(struct range *range, const struct range *other) {
    uint64_t end = range->first + range->count, other_end = other->first + other->count;
    range->first = other->first < range->first ? other->first : range->first;
    range->count = (other_end > end ? other_end : end) - range->first;
}

/* Adds a range, and joins all ranges that touch after that. Returns how many ranges there are. */
static unsigned range_add(struct range *ranges, unsigned count, const struct range *range) {
    unsigned at = 0;
    while (at < count && !touch(&ranges[at], range))
        at++;
    if (at == count) {
        ranges[count] = *range;
        return count + 1;
    }
    range_grow(&ranges[at], range);
    for (unsigned i = 0; i < count; i++) {
        if (i == at || !touch(&ranges[at], &ranges[i]))
            continue;
        unsigned kept = i < at ? i : at, gone = i < at ? at : i;
        range_grow(&ranges[kept], &ranges[gone]);
        memmove(&ranges[gone], &ranges[gone + 1], (count - gone - 1) * sizeof *ranges);
        count--;
        at = kept;
        i = UINT32_MAX; /* it is larger now: look at all again */
    }
    return count;
}

enum range_kind range_of_request(struct range *ranges, unsigned most, unsigned *count,
                                 const struct http_head *request,
                                 const struct range_subject *subject) {
    const struct http_field *field = http_head_find(request, HTTP_RANGE);
    *count = 0;
    if (field == NULL || request->method_id != HTTP_METHOD_GET ||
        !slice_starts_with_nocase(field->value, SLICE("bytes=")) ||
        http_head_find_next(request, HTTP_RANGE, field) != NULL ||
        !if_range_holds(request, subject))
        return RANGE_WHOLE;
    struct slice rest = slice_make(field->value.base + 6, field->value.length - 6), spec;
    struct range range;
    unsigned specs = 0;
    for (; slice_next_element(&rest, &spec); specs++) {
        if (!parse_spec(spec, subject->length, &range))
            return RANGE_WHOLE;
        if (specs == most)
            return RANGE_TOO_MANY;
        if (range.count > 0)
            *count = range_add(ranges, *count, &range);
    }
    if (specs == 0)
        return RANGE_WHOLE;
    return *count > 0 ? RANGE_PARTS : RANGE_UNSATISFIABLE;
}

/* Reads a number up to the character `end`, and removes both from `text`. */
static bool part_take_number(struct slice *text, char end, uint64_t *number) {
    const char *at = text->length > 0 ? memchr(text->base, end, text->length) : NULL;
    if (at == NULL)
        return false;
    size_t length = (size_t)(at - text->base);
    bool good = slice_to_uint64(slice_make(text->base, length), number);
    *text = slice_make(at + 1, text->length - length - 1);
    return good;
}

/* "bytes FIRST-LAST/WHOLE" (RFC 9110 §14.4). */
static bool parse_content_range(struct slice text, struct partial *part) {
    uint64_t last;
    if (!slice_starts_with_nocase(text, SLICE("bytes ")))
        return false;
    text = slice_make(text.base + 6, text.length - 6);
    if (!part_take_number(&text, '-', &part->first) || !part_take_number(&text, '/', &last) ||
        !slice_to_uint64(text, &part->whole) || last < part->first || last >= part->whole ||
        part->whole > INT64_MAX)
        return false;
    part->count = last - part->first + 1;
    return true;
}

bool partial_of_head(struct partial *part, const struct http_head *response) {
    uint64_t length;
    const struct http_field *field = http_head_find(response, HTTP_CONTENT_RANGE);
    if (response->status != 206 || field == NULL ||
        http_head_find_next(response, HTTP_CONTENT_RANGE, field) != NULL ||
        !parse_content_range(field->value, part))
        return false;
    struct slice stated = http_head_value(response, HTTP_CONTENT_LENGTH);
    return stated.base == NULL || (slice_to_uint64(stated, &length) && length == part->count);
}

bool partial_joins(const struct partial *a, const struct partial *b) {
    return a->whole == b->whole && a->first <= partial_end(b) && b->first <= partial_end(a);
}

struct partial partial_union(const struct partial *a, const struct partial *b) {
    uint64_t first = a->first < b->first ? a->first : b->first;
    uint64_t end = partial_end(a) > partial_end(b) ? partial_end(a) : partial_end(b);
    return (struct partial){.first = first, .count = end - first, .whole = a->whole};
}

bool partial_holds(const struct partial *part, const struct range *ranges, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (ranges[i].first < part->first || ranges[i].first + ranges[i].count > partial_end(part))
            return false;
    return true;
}

bool partial_same_etag(struct slice a, struct slice b) {
    return a.length > 0 && a.base[0] == '"' && slice_equal(a, b);
}
