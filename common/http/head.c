#include "http/head.h"

#include "base/assert.h"

const struct http_field *http_head_find(const struct http_head *head, enum http_name id) {
    if (!http_head_has(head, id))
        return NULL;
    return http_head_find_next(head, id, NULL);
}

/* Searches from the first field on when `after` is NULL. */
const struct http_field *http_head_find_next(const struct http_head *head, enum http_name id,
                                             const struct http_field *after) {
    const struct http_field *end = head->fields + head->field_count;
    for (const struct http_field *f = after == NULL ? head->fields : after + 1; f < end; f++)
        if (f->id == id)
            return f;
    return NULL;
}

static inline bool http_head_is_named(const struct http_field *field, enum http_name id,
                                      struct slice name) {
    return field->id == id && (id != HTTP_OTHER || slice_equal_nocase(field->name, name));
}

const struct http_field *http_head_find_text(const struct http_head *head, struct slice name) {
    enum http_name id = http_name_lookup(name);
    const struct http_field *field = http_head_find(head, id);
    while (field != NULL && !http_head_is_named(field, id, name))
        field = http_head_find_next(head, id, field);
    return field;
}

struct slice http_head_value(const struct http_head *head, enum http_name id) {
    const struct http_field *field = http_head_find(head, id);
    return field == NULL ? slice_make(NULL, 0) : field->value;
}

bool http_head_has_token(const struct http_head *head, enum http_name id, struct slice token) {
    const struct http_field *field = http_head_find(head, id);
    for (; field != NULL; field = http_head_find_next(head, id, field)) {
        struct slice rest = field->value, element;
        while (slice_next_element(&rest, &element))
            if (slice_equal_nocase(element, token))
                return true;
    }
    return false;
}

static bool http_head_append(struct http_head *head, enum http_name id, struct slice name,
                             struct slice value) {
    if (head->field_count == HTTP_FIELDS_ROOM)
        return false;
    head->fields[head->field_count++] = (struct http_field){name, value, id};
    http_head_note(head, id);
    return true;
}

bool http_head_add(struct http_head *head, struct slice name, struct slice value) {
    return http_head_append(head, http_name_lookup(name), name, value);
}

/* The first field of the name keeps its place. */
bool http_head_set(struct http_head *head, enum http_name id, struct slice value) {
    ASSERT(id != HTTP_OTHER);
    const struct http_field *first = http_head_find(head, id);
    if (first == NULL)
        return http_head_append(head, id, http_name_text(id), value);
    unsigned kept = (unsigned)(first - head->fields);
    head->fields[kept++].value = value;
    for (unsigned i = kept; i < head->field_count; i++)
        if (head->fields[i].id != id)
            head->fields[kept++] = head->fields[i];
    head->field_count = kept;
    return true;
}

/* Removes the marked fields. `present` is computed again, because HTTP_OTHER stands for many names.
 * Returns how many fields were removed. */
static unsigned remove_marked(struct http_head *head, const bool *marked) {
    unsigned kept = 0, count = head->field_count;
    memset(head->present, 0, sizeof head->present);
    for (unsigned i = 0; i < count; i++) {
        if (marked[i])
            continue;
        if (kept != i)
            head->fields[kept] = head->fields[i];
        http_head_note(head, head->fields[kept++].id);
    }
    head->field_count = kept;
    return count - kept;
}

static void mark_named(const struct http_head *head, bool *marked, enum http_name id,
                       struct slice name) {
    if (!http_head_has(head, id))
        return;
    for (unsigned i = 0; i < head->field_count; i++)
        if (http_head_is_named(&head->fields[i], id, name))
            marked[i] = true;
}

unsigned http_head_remove(struct http_head *head, enum http_name id) {
    ASSERT(id != HTTP_OTHER);
    if (!http_head_has(head, id))
        return 0;
    unsigned kept = 0, count = head->field_count;
    for (unsigned i = 0; i < count; i++) {
        if (head->fields[i].id == id)
            continue;
        if (kept != i)
            head->fields[kept] = head->fields[i];
        kept++;
    }
    head->field_count = kept;
    head->present[id / 64] &= ~((uint64_t)1 << (id % 64));
    return count - kept;
}

unsigned http_head_remove_text(struct http_head *head, struct slice name) {
    bool marked[HTTP_FIELDS_ROOM] = {false};
    mark_named(head, marked, http_name_lookup(name), name);
    return remove_marked(head, marked);
}

enum hop {
    END_TO_END,        /* forwarded, unless Connection names it */
    END_TO_END_ALWAYS, /* forwarded even if Connection names it: the message depends on it */
    THIS_HOP,
};

