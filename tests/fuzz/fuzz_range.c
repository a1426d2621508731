/*
 * Ranges and parts, against a second reading. Three lines, then the request's fields, and those of
 * two responses that are parts:
 *
 *     the length of what is stored
 *     its entity tag, "-" for none
 *     its Last-Modified, "-" for none
 */
#include "base/assert.h"
#include "cache/range.h"
#include "lines.h"
#include "naive.h"

static const char *skip_digits(const char *at, const char *end) {
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    return at;
}

/* A whole number of bytes; those that do not fit 64 bits count as none. */
static bool take_number(const char *at, const char *end, __int128 *number) {
    *number = naive_number(slice_make(at, (size_t)(end - at)), (__int128)1 << 64);
    return *number >= 0 && *number <= UINT64_MAX;
}

/* By counting: first and last byte of one spec. 1: a part, 0: nothing there, -1: not of the
 * grammar. */
static int naive_spec(struct slice spec, uint64_t length, __int128 *first, __int128 *last) {
    const char *end = spec.base + spec.length, *dash = skip_digits(spec.base, end);
    bool has_first = dash > spec.base, has_last;
    if (dash == end || *dash != '-' || skip_digits(dash + 1, end) != end)
        return -1;
    has_last = dash + 1 < end;
    if (!has_first && !has_last)
        return -1;
    if (has_first && !take_number(spec.base, dash, first))
        return -1;
    if (has_last && !take_number(dash + 1, end, last))
        return -1;
    if (!has_first) {
        *first = *last > length ? 0 : (__int128)length - *last;
        *last = (__int128)length - 1;
    } else if (!has_last) {
        *last = (__int128)length - 1;
    } else if (*last < *first) {
        return -1;
    }
    if (*last >= length)
        *last = (__int128)length - 1;
    return *first < length && *first <= *last;
}

static bool naive_if_range(const struct http_head *request, struct slice etag,
                           struct slice modified) {
    struct slice condition = http_head_value(request, HTTP_IF_RANGE);
    if (condition.base == NULL)
        return true;
    if (condition.length == 0)
        return false;
    return slice_equal(condition, condition.base[0] == '"' ? etag : modified);
}

/* What one spec asks for, and where it stands in the request. */
struct asked {
    __int128 first, last;
    unsigned place;
};

enum { RANGES_MAX = 16, GAP = 80 };

static enum range_kind naive_ranges(struct asked *asked, unsigned *count,
                                    const struct http_head *request, struct slice etag,
                                    struct slice modified, uint64_t length) {
    static struct naive_list list;
    struct slice value = http_head_value(request, HTTP_RANGE);
    unsigned fields = 0;
    *count = 0;
    for (unsigned i = 0; i < request->field_count; i++)
        fields += naive_equal_nocase(request->fields[i].name, SLICE("range"));
    if (fields != 1 || value.length < 6 ||
        !naive_equal_nocase(slice_make(value.base, 6), SLICE("bytes=")) ||
        !naive_if_range(request, etag, modified))
        return RANGE_WHOLE;
    naive_list_of(&list, slice_make(value.base + 6, value.length - 6));
    for (unsigned i = 0; i < list.count; i++) {
        struct asked one = {.place = i};
        int found = naive_spec(list.elements[i], length, &one.first, &one.last);
        if (found < 0)
            return RANGE_WHOLE;
        if (i == RANGES_MAX)
            return RANGE_TOO_MANY;
        if (found > 0)
            asked[(*count)++] = one;
    }
    if (list.count == 0)
        return RANGE_WHOLE;
    return *count > 0 ? RANGE_PARTS : RANGE_UNSATISFIABLE;
}

static int by_first(const void *a, const void *b) {
    const struct asked *left = a, *right = b;
    return (left->first > right->first) - (left->first < right->first);
}

static int by_place(const void *a, const void *b) {
    const struct asked *left = a, *right = b;
    return (left->place > right->place) - (left->place < right->place);
}

/* One sweep from low to high makes one of all that touch; then back to the request's order. */
static unsigned merge(struct asked *asked, unsigned count) {
    unsigned merged = 0;
    qsort(asked, count, sizeof *asked, by_first);
    for (unsigned i = 0; i < count; i++) {
        struct asked *last = &asked[merged > 0 ? merged - 1 : 0];
        if (merged == 0 || asked[i].first > last->last + 1 + GAP) {
            asked[merged++] = asked[i];
            continue;
        }
        last->last = asked[i].last > last->last ? asked[i].last : last->last;
        last->place = asked[i].place < last->place ? asked[i].place : last->place;
    }
    qsort(asked, merged, sizeof *asked, by_place);
    return merged;
}

static void check_part(const struct partial *part, const struct range *ranges, unsigned count) {
    bool holds = true;
    for (unsigned i = 0; i < count; i++)
        holds &= ranges[i].first >= part->first && ranges[i].first - part->first <= part->count &&
                 ranges[i].count <= part->count - (ranges[i].first - part->first);
    ASSERT(partial_holds(part, ranges, count) == holds);
}

