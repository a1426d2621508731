/* Secondary keys: the request's fields, those of the response, those of another request. A request
 * selects what was stored for it, and another one does if and only if its own key is the same. */
#include "base/assert.h"
#include "cache/vary.h"
#include "lines.h"
#include "naive.h"

enum { MARK = 0x5a, BEHIND = 16 };

/* The whole key, of its own size; measured and written must be the same. */
static struct slice key_of(const struct http_head *request, const struct http_head *response) {
    size_t length = vary_write(request, response, NULL, 0);
    char *bytes = xmalloc(length);
    ASSERT(vary_write(request, response, bytes, length) == length);
    return slice_make(bytes, length);
}

/* Less room: the beginning of the same, and nothing past it. */
static void check_room(const struct http_head *request, const struct http_head *response,
                       struct slice key) {
    char *bytes = xmalloc(key.length + BEHIND);
    for (size_t room = 0; room <= key.length; room += 1 + key.length / 16) {
        memset(bytes, MARK, key.length + BEHIND);
        ASSERT(vary_write(request, response, bytes, room) == key.length);
        ASSERT(memcmp(bytes, key.base, room) == 0);
        for (size_t i = room; i < key.length + BEHIND; i++)
            ASSERT(bytes[i] == MARK);
    }
    free(bytes);
}

/* The values of a field as a list, in order; that they are equal is enough for two requests to
 * select the same. */
static void values_of(struct naive_list *all, const struct http_head *head, struct slice name) {
    static struct naive_list list;
    all->count = 0;
    for (unsigned i = 0; i < head->field_count; i++) {
        if (!naive_equal_nocase(head->fields[i].name, name))
            continue;
        naive_list_of(&list, head->fields[i].value);
        for (unsigned j = 0; j < list.count; j++)
            all->elements[all->count++] = list.elements[j];
    }
}

static bool has_field(const struct http_head *head, struct slice name) {
    for (unsigned i = 0; i < head->field_count; i++)
        if (naive_equal_nocase(head->fields[i].name, name))
            return true;
    return false;
}

static bool same_values(const struct http_head *a, const struct http_head *b, struct slice name) {
    static struct naive_list left, right;
    values_of(&left, a, name);
    values_of(&right, b, name);
    if (left.count != right.count || has_field(a, name) != has_field(b, name))
        return false;
    for (unsigned i = 0; i < left.count; i++)
        if (!slice_equal(left.elements[i], right.elements[i]))
            return false;
    return true;
}

/* A bag of elements, whatever their order and case. */
static bool same_bag(const struct http_head *a, const struct http_head *b, struct slice name) {
    static struct naive_list left, right;
    values_of(&left, a, name);
    values_of(&right, b, name);
    if (left.count != right.count || has_field(a, name) != has_field(b, name))
        return false;
    for (unsigned i = 0; i < left.count; i++) {
        unsigned at = 0;
        while (at < right.count && !naive_equal_nocase(left.elements[i], right.elements[at]))
            at++;
        if (at == right.count)
            return false;
        right.elements[at] = right.elements[--right.count];
    }
    return true;
}

/* Long lists are compared as they stand (see put_raw in cache/vary.c). A quote that a line leaves
 * open is closed by the next one, so that lines are no lists of their own. */
enum { SORTED_MAX = 64 };

static bool is_unsure(const struct http_head *head, struct slice name) {
    static struct naive_list list;
    values_of(&list, head, name);
    for (unsigned i = 0; i < head->field_count; i++)
        if (naive_equal_nocase(head->fields[i].name, name) &&
            !naive_balanced(head->fields[i].value))
            return true;
    return list.count > SORTED_MAX;
}

/* 1 and 0: must be the same, must not be; -1: may be either. */
static int naive_same(const struct http_head *a, const struct http_head *b,
                      const struct http_head *response) {
    static struct naive_list names;
    int same = 1;
    for (unsigned i = 0; i < response->field_count; i++) {
        if (!naive_equal_nocase(response->fields[i].name, SLICE("vary")))
            continue;
        naive_list_of(&names, response->fields[i].value);
        for (unsigned j = 0; j < names.count; j++) {
            struct slice name = names.elements[j];
            bool unordered = naive_equal_nocase(name, SLICE("accept-encoding")) ||
                             naive_equal_nocase(name, SLICE("accept-language"));
            if (is_unsure(a, name) || is_unsure(b, name))
                same = -1;
            else if (!(unordered ? same_bag(a, b, name) : same_values(a, b, name)))
                return 0;
        }
    }
    return same;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct http_head request, response, other;
    struct lines lines = lines_of(data, size);
    lines_head(&lines, &request);
    lines_head(&lines, &response);
    lines_head(&lines, &other);
    struct slice key = key_of(&request, &response), other_key = key_of(&other, &response);
    check_room(&request, &response, key);
    if (vary_usable(&response)) {
        bool same = slice_equal(key, other_key);
        int expected = naive_same(&request, &other, &response);
        ASSERT(vary_matches(key, &request) && vary_matches(other_key, &other));
        ASSERT(vary_matches(key, &other) == same && vary_matches(other_key, &request) == same);
        ASSERT(expected < 0 || same == expected);
    }
    free((void *)key.base);
    free((void *)other_key.base);
    lines_head_free(&request);
    lines_head_free(&response);
    lines_head_free(&other);
    return 0;
}
