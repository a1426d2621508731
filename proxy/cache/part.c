#include "cache/part.h"

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
static bool parse_content_range(struct slice text, struct part *part) {
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

bool part_of_head(struct part *part, const struct http_head *response) {
    uint64_t length;
    const struct http_field *field = http_head_find(response, HTTP_CONTENT_RANGE);
    if (response->status != 206 || field == NULL ||
        http_head_find_next(response, HTTP_CONTENT_RANGE, field) != NULL ||
        !parse_content_range(field->value, part))
        return false;
    struct slice stated = http_head_value(response, HTTP_CONTENT_LENGTH);
    return stated.base == NULL || (slice_to_uint64(stated, &length) && length == part->count);
}

bool part_joins(const struct part *a, const struct part *b) {
    return a->whole == b->whole && a->first <= part_end(b) && b->first <= part_end(a);
}

struct part part_union(const struct part *a, const struct part *b) {
    uint64_t first = a->first < b->first ? a->first : b->first;
    uint64_t end = part_end(a) > part_end(b) ? part_end(a) : part_end(b);
    return (struct part){.first = first, .count = end - first, .whole = a->whole};
}

bool part_holds(const struct part *part, const struct range *ranges, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (ranges[i].first < part->first || ranges[i].first + ranges[i].count > part_end(part))
            return false;
    return true;
}

bool part_same_etag(struct slice a, struct slice b) {
    return a.length > 0 && a.base[0] == '"' && slice_equal(a, b);
}
