#include "host-c-icap/head_list.h"

#include "host-c-icap/cicap.h"
#include "http/head_parser.h"

#include <stdio.h>

/* The longest head that is handed to c-icap. */
enum { HEAD_MAX = 256 * 1024 };

/* The lines lie one behind another, each with a NUL where CR was; headers[] points at them. */
static size_t list_size(const struct ci_headers_list *list) {
    size_t size = 2;
    for (int i = 0; i < list->used; i++)
        size += strlen(list->headers[i]) + 2;
    return size;
}

bool head_list_read(struct http_head *head, struct ci_headers_list *list, bool is_request,
                    struct arena *arena) {
    if (list == NULL || list->used == 0)
        return false;
    size_t size = list_size(list);
    if (size > HEAD_MAX)
        return false;
    char *bytes = arena_alloc(arena, size), *at = bytes;
    for (int i = 0; i < list->used; i++) {
        size_t length = strlen(list->headers[i]);
        memcpy(at, list->headers[i], length);
        memcpy(at + length, "\r\n", 2);
        at += length + 2;
    }
    memcpy(at, "\r\n", 2);
    ssize_t used = is_request ? http_head_parse_request(head, bytes, size, 0)
                              : http_head_parse_response(head, bytes, size, 0);
    return used == (ssize_t)size;
}

static bool add_first_line(struct ci_headers_list *list, const struct http_head *head,
                           bool is_request) {
    char *line;
    int version = head->version == 10 ? 0 : 1;
    int length = is_request ? asprintf(&line, "%.*s %.*s HTTP/1.%d", SLICE_PRINT(head->method),
                                       SLICE_PRINT(head->target), version)
                            : asprintf(&line, "HTTP/1.%d %u %.*s", version, head->status,
                                       SLICE_PRINT(head->reason));
    if (length < 0)
        return false;
    bool added = ci_headers_add(list, line) != NULL;
    free(line);
    return added;
}

bool head_list_write(struct ci_headers_list *list, const struct http_head *head, bool is_request) {
    ci_headers_reset(list);
    if (!add_first_line(list, head, is_request))
        return false;
    for (unsigned i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        char *line;
        if (asprintf(&line, "%.*s: %.*s", SLICE_PRINT(field->name), SLICE_PRINT(field->value)) < 0)
            return false;
        bool added = ci_headers_add(list, line) != NULL;
        free(line);
        if (!added)
            return false;
    }
    return true;
}
