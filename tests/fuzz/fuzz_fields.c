/*
 * The field list of a head, against a list that knows nothing but names and values. A line is a
 * change to both:
 *
 *     +Name: value    add           -Name     remove          !    remove what ends at this hop
 *     =Name: value    set           ~         copy, and move the copy
 */
#include "base/assert.h"
#include "http/head_parser.h"
#include "lines.h"
#include "naive.h"

struct pair {
    struct slice name, value;
};

struct model {
    unsigned count;
    struct pair pairs[HTTP_FIELDS_ROOM];
};

/* What the slices of the head and of the model point to. */
enum { BLOCKS_MAX = 4096 };
struct blocks {
    unsigned count;
    void *bytes[BLOCKS_MAX];
};

static struct slice keep(struct blocks *blocks, struct slice text) {
    struct slice copy = lines_copy(text);
    ASSERT(blocks->count < BLOCKS_MAX);
    blocks->bytes[blocks->count++] = (void *)copy.base;
    return copy;
}

static enum http_name name_of(struct slice name) {
    for (int id = HTTP_OTHER + 1; id < HTTP_NAME_COUNT; id++)
        if (naive_equal_nocase(http_name_text((enum http_name)id), name))
            return (enum http_name)id;
    return HTTP_OTHER;
}

static unsigned model_remove(struct model *model, struct slice name) {
    unsigned kept = 0, count = model->count;
    for (unsigned i = 0; i < count; i++)
        if (!naive_equal_nocase(model->pairs[i].name, name))
            model->pairs[kept++] = model->pairs[i];
    model->count = kept;
    return count - kept;
}

static bool model_add(struct model *model, struct slice name, struct slice value) {
    if (model->count == HTTP_FIELDS_ROOM)
        return false;
    model->pairs[model->count++] = (struct pair){name, value};
    return true;
}

static int model_find(const struct model *model, struct slice name, unsigned from) {
    for (unsigned i = from; i < model->count; i++)
        if (naive_equal_nocase(model->pairs[i].name, name))
            return (int)i;
    return -1;
}

/* The first of the name gets the value, the others go. */
static bool model_set(struct model *model, struct slice name, struct slice value) {
    int first = model_find(model, name, 0), other;
    if (first < 0)
        return model_add(model, name, value);
    model->pairs[first].value = value;
    while ((other = model_find(model, name, (unsigned)first + 1)) >= 0) {
        for (unsigned i = (unsigned)other; i + 1 < model->count; i++)
            model->pairs[i] = model->pairs[i + 1];
        model->count--;
    }
    return true;
}

