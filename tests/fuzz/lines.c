#include "lines.h"

#include "base/assert.h"

struct lines lines_of(const uint8_t *data, size_t size) {
    return (struct lines){slice_make((const char *)data, size)};
}

struct slice lines_next(struct lines *lines) {
    struct slice *rest = &lines->rest;
    const char *end = rest->length == 0 ? NULL : memchr(rest->base, '\n', rest->length);
    size_t length = end == NULL ? rest->length : (size_t)(end - rest->base);
    struct slice line = slice_make(rest->base, length);
    size_t taken = end == NULL ? length : length + 1;
    *rest = slice_make(rest->length == 0 ? rest->base : rest->base + taken, rest->length - taken);
    if (length > 0 && line.base[length - 1] == '\r')
        line.length--;
    return line;
}

uint64_t lines_number(struct lines *lines) {
    uint64_t number;
    return slice_to_uint64(lines_next(lines), &number) ? number : 0;
}

int64_t lines_signed(struct lines *lines, int64_t most) {
    uint64_t number;
    struct slice line = lines_next(lines);
    bool negative = line.length > 0 && line.base[0] == '-';
    if (!slice_to_uint64(slice_make(line.base + negative, line.length - negative), &number))
        return 0;
    int64_t size = number > (uint64_t)most ? most : (int64_t)number;
    return negative ? -size : size;
}

struct slice lines_copy(struct slice text) {
    char *copy = xmalloc(text.length);
    if (text.length > 0)
        memcpy(copy, text.base, text.length);
    return slice_make(copy, text.length);
}

static bool is_name(struct slice name) {
    for (size_t i = 0; i < name.length; i++) {
        unsigned char c = (unsigned char)name.base[i];
        if (c <= 0x20 || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c) != NULL)
            return false;
    }
    return name.length > 0;
}

static bool is_value(struct slice value) {
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.base[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

bool lines_field(struct slice line, struct slice *name, struct slice *value) {
    const char *colon = line.length == 0 ? NULL : memchr(line.base, ':', line.length);
    if (colon == NULL)
        return false;
    size_t length = (size_t)(colon - line.base);
    *name = slice_make(line.base, length);
    *value = slice_trim(slice_make(colon + 1, line.length - length - 1));
    return is_name(*name) && is_value(*value);
}

void lines_head(struct lines *lines, struct http_head *head) {
    http_head_init(head);
    head->version = 11;
    while (lines->rest.length > 0) {
        struct slice name, value, line = lines_next(lines);
        if (line.length == 0)
            return;
        if (head->field_count < HTTP_FIELDS_MAX && lines_field(line, &name, &value))
            ASSERT(http_head_add(head, lines_copy(name), lines_copy(value)));
    }
}

void lines_head_free(struct http_head *head) {
    for (unsigned i = 0; i < head->field_count; i++) {
        free((void *)head->fields[i].name.base);
        free((void *)head->fields[i].value.base);
    }
}