static const uint8_t hops[HTTP_NAME_COUNT] = {
    [HTTP_CONNECTION] = THIS_HOP,
    [HTTP_KEEP_ALIVE] = THIS_HOP,
    [HTTP_PROXY_CONNECTION] = THIS_HOP,
    [HTTP_TE] = THIS_HOP,
    [HTTP_TRANSFER_ENCODING] = THIS_HOP,
    [HTTP_UPGRADE] = THIS_HOP,

    [HTTP_ACCEPT_ENCODING] = END_TO_END_ALWAYS,
    [HTTP_AGE] = END_TO_END_ALWAYS,
    [HTTP_AUTHORIZATION] = END_TO_END_ALWAYS,
    [HTTP_CACHE_CONTROL] = END_TO_END_ALWAYS,
    [HTTP_CONTENT_ENCODING] = END_TO_END_ALWAYS,
    [HTTP_CONTENT_LENGTH] = END_TO_END_ALWAYS,
    [HTTP_CONTENT_LOCATION] = END_TO_END_ALWAYS,
    [HTTP_CONTENT_RANGE] = END_TO_END_ALWAYS,
    [HTTP_CONTENT_TYPE] = END_TO_END_ALWAYS,
    [HTTP_COOKIE] = END_TO_END_ALWAYS,
    [HTTP_DATE] = END_TO_END_ALWAYS,
    [HTTP_ETAG] = END_TO_END_ALWAYS,
    [HTTP_EXPECT] = END_TO_END_ALWAYS,
    [HTTP_EXPIRES] = END_TO_END_ALWAYS,
    [HTTP_FORWARDED] = END_TO_END_ALWAYS,
    [HTTP_HOST] = END_TO_END_ALWAYS,
    [HTTP_IF_MATCH] = END_TO_END_ALWAYS,
    [HTTP_IF_MODIFIED_SINCE] = END_TO_END_ALWAYS,
    [HTTP_IF_NONE_MATCH] = END_TO_END_ALWAYS,
    [HTTP_IF_RANGE] = END_TO_END_ALWAYS,
    [HTTP_IF_UNMODIFIED_SINCE] = END_TO_END_ALWAYS,
    [HTTP_LAST_MODIFIED] = END_TO_END_ALWAYS,
    [HTTP_LOCATION] = END_TO_END_ALWAYS,
    [HTTP_MAX_FORWARDS] = END_TO_END_ALWAYS,
    [HTTP_PRAGMA] = END_TO_END_ALWAYS,
    [HTTP_RANGE] = END_TO_END_ALWAYS,
    [HTTP_SET_COOKIE] = END_TO_END_ALWAYS,
    [HTTP_SET_COOKIE2] = END_TO_END_ALWAYS,
    [HTTP_TRAILER] = END_TO_END_ALWAYS,
    [HTTP_VARY] = END_TO_END_ALWAYS,
    [HTTP_VIA] = END_TO_END_ALWAYS,
    [HTTP_X_FORWARDED_FOR] = END_TO_END_ALWAYS,
};

/* What proxies in front say of the client. A client must not have it dropped on the way (RFC 9110
 * §7.6.1: no connection option is for fields that all recipients need). */
static bool is_of_proxies(struct slice name) {
    return slice_starts_with_nocase(name, SLICE("X-Forwarded-")) ||
           slice_equal_nocase(name, SLICE("X-Real-IP"));
}

static void mark_connection_options(const struct http_head *head, bool *marked) {
    const struct http_field *field = http_head_find(head, HTTP_CONNECTION);
    for (; field != NULL; field = http_head_find_next(head, HTTP_CONNECTION, field)) {
        struct slice rest = field->value, option;
        while (slice_next_element(&rest, &option)) {
            enum http_name id = http_name_lookup(option);
            if (hops[id] == END_TO_END && !is_of_proxies(option))
                mark_named(head, marked, id, option);
        }
    }
}

/* What Connection says of the connection itself. */
static bool is_of_connection(struct slice option) {
    static const char *const options[] = {"close", "keep-alive", "upgrade", "te", ""};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (slice_equal_nocase(option, slice_from(options[i])))
            return true;
    return false;
}

bool http_head_names_fields(const struct http_head *head) {
    const struct http_field *field = http_head_find(head, HTTP_CONNECTION);
    for (; field != NULL; field = http_head_find_next(head, HTTP_CONNECTION, field)) {
        struct slice rest = field->value, option;
        while (slice_next_element(&rest, &option))
            if (!is_of_connection(option))
                return true;
    }
    return false;
}

/* Most heads that are looked at a second time have none. */
static bool has_hop_by_hop(const struct http_head *head) {
    return http_head_has(head, HTTP_CONNECTION) || http_head_has(head, HTTP_KEEP_ALIVE) ||
           http_head_has(head, HTTP_PROXY_CONNECTION) || http_head_has(head, HTTP_TE) ||
           http_head_has(head, HTTP_TRANSFER_ENCODING) || http_head_has(head, HTTP_UPGRADE);
}

void http_head_remove_hop_by_hop(struct http_head *head) {
    if (!has_hop_by_hop(head))
        return;
    bool marked[HTTP_FIELDS_ROOM] = {false};
    mark_connection_options(head, marked);
    for (unsigned i = 0; i < head->field_count; i++)
        if (hops[head->fields[i].id] == THIS_HOP)
            marked[i] = true;
    remove_marked(head, marked);
}

void http_head_remove_set_cookies(struct http_head *head) {
    http_head_remove(head, HTTP_SET_COOKIE);
    http_head_remove(head, HTTP_SET_COOKIE2);
}