static unsigned check(struct http_head *request, const struct range_subject *subject,
                      struct range *ranges) {
    static struct asked asked[RANGES_MAX];
    unsigned count, expected;
    request->method_id = HTTP_METHOD_HEAD;
    ASSERT(range_of_request(ranges, RANGES_MAX, &count, request, subject) == RANGE_WHOLE);
    request->method_id = HTTP_METHOD_GET;
    enum range_kind kind = range_of_request(ranges, RANGES_MAX, &count, request, subject);
    ASSERT(kind == naive_ranges(asked, &expected, request, subject->etag, subject->last_modified,
                                subject->length));
    if (kind != RANGE_PARTS)
        return 0;
    ASSERT(count == merge(asked, expected));
    for (unsigned i = 0; i < count; i++) {
        ASSERT(ranges[i].count > 0 && ranges[i].count <= subject->length);
        ASSERT(ranges[i].first <= subject->length - ranges[i].count);
        ASSERT(ranges[i].first == asked[i].first);
        ASSERT(ranges[i].count == asked[i].last - asked[i].first + 1);
    }
    return count;
}

/* "bytes 0-4/5", all of it digits that fit; -1 where it is not. */
static __int128 naive_until(struct slice *text, char end) {
    size_t length = 0;
    while (length < text->length && text->base[length] != end)
        length++;
    __int128 number = naive_number(slice_make(text->base, length), (__int128)1 << 70);
    length += length < text->length;
    *text = slice_make(text->base + length, text->length - length);
    return number;
}

static bool naive_part(struct partial *part, const struct http_head *response) {
    struct slice value = http_head_value(response, HTTP_CONTENT_RANGE);
    struct slice stated = http_head_value(response, HTTP_CONTENT_LENGTH);
    unsigned fields = 0, dashes = 0, slashes = 0;
    for (unsigned i = 0; i < response->field_count; i++)
        fields += naive_equal_nocase(response->fields[i].name, SLICE("content-range"));
    for (size_t i = 0; i < value.length; i++) {
        dashes += value.base[i] == '-';
        slashes += value.base[i] == '/';
    }
    if (fields != 1 || dashes != 1 || slashes != 1 || value.length < 6 ||
        !naive_equal_nocase(slice_make(value.base, 6), SLICE("bytes ")))
        return false;
    value = slice_make(value.base + 6, value.length - 6);
    __int128 first = naive_until(&value, '-'), last = naive_until(&value, '/');
    __int128 whole = naive_number(value, (__int128)1 << 70);
    *part = (struct partial){(uint64_t)first, (uint64_t)(last - first + 1), (uint64_t)whole};
    return first >= 0 && last >= first && whole > last && whole <= INT64_MAX &&
           (stated.base == NULL || naive_number(stated, (__int128)1 << 70) == last - first + 1);
}

static bool check_head(struct partial *part, struct http_head *response) {
    struct partial naive;
    response->status = 200;
    ASSERT(!partial_of_head(part, response));
    response->status = 206;
    bool good = partial_of_head(part, response);
    ASSERT(good == naive_part(&naive, response));
    if (good) {
        ASSERT(part->first == naive.first && part->count == naive.count);
        ASSERT(part->whole == naive.whole && partial_end(part) <= part->whole && part->count > 0);
    }
    return good;
}

static void check_union(const struct partial *a, const struct partial *b) {
    struct partial both = partial_union(a, b);
    bool apart = partial_end(a) < b->first || partial_end(b) < a->first;
    ASSERT(partial_joins(a, b) == (!apart && a->whole == b->whole));
    ASSERT(partial_joins(a, b) == partial_joins(b, a));
    if (!partial_joins(a, b))
        return;
    ASSERT(both.first == (a->first < b->first ? a->first : b->first));
    ASSERT(partial_end(&both) ==
           (partial_end(a) > partial_end(b) ? partial_end(a) : partial_end(b)));
    ASSERT(both.count <= a->count + b->count && partial_end(&both) <= both.whole);
}

static struct slice validator(struct slice line) {
    return slice_equal(line, SLICE("-")) ? slice_make(NULL, 0) : line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_head request, response, further;
    struct range ranges[RANGES_MAX];
    struct partial part, more;
    struct lines lines = lines_of(data, size);
    struct range_subject subject = {.length = lines_number(&lines) & INT64_MAX};
    subject.etag = validator(lines_next(&lines));
    subject.last_modified = validator(lines_next(&lines));
    lines_head(&lines, &request);
    lines_head(&lines, &response);
    lines_head(&lines, &further);
    unsigned count = check(&request, &subject, ranges);
    bool first = check_head(&part, &response), second = check_head(&more, &further);
    if (first)
        check_part(&part, ranges, count);
    if (first && second)
        check_union(&part, &more);
    subject.length = 0;
    check(&request, &subject, ranges);
    lines_head_free(&request);
    lines_head_free(&response);
    lines_head_free(&further);
    return 0;
}
