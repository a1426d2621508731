/*
 * What an ICAP server says of its answer and of itself. The first line says which:
 *
 *     encapsulated         then the most bytes of heads, then the field's value
 *     options              then a path, then the fields of the answer to OPTIONS
 */
#include "base/assert.h"
#include "icap/options.h"
#include "icap/wire.h"
#include "lines.h"
#include "naive.h"

/* -1 where the element is not "name=digits". */
static __int128 naive_part(struct slice element, struct slice *name) {
    size_t at = 0;
    while (at < element.length && element.base[at] != '=')
        at++;
    if (at == element.length)
        return -1;
    *name = slice_trim(slice_make(element.base, at));
    return naive_number(slice_trim(slice_make(element.base + at + 1, element.length - at - 1)),
                        (__int128)UINT64_MAX + 1);
}

/* RFC 3507 §4.4.1: at most a request's head, at most a response's, then what the body is. */
static bool naive_encapsulated(struct icap_encapsulated *parts, struct slice value, size_t most) {
    static struct naive_list list;
    static const char *const bodies[] = {"req-body", "res-body", "null-body"};
    bool ended = false;
    __int128 before = -1;
    memset(parts, 0, sizeof *parts);
    naive_list_of(&list, value);
    for (unsigned i = 0; i < list.count; i++) {
        struct slice name = SLICE("");
        __int128 offset = naive_part(list.elements[i], &name);
        bool last = i + 1 == list.count;
        if (offset < 0 || offset > most || offset <= before || (i == 0 && offset != 0))
            return false;
        before = offset;
        parts->body_at = (size_t)offset;
        if (!last && i == 0 && naive_equal_nocase(name, SLICE("req-hdr"))) {
            parts->has_request = true;
        } else if (!last && !parts->has_response && naive_equal_nocase(name, SLICE("res-hdr"))) {
            parts->has_response = true;
            parts->response_at = (size_t)offset;
        } else {
            unsigned body = 0;
            while (body < 3 && !naive_equal_nocase(name, slice_from(bodies[body])))
                body++;
            if (!last || body == 3)
                return false;
            ended = true;
            parts->has_body = body < 2;
            parts->body_is_request = body == 0;
        }
    }
    return ended;
}

static void check_encapsulated(struct slice value, size_t most) {
    struct icap_encapsulated parts, naive;
    bool good = icap_encapsulated_parse(&parts, value, most);
    ASSERT(good == naive_encapsulated(&naive, value, most));
    if (!good)
        return;
    ASSERT(parts.has_request == naive.has_request && parts.has_response == naive.has_response);
    ASSERT(parts.has_body == naive.has_body && parts.body_is_request == naive.body_is_request);
    ASSERT(parts.request_at == 0 && parts.response_at == naive.response_at);
    ASSERT(parts.body_at == naive.body_at && parts.body_at <= most);
    /* What stands between two offsets is a head; none is empty. */
    ASSERT(parts.response_at < parts.body_at || !parts.has_response);
    ASSERT(!parts.has_request || !parts.has_response || parts.response_at > 0);
    ASSERT(parts.body_at > 0 || (!parts.has_request && !parts.has_response));
}

static struct slice naive_extension(struct slice path) {
    size_t begin = path.length;
    while (begin > 0 && path.base[begin - 1] != '.' && path.base[begin - 1] != '/')
        begin--;
    if (begin == 0 || path.base[begin - 1] != '.')
        return SLICE("");
    return slice_make(path.base + begin, path.length - begin);
}

/* How well a list fits, all of its lines: 2 names the extension, 1 has "*". */
static int naive_weight(const struct http_head *head, enum http_name id, struct slice extension) {
    static struct naive_list list;
    int weight = 0;
    for (unsigned n = 0; n < head->field_count; n++) {
        if (head->fields[n].id != id)
            continue;
        naive_list_of(&list, head->fields[n].value);
        for (unsigned i = 0; i < list.count; i++)
            if (extension.length > 0 && naive_equal_nocase(list.elements[i], extension))
                return 2;
            else if (slice_equal(list.elements[i], SLICE("*")))
                weight = 1;
    }
    return weight;
}

/* RFC 3507 §4.10.2: the list that fits best; of equals a preview first, then ignore. */
static enum icap_transfer naive_transfer(const struct http_head *head, struct slice path) {
    struct slice extension = naive_extension(path);
    int preview = naive_weight(head, HTTP_TRANSFER_PREVIEW, extension);
    int ignore = naive_weight(head, HTTP_TRANSFER_IGNORE, extension);
    int complete = naive_weight(head, HTTP_TRANSFER_COMPLETE, extension);
    int best = preview > ignore ? preview : ignore;
    best = best > complete ? best : complete;
    if (preview == best)
        return ICAP_TRANSFER_PREVIEW;
    return ignore == best ? ICAP_TRANSFER_IGNORE : ICAP_TRANSFER_COMPLETE;
}

/* As much of the value as fits, and a NUL behind it. */
static void check_text(const char *text, size_t capacity, const struct http_head *head,
                       enum http_name id) {
    struct slice value = http_head_value(head, id);
    size_t length = strnlen(text, capacity);
    ASSERT(length < capacity);
    ASSERT(length == (value.length < capacity - 1 ? value.length : capacity - 1));
    ASSERT(length == 0 || memcmp(text, value.base, length) == 0);
}

static void check_number(const struct http_head *head, enum http_name id, __int128 most,
                         __int128 got, __int128 absent) {
    struct slice value = http_head_value(head, id);
    __int128 number = value.base == NULL ? -1 : naive_number(value, most);
    ASSERT(got == (number < 0 || number >= most ? absent : number));
}

static void check_options(const struct http_head *head, struct slice path) {
    struct icap_options options;
    const char *error = NULL;
    if (!icap_options_parse(&options, head, &error)) {
        ASSERT(error != NULL);
        ASSERT(head->status != 200 || http_head_value(head, HTTP_ISTAG).length >= SERVICE_TEXT);
        return;
    }
    ASSERT(head->status == 200);
    check_number(head, HTTP_OPTIONS_TTL, INT32_MAX, options.ttl, -1);
    check_number(head, HTTP_PREVIEW, (__int128)UINT64_MAX + 1, (__int128)options.preview, 0);
    if (options.max_connections != 1)
        check_number(head, HTTP_MAX_CONNECTIONS, UINT32_MAX, options.max_connections, 0);
    check_text(options.istag, sizeof options.istag, head, HTTP_ISTAG);
    check_text(options.service, sizeof options.service, head, HTTP_SERVICE_ID);
    ASSERT(options.preview_given || options.preview == 0);
    ASSERT(icap_options_transfer(&options, path) ==
           (options.lists_too_long ? ICAP_TRANSFER_COMPLETE : naive_transfer(head, path)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct lines lines = lines_of(data, size);
    struct slice what = lines_next(&lines);
    if (slice_equal(what, SLICE("encapsulated"))) {
        size_t most = (size_t)lines_number(&lines);
        struct slice value = lines_copy(lines_next(&lines));
        check_encapsulated(value, most);
        free((void *)value.base);
    } else if (slice_equal(what, SLICE("options"))) {
        struct http_head head;
        struct slice path = lines_copy(lines_next(&lines));
        lines_head(&lines, &head);
        head.status = 200;
        check_options(&head, path);
        head.status = 404;
        check_options(&head, path);
        lines_head_free(&head);
        free((void *)path.base);
    }
    return 0;
}