void http_head_remove_framing(struct http_head *head) {
    http_head_remove(head, HTTP_CONTENT_LENGTH);
    http_head_remove(head, HTTP_TRANSFER_ENCODING);
    http_head_remove(head, HTTP_TRAILER);
}

size_t http_head_size(const struct http_head *head) {
    size_t size = head->method.length + head->target.length + head->reason.length;
    for (unsigned i = 0; i < head->field_count; i++)
        size += head->fields[i].name.length + head->fields[i].value.length;
    return size;
}

static inline char *http_head_put(char *at, struct slice bytes) {
    if (bytes.length > 0)
        memcpy(at, bytes.base, bytes.length);
    return at + bytes.length;
}

static inline struct slice copy_slice(struct slice slice, char **at) {
    struct slice copy = slice_make(slice.base == NULL ? NULL : *at, slice.length);
    *at = http_head_put(*at, slice);
    return copy;
}

void http_head_copy(struct http_head *to, const struct http_head *from, char *bytes) {
    char *at = bytes;
    if (to != from)
        memcpy(to, from, offsetof(struct http_head, fields));
    to->method = copy_slice(from->method, &at);
    to->target = copy_slice(from->target, &at);
    to->reason = copy_slice(from->reason, &at);
    for (unsigned i = 0; i < from->field_count; i++) {
        to->fields[i].name = copy_slice(from->fields[i].name, &at);
        to->fields[i].value = copy_slice(from->fields[i].value, &at);
        to->fields[i].id = from->fields[i].id;
    }
}

void http_head_assign(struct http_head *to, const struct http_head *from) {
    memcpy(to, from, offsetof(struct http_head, fields) + from->field_count * sizeof *from->fields);
}

static size_t fields_size(const struct http_head *head) {
    size_t size = 0;
    for (unsigned i = 0; i < head->field_count; i++)
        size += head->fields[i].name.length + head->fields[i].value.length + strlen(": \r\n");
    return size;
}

static void put_fields(const struct http_head *head, char *at) {
    for (unsigned i = 0; i < head->field_count; i++) {
        at = http_head_put(at, head->fields[i].name);
        at = http_head_put(at, SLICE(": "));
        at = http_head_put(at, head->fields[i].value);
        at = http_head_put(at, SLICE("\r\n"));
    }
}

size_t http_head_write_request(const struct http_head *head, char *out, size_t capacity) {
    size_t size =
        head->method.length + head->target.length + strlen("  HTTP/1.1\r\n") + fields_size(head);
    if (size > capacity)
        return size;
    char *at = http_head_put(out, head->method);
    *at++ = ' ';
    at = http_head_put(at, head->target);
    at = http_head_put(at, SLICE(" HTTP/1.1\r\n"));
    put_fields(head, at);
    return size;
}

/* A head without a reason gets the standard one. */
size_t http_head_write_response(const struct http_head *head, char *out, size_t capacity) {
    ASSERT(head->status >= 100 && head->status <= 999);
    struct slice reason = head->reason;
    if (reason.base == NULL)
        reason = slice_from(http_reason(head->status));
    size_t size = strlen("HTTP/1.1 200 \r\n") + reason.length + fields_size(head);
    if (size > capacity)
        return size;
    char *at = http_head_put(out, SLICE("HTTP/1.1 "));
    *at++ = (char)('0' + head->status / 100);
    *at++ = (char)('0' + head->status / 10 % 10);
    *at++ = (char)('0' + head->status % 10);
    *at++ = ' ';
    at = http_head_put(at, reason);
    at = http_head_put(at, SLICE("\r\n"));
    put_fields(head, at);
    return size;
}

struct slice http_head_text(const struct http_head *head,
                            size_t (*write)(const struct http_head *, char *, size_t),
                            struct arena *arena) {
    size_t length = write(head, NULL, 0);
    char *bytes = arena_alloc(arena, length + 2);
    write(head, bytes, length);
    memcpy(bytes + length, "\r\n", 2);
    return slice_make(bytes, length + 2);
}

struct slice http_head_joined_value(const struct http_head *head, enum http_name id,
                                    struct arena *arena) {
    const struct http_field *first = http_head_find(head, id), *field = first;
    if (first == NULL)
        return slice_make("", 0);
    struct slice pieces[2 * HTTP_FIELDS_ROOM] = {first->value};
    unsigned count = 1;
    while ((field = http_head_find_next(head, id, field)) != NULL) {
        pieces[count++] = SLICE(", ");
        pieces[count++] = field->value;
    }
    return count == 1 ? first->value : arena_join(arena, pieces, count);
}

struct slice http_head_joined_text(const struct http_head *head, struct slice name,
                                   struct arena *arena) {
    struct slice pieces[2 * HTTP_FIELDS_ROOM];
    unsigned count = 0;
    for (unsigned i = 0; i < head->field_count; i++) {
        if (!slice_equal_nocase(head->fields[i].name, name))
            continue;
        if (count > 0)
            pieces[count++] = SLICE(", ");
        pieces[count++] = head->fields[i].value;
    }
    return count == 0   ? slice_make("", 0)
           : count == 1 ? pieces[0]
                        : arena_join(arena, pieces, count);
}