/* What Connection can't take off a message, as the header of http/head.h has it. */
static bool stays(struct slice name) {
    static const char *const names[] = {"Accept-Encoding",
                                        "Age",
                                        "Authorization",
                                        "Cache-Control",
                                        "Content-Encoding",
                                        "Content-Length",
                                        "Content-Location",
                                        "Content-Range",
                                        "Content-Type",
                                        "Cookie",
                                        "Date",
                                        "ETag",
                                        "Expect",
                                        "Expires",
                                        "Forwarded",
                                        "Host",
                                        "If-Match",
                                        "If-Modified-Since",
                                        "If-None-Match",
                                        "If-Range",
                                        "If-Unmodified-Since",
                                        "Last-Modified",
                                        "Location",
                                        "Max-Forwards",
                                        "Pragma",
                                        "Range",
                                        "Set-Cookie",
                                        "Trailer",
                                        "Vary",
                                        "Via",
                                        "X-Forwarded-For"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (naive_equal_nocase(slice_from(names[i]), name))
            return true;
    return false;
}

static void model_remove_hop_by_hop(struct model *model) {
    static const char *const always[] = {"Connection", "Keep-Alive",        "Proxy-Connection",
                                         "TE",         "Transfer-Encoding", "Upgrade"};
    struct model before = *model;
    static struct naive_list list;
    for (unsigned i = 0; i < before.count; i++) {
        if (!naive_equal_nocase(before.pairs[i].name, SLICE("connection")))
            continue;
        naive_list_of(&list, before.pairs[i].value);
        for (unsigned j = 0; j < list.count; j++)
            if (!stays(list.elements[j]))
                model_remove(model, list.elements[j]);
    }
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        model_remove(model, slice_from(always[i]));
}

static void check_find(const struct http_head *head, const struct model *model, unsigned at) {
    struct slice name = model->pairs[at].name;
    int first = model_find(model, name, 0);
    ASSERT(http_head_find_text(head, name) == &head->fields[first]);
    if (head->fields[at].id == HTTP_OTHER)
        return;
    enum http_name id = head->fields[at].id;
    int next = model_find(model, name, at + 1);
    ASSERT(http_head_find(head, id) == &head->fields[first]);
    ASSERT(http_head_find_next(head, id, &head->fields[at]) ==
           (next < 0 ? NULL : &head->fields[next]));
    ASSERT(slice_equal(http_head_value(head, id), model->pairs[first].value));
}

static void check_tokens(const struct http_head *head, const struct model *model) {
    static struct naive_list list;
    bool close = false;
    for (unsigned i = 0; i < model->count; i++) {
        if (!naive_equal_nocase(model->pairs[i].name, SLICE("connection")))
            continue;
        naive_list_of(&list, model->pairs[i].value);
        for (unsigned j = 0; j < list.count; j++) {
            ASSERT(http_head_has_token(head, HTTP_CONNECTION, list.elements[j]));
            close |= naive_equal_nocase(list.elements[j], SLICE("close"));
        }
    }
    ASSERT(http_head_has_token(head, HTTP_CONNECTION, SLICE("Close")) == close);
}

static void check_same(const struct http_head *head, const struct model *model) {
    bool present[HTTP_NAME_COUNT] = {false};
    ASSERT(head->field_count == model->count);
    for (unsigned i = 0; i < model->count; i++) {
        ASSERT(naive_equal_nocase(head->fields[i].name, model->pairs[i].name));
        ASSERT(slice_equal(head->fields[i].value, model->pairs[i].value));
        ASSERT(head->fields[i].id == name_of(model->pairs[i].name));
        present[head->fields[i].id] = true;
        check_find(head, model, i);
    }
    for (int id = 0; id < HTTP_NAME_COUNT; id++) {
        ASSERT(http_head_has(head, (enum http_name)id) == present[id]);
        ASSERT((http_head_find(head, (enum http_name)id) != NULL) == present[id]);
    }
    check_tokens(head, model);
}

/* As a response: its lines stand behind the start line. */
static void check_written(const struct http_head *head, const struct model *model) {
    static const char start[] = "HTTP/1.1 200 OK\r\n";
    enum { START = sizeof start - 1 };
    struct http_head response, again;
    http_head_assign(&response, head);
    response.status = 200;
    response.reason = SLICE("OK");
    size_t length = http_head_write_response(&response, NULL, 0), expected = START;
    char *bytes = xmalloc(length + 2);
    for (unsigned i = 0; i < model->count; i++)
        expected += model->pairs[i].name.length + model->pairs[i].value.length + 4;
    ASSERT(length == expected && http_head_write_response(&response, bytes, length) == length);
    ASSERT(memcmp(bytes, start, START) == 0);
    memcpy(bytes + length, "\r\n", 2);
    ssize_t used = http_head_parse_fields(&again, bytes + START, length - START + 2);
    if (model->count > HTTP_FIELDS_MAX) {
        ASSERT(used == -HTTP_ERROR_TOO_MANY_FIELDS);
    } else {
        ASSERT(used == (ssize_t)(length - START) + 2);
        check_same(&again, model);
    }
    free(bytes);
}

/* Into a block of its own. */
static void move(struct http_head *head, struct blocks *blocks) {
    char *bytes = xmalloc(http_head_size(head));
    http_head_copy(head, head, bytes);
    ASSERT(blocks->count < BLOCKS_MAX);
    blocks->bytes[blocks->count++] = bytes;
}

static void add_or_set(struct http_head *head, struct model *model, struct blocks *blocks,
                       struct slice line, bool set) {
    struct slice name, value;
    if (!lines_field(line, &name, &value))
        return;
    enum http_name id = name_of(name);
    name = keep(blocks, name);
    value = keep(blocks, value);
    if (set && id != HTTP_OTHER)
        ASSERT(http_head_set(head, id, value) == model_set(model, http_name_text(id), value));
    else
        ASSERT(http_head_add(head, name, value) == model_add(model, name, value));
}

static void take_off(struct http_head *head, struct model *model, struct slice name, size_t size) {
    enum http_name id = name_of(name);
    unsigned removed = id != HTTP_OTHER && size % 2 == 0 ? http_head_remove(head, id)
                                                         : http_head_remove_text(head, name);
    ASSERT(removed == model_remove(model, name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { FEW = 20 }; /* long lists take long to check */
    struct lines lines = lines_of(data, size);
    static struct model model;
    struct blocks blocks = {.count = 0};
    struct http_head head;
    http_head_init(&head);
    head.version = 11;
    model.count = 0;
    while (lines.rest.length > 0 && blocks.count + 2 < BLOCKS_MAX) {
        struct slice line = lines_next(&lines);
        struct slice rest = line.length == 0 ? line : slice_make(line.base + 1, line.length - 1);
        switch (line.length == 0 ? '\0' : line.base[0]) {
        case '+': add_or_set(&head, &model, &blocks, rest, false); break;
        case '=': add_or_set(&head, &model, &blocks, rest, true); break;
        case '-': take_off(&head, &model, rest, size); break;
        case '~': move(&head, &blocks); break;
        case '!':
            http_head_remove_hop_by_hop(&head);
            model_remove_hop_by_hop(&model);
            break;
        default: continue;
        }
        if (model.count < FEW || blocks.count % FEW == 0)
            check_same(&head, &model);
    }
    check_same(&head, &model);
    check_written(&head, &model);
    while (blocks.count > 0)
        free(blocks.bytes[--blocks.count]);
    return 0;
}
