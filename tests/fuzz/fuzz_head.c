#include "fuzz_head.h"

#include "base/assert.h"
#include "http/head_parser.h"

static void check_inside(struct slice slice, const char *bytes, size_t length) {
    if (slice.base == NULL)
        ASSERT(slice.length == 0);
    else
        ASSERT(slice.base >= bytes && slice.base + slice.length <= bytes + length);
}

static void check_value(struct slice value) {
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.base[i];
        ASSERT((c >= 0x20 && c != 0x7f) || c == '\t');
    }
    ASSERT(slice_equal(slice_trim(value), value));
}

static void check_name(struct slice name) {
    ASSERT(name.length > 0);
    for (size_t i = 0; i < name.length; i++) {
        unsigned char c = (unsigned char)name.base[i];
        ASSERT(c > 0x20 && c < 0x7f && strchr("\"(),/:;<=>?@[\\]{}", c) == NULL);
    }
}

static void check_head(const struct http_head *head, const char *bytes, size_t length) {
    uint64_t present[sizeof head->present / sizeof head->present[0]] = {0};
    ASSERT(head->field_count <= HTTP_FIELDS_MAX);
    ASSERT(head->version == 10 || head->version == 11 || head->version == 0);
    check_inside(head->method, bytes, length);
    check_inside(head->target, bytes, length);
    check_inside(head->reason, bytes, length);
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        check_inside(field->name, bytes, length);
        check_inside(field->value, bytes, length);
        check_name(field->name);
        check_value(field->value);
        ASSERT(field->id == http_name_lookup(field->name));
        present[field->id / 64] |= (uint64_t)1 << field->id % 64;
    }
    ASSERT(memcmp(present, head->present, sizeof present) == 0);
}

/* The version is not compared: what is written is always HTTP/1.1. */
static void check_same(const struct http_head *a, const struct http_head *b) {
    ASSERT(slice_equal(a->method, b->method) && a->method_id == b->method_id);
    ASSERT(slice_equal(a->target, b->target));
    ASSERT(a->status == b->status && slice_equal(a->reason, b->reason));
    ASSERT(a->field_count == b->field_count);
    ASSERT(memcmp(a->present, b->present, sizeof a->present) == 0);
    for (unsigned i = 0; i < a->field_count; i++) {
        ASSERT(a->fields[i].id == b->fields[i].id);
        ASSERT(slice_equal(a->fields[i].name, b->fields[i].name));
        ASSERT(slice_equal(a->fields[i].value, b->fields[i].value));
    }
}

/* Bytes that came in two parts must not be read otherwise. */
static void check_split(ssize_t (*parse)(struct http_head *, const char *, size_t, size_t),
                        const char *bytes, size_t length, size_t split, ssize_t whole) {
    struct http_head head;
    char *part = xmalloc(split + 1); /* of its own, so that a read past the end is seen */
    memcpy(part, bytes, split);
    part = xrealloc(part, split > 0 ? split : 1);
    ssize_t result = parse(&head, part, split, 0);
    free(part);
    if (result != 0)
        ASSERT(result == whole);
    else
        ASSERT(parse(&head, bytes, length, split) == whole);
}

static void check_written(const struct http_head *head,
                          ssize_t (*parse)(struct http_head *, const char *, size_t, size_t),
                          size_t (*write)(const struct http_head *, char *, size_t)) {
    struct http_head again;
    size_t length = write(head, NULL, 0);
    char *bytes = xmalloc(length + 2);
    ASSERT(write(head, bytes, length) == length);
    memcpy(bytes + length, "\r\n", 2);
    ASSERT(parse(&again, bytes, length + 2, 0) == (ssize_t)length + 2);
    check_same(head, &again);
    free(bytes);
}

static void check_copy(const struct http_head *head) {
    struct http_head copy;
    size_t size = http_head_size(head);
    char *bytes = xmalloc(size + 1);
    http_head_copy(&copy, head, bytes);
    check_head(&copy, bytes, size);
    check_same(head, &copy);
    http_head_remove_hop_by_hop(&copy);
    ASSERT(!http_head_has(&copy, HTTP_CONNECTION) && !http_head_has(&copy, HTTP_TRANSFER_ENCODING));
    check_head(&copy, bytes, size);
    free(bytes);
}

ssize_t fuzz_head(struct http_head *head,
                  ssize_t (*parse)(struct http_head *, const char *, size_t, size_t),
                  size_t (*write)(const struct http_head *, char *, size_t), const char *bytes,
                  size_t length) {
    struct http_head twin;
    ssize_t used = parse(head, bytes, length, 0);
    ASSERT(used <= (ssize_t)length && used >= -HTTP_ERROR_VERSION);
    for (size_t split = 0; split <= length; split += 1 + length / 64)
        check_split(parse, bytes, length, split, used);
    if (used <= 0)
        return used;
    ASSERT(parse(&twin, bytes, (size_t)used, 0) == used);
    check_same(head, &twin);
    ASSERT(parse(&twin, bytes, (size_t)used - 1, 0) == 0);
    check_head(head, bytes, (size_t)used);
    check_copy(head);
    if (write != NULL)
        check_written(head, parse, write);
    return used;
}
