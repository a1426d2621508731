#include "cache/object.h"

#include "base/assert.h"
#include "cache/memory.h"
#include "cache/vary.h"
#include "http/date.h"

#include <stdio.h>
#include <xxhash.h>

/* Fields that belong to a delivery and not to the stored response. */
static bool made_at_delivery(enum http_name id) {
    return id == HTTP_AGE || id == HTTP_CONTENT_LENGTH || id == HTTP_CONNECTION ||
           id == HTTP_TRANSFER_ENCODING || id == HTTP_TRAILER || id == HTTP_KEEP_ALIVE ||
           id == HTTP_PROXY_CONNECTION;
}

static size_t object_put(char *at, struct slice text) {
    if (at != NULL && text.length > 0)
        memcpy(at, text.base, text.length);
    return text.length;
}

/* Writes the head when `out` is not NULL; returns its length. */
static size_t object_write_head(const struct http_head *response, char *out) {
    char line[32];
    size_t length = 0;
#define PUT(text) length += object_put(out == NULL ? NULL : out + length, (text))
    int start = snprintf(line, sizeof line, "HTTP/1.1 %u ", response->status);
    PUT(slice_make(line, (size_t)start));
    PUT(response->reason);
    PUT(SLICE("\r\n"));
    for (unsigned i = 0; i < response->field_count; i++) {
        const struct http_field *field = &response->fields[i];
        if (made_at_delivery(field->id))
            continue;
        PUT(field->name);
        PUT(SLICE(": "));
        PUT(field->value);
        PUT(SLICE("\r\n"));
    }
#undef PUT
    return length;
}

static const char *const tag_fields[] = {"surrogate-key", "cache-tag"};

static bool is_tag_field(struct slice name) {
    if (name.length != sizeof "surrogate-key" - 1 && name.length != sizeof "cache-tag" - 1)
        return false;
    return slice_equal_nocase(name, slice_from(tag_fields[0])) ||
           slice_equal_nocase(name, slice_from(tag_fields[1]));
}

static bool separates_tags(char c) {
    return c == ' ' || c == '\t' || c == ',';
}

static bool next_tag(struct slice *rest, struct slice *tag) {
    while (rest->length > 0 && separates_tags(rest->base[0]))
        *rest = slice_make(rest->base + 1, rest->length - 1);
    size_t length = 0;
    while (length < rest->length && !separates_tags(rest->base[length]))
        length++;
    *tag = slice_make(rest->base, length);
    *rest = slice_make(rest->base + length, rest->length - length);
    return length > 0;
}

unsigned object_tag_bit(struct slice tag) {
    return (unsigned)(XXH3_64bits(tag.base, tag.length) & 31);
}

static uint32_t tag_bit(struct slice tag) {
    return UINT32_C(1) << object_tag_bit(tag);
}

static uint32_t tag_bits(const struct http_head *head) {
    uint32_t bits = 0;
    for (unsigned i = 0; i < head->field_count; i++) {
        struct slice rest = head->fields[i].value, tag;
        if (is_tag_field(head->fields[i].name))
            while (next_tag(&rest, &tag))
                bits |= tag_bit(tag);
    }
    return bits;
}

static bool has_tag(struct slice list, struct slice wanted) {
    struct slice tag;
    while (next_tag(&list, &tag))
        if (slice_equal(tag, wanted))
            return true;
    return false;
}

bool object_may_have_tag(const struct object *object, struct slice tag) {
    return (object->tags & tag_bit(tag)) != 0;
}

/* Goes through the lines without parsing the head: parsing takes ten times as long, and a purge may
 * have to read a million heads. */
void object_each_tag(const struct object *object, void (*see)(void *arg, struct slice tag),
                     void *arg) {
    struct slice head = object_head(object), tag;
    const char *at = head.base, *end = head.base + head.length, *line;
    for (; (line = memchr(at, '\n', (size_t)(end - at))) != NULL; at = line + 1) {
        const char *colon = memchr(at, ':', (size_t)(line - at));
        if (colon == NULL || !is_tag_field(slice_make(at, (size_t)(colon - at))))
            continue;
        struct slice rest = slice_make(colon + 2, (size_t)(line - 1 - (colon + 2)));
        while (next_tag(&rest, &tag))
            see(arg, tag);
    }
}

/* Goes through the lines like object_each_tag, and stops at the tag. */
bool object_has_tag(const struct object *object, struct slice tag) {
    struct slice head = object_head(object);
    const char *at = head.base, *end = head.base + head.length, *line;
    if (!object_may_have_tag(object, tag))
        return false;
    for (; (line = memchr(at, '\n', (size_t)(end - at))) != NULL; at = line + 1) {
        const char *colon = memchr(at, ':', (size_t)(line - at));
        if (colon != NULL && is_tag_field(slice_make(at, (size_t)(colon - at))) &&
            has_tag(slice_make(colon + 2, (size_t)(line - 1 - (colon + 2))), tag))
            return true;
    }
    return false;
}

static int32_t object_clamp(int64_t value) {
    return (int32_t)(value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}

static uint32_t clamp_time(time_t value) {
    return (uint32_t)(value > UINT32_MAX ? UINT32_MAX : value < 0 ? 0 : value);
}

static void set_freshness(struct object *object, const struct freshness *freshness) {
    atomic_init(&object->lifetime, object_clamp(freshness->lifetime));
    object->initial_age = object_clamp(freshness->initial_age);
    object->stale_if_error = object_clamp(freshness->stale_if_error);
    object->stale_while_revalidate = object_clamp(freshness->stale_while_revalidate);
    object->response_time = clamp_time(freshness->response_time);
    atomic_init(&object->traits,
                (uint8_t)((freshness->always_revalidate ? OBJECT_ALWAYS_REVALIDATE : 0) |
                          (freshness->never_stale ? OBJECT_NEVER_STALE : 0) |
                          (freshness->heuristic ? OBJECT_HEURISTIC : 0) |
                          (freshness->expired ? OBJECT_EXPIRED : 0)));
}

void object_set_lifetime(struct object *object, int64_t seconds, time_t now) {
    struct freshness freshness = object_freshness(object);
    int64_t age = freshness_age(&freshness, now);
    if (seconds > 0)
        atomic_fetch_and_explicit(&object->traits,
                                  (uint8_t) ~(OBJECT_ALWAYS_REVALIDATE | OBJECT_EXPIRED),
                                  memory_order_relaxed);
    else
        atomic_fetch_or_explicit(&object->traits, OBJECT_EXPIRED, memory_order_relaxed);
    if (seconds <= 0 && freshness.lifetime < age)
        return;
    atomic_store_explicit(&object->lifetime, object_clamp(age + seconds), memory_order_relaxed);
}

void object_outdate(struct object *object, bool doubted, time_t now) {
    object_set_lifetime(object, 0, now);
    if (doubted)
        atomic_fetch_or_explicit(&object->traits, OBJECT_ALWAYS_REVALIDATE, memory_order_relaxed);
}

/* Dates that 32 bits can't hold count as missing. */
static void set_dates(struct object *object, const struct http_head *response) {
    struct slice modified = http_head_value(response, HTTP_LAST_MODIFIED);
    struct slice date = http_head_value(response, HTTP_DATE);
    time_t at;
    object->changed_by = object->response_time;
    if (modified.base != NULL && http_date_parse(modified, &at) && at > 0 && at <= UINT32_MAX) {
        object->changed_by = (uint32_t)at;
        atomic_fetch_or_explicit(&object->traits, OBJECT_HAS_MODIFIED, memory_order_relaxed);
    } else if (date.base != NULL && http_date_parse(date, &at)) {
        object->changed_by = clamp_time(at);
    }
}

/* The value of the first field whose line begins with `name`, which includes the colon and the
 * blank. base NULL: there is no such field, or a uint16_t can't hold its place. */
static struct slice value_near(const struct object *object, struct slice name) {
    struct slice head = object_head(object);
    const char *at = head.base, *end = at + head.length, *line_end;
    for (; (line_end = memchr(at, '\r', (size_t)(end - at))) != NULL; at = line_end + 2) {
        struct slice line = slice_make(at, (size_t)(line_end - at));
        if (slice_starts_with_nocase(line, name) && at + name.length - head.base <= UINT16_MAX)
            return slice_make(at + name.length, line.length - name.length);
    }
    return slice_make(NULL, 0);
}

static size_t in_head(const struct object *object, struct slice value) {
    return (size_t)(value.base - object_head(object).base);
}

static void set_etag(struct object *object) {
    struct slice etag = value_near(object, SLICE("ETag: "));
    if (etag.length == 0 || etag.length > UINT16_MAX)
        return; /* an ETag that is too long counts as none */
    object->etag_at = (uint16_t)in_head(object, etag);
    object->etag_length = (uint16_t)etag.length;
}

static void object_set_type(struct object *object) {
    struct slice type = value_near(object, SLICE("Content-Type: "));
    object->type_at = type.base != NULL ? (uint16_t)in_head(object, type) : 0;
}

static size_t object_size_of(const struct object *object) {
    return offsetof(struct object, bytes) + object->url_length + object->head_length +
           object->vary_length;
}

size_t object_cost(const struct object *object) {
    bool shares =
        object_provenance(object).kind == OBJECT_LEFT_ALONE; /* the stored response's body */
    return memory_cost(object_size_of(object)) + (shares ? 0 : body_cost(object->body));
}

/* A number is written with six bits in each byte. Each byte is a letter or a sign, never a line
 * end, and is quick to read. */
enum { PROVENANCE_DIGITS = 6, PROVENANCE_DIGIT = 0x40, PROVENANCE_TAG_AT = 1 + PROVENANCE_DIGITS };
enum { PROVENANCE_KIND_AT = PROVENANCE_TAG_AT + PROVENANCE_DIGITS };

static void object_put_number(char *at, uint32_t number) {
    for (int i = 0; i < PROVENANCE_DIGITS; i++, number >>= 6)
        at[i] = (char)(PROVENANCE_DIGIT | (number & 63));
}

static uint32_t read_number(const char *at) {
    uint64_t number = 0;
    for (int i = PROVENANCE_DIGITS - 1; i >= 0; i--)
        number = number << 6 | (uint64_t)(at[i] & 63);
    return (uint32_t)number;
}

static bool object_is_number(const char *at) {
    for (int i = 0; i < PROVENANCE_DIGITS; i++)
        if ((at[i] & 0xc0) != PROVENANCE_DIGIT)
            return false;
    return true;
}

bool object_source_is_known(const struct object_source *source) {
    static const struct object_source unknown;
    return !object_source_equal(source, &unknown);
}

bool object_source_equal(const struct object_source *a, const struct object_source *b) {
    return memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

static void write_source(const struct object_source *source, char out[OBJECT_SOURCE]) {
    uint32_t number;
    out[0] = '@'; /* no field that Vary names begins so */
    out[1] = ':';
    for (size_t i = 0; i < sizeof source->ip / sizeof number; i++) {
        memcpy(&number, source->ip + i * sizeof number, sizeof number);
        object_put_number(out + 2 + i * PROVENANCE_DIGITS, number);
    }
    out[OBJECT_SOURCE - 1] = '\n';
}

/* `line`: where the line of a source would stand. */
static struct object_source read_source(struct slice line) {
    struct object_source source = {{0}};
    uint32_t number;
    if (line.length < OBJECT_SOURCE || line.base[0] != '@')
        return source;
    for (size_t i = 0; i < sizeof source.ip / sizeof number; i++) {
        number = read_number(line.base + 2 + i * PROVENANCE_DIGITS);
        memcpy(source.ip + i * sizeof number, &number, sizeof number);
    }
    return source;
}

static bool object_is_source(struct slice line) {
    for (size_t i = 0; i < 4 && line.length >= OBJECT_SOURCE; i++)
        if (!object_is_number(line.base + 2 + i * PROVENANCE_DIGITS))
            return false;
    return line.length >= OBJECT_SOURCE && line.base[1] == ':' &&
           line.base[OBJECT_SOURCE - 1] == '\n';
}

static void write_provenance(const struct object_provenance *provenance,
                             char out[OBJECT_PROVENANCE]) {
    out[0] = ':';
    object_put_number(out + 1, provenance->chain);
    object_put_number(out + PROVENANCE_TAG_AT, provenance->tag);
    out[PROVENANCE_KIND_AT] = (char)('0' + provenance->kind);
    out[OBJECT_PROVENANCE - 1] = '\n';
}

struct object_provenance object_provenance(const struct object *object) {
    struct slice vary = object_vary(object);
    const char *line = vary.base;
    if (!object_is_made(object))
        return (struct object_provenance){.source = read_source(vary)};
    return (struct object_provenance){
        .kind = (enum object_kind)(line[PROVENANCE_KIND_AT] - '0'),
        .chain = read_number(line + 1),
        .tag = read_number(line + PROVENANCE_TAG_AT),
        .source =
            read_source(slice_make(line + OBJECT_PROVENANCE, vary.length - OBJECT_PROVENANCE)),
    };
}

uint32_t object_chain(const struct object *object) {
    const char *line = object_vary(object).base;
    return object_is_made(object) && (line[PROVENANCE_KIND_AT] == '0' + OBJECT_MADE ||
                                      line[PROVENANCE_KIND_AT] == '0' + OBJECT_LEFT_ALONE)
               ? read_number(line + 1)
               : 0;
}

static struct object *new_with_room(struct cache_key key, size_t url_length, size_t head_length,
                                    size_t vary_length, struct body *body) {
    struct object *object =
        memory_need(offsetof(struct object, bytes) + url_length + head_length + vary_length);
    memset(object, 0, offsetof(struct object, bytes));
    object->magic = OBJECT_MAGIC;
    atomic_init(&object->references, 1);
    object->key = key;
    object->body = body_reference(body);
    list_init(&object->eviction);
    object->url_length = (uint32_t)url_length;
    object->head_length = (uint32_t)head_length;
    object->vary_length = (uint32_t)vary_length;
    return object;
}

struct object *object_new(struct cache_key key, struct slice url, const struct http_head *request,
                          const struct http_head *response, const struct freshness *freshness,
                          struct body *body) {
    static const struct object_provenance none = {0};
    return object_new_made(key, url, request, response, freshness, body, &none, NULL);
}

struct object *object_new_made(struct cache_key key, struct slice url,
                               const struct http_head *request, const struct http_head *response,
                               const struct freshness *freshness, struct body *body,
                               const struct object_provenance *provenance,
                               const struct slice *selector) {
    size_t head_length = object_write_head(response, NULL);
    size_t provenance_length = provenance->kind != OBJECT_UNSEEN ? OBJECT_PROVENANCE : 0;
    size_t source_length = object_source_is_known(&provenance->source) ? OBJECT_SOURCE : 0;
    size_t vary_length =
        selector != NULL ? selector->length : vary_write(request, response, NULL, 0);
    struct object *object = new_with_room(key, url.length, head_length,
                                          provenance_length + source_length + vary_length, body);
    object->status = (uint16_t)response->status;
    /* The URL stands first: when PCRE2's machine code searches it, the code reads a few bytes past
     * its end. */
    char *head = object->bytes + url.length;
    memcpy(object->bytes, url.base, url.length);
    object_write_head(response, head);
    char *vary = head + head_length;
    if (provenance_length > 0)
        write_provenance(provenance, vary);
    vary += provenance_length;
    if (source_length > 0)
        write_source(&provenance->source, vary);
    vary += source_length;
    if (selector != NULL)
        object_put(vary, *selector);
    else
        vary_write(request, response, vary, vary_length);
    object->tags = tag_bits(response);
    set_freshness(object, freshness);
    set_dates(object, response);
    if (http_head_has(response, HTTP_ETAG))
        set_etag(object);
    if (http_head_has(response, HTTP_CONTENT_TYPE))
        object_set_type(object);
    return object;
}

void object_export(const struct object *object, struct object_image *image) {
    *image = (struct object_image){
        .lifetime = atomic_load_explicit(&object->lifetime, memory_order_relaxed),
        .initial_age = object->initial_age,
        .stale_if_error = object->stale_if_error,
        .stale_while_revalidate = object->stale_while_revalidate,
        .response_time = object->response_time,
        .changed_by = object->changed_by,
        .tags = object->tags,
        .etag_at = object->etag_at,
        .etag_length = object->etag_length,
        .status = object->status,
        .scope = object->scope,
        .traits = atomic_load_explicit(&object->traits, memory_order_relaxed),
    };
}

/* Does the text consist of lines that end with LF (or CRLF) and have a colon, with at least as many
 * bytes from the colon on as the separator has? */
static bool has_lines(struct slice text, size_t separator_length, bool with_cr) {
    while (text.length > 0) {
        const char *end = memchr(text.base, '\n', text.length);
        if (end == NULL)
            return false;
        size_t length = (size_t)(end - text.base);
        const char *colon = memchr(text.base, ':', length);
        if (colon == NULL || (with_cr && (length == 0 || end[-1] != '\r')) ||
            (size_t)(colon - text.base) + separator_length + with_cr > length)
            return false;
        text = slice_make(end + 1, text.length - length - 1);
    }
    return true;
}

/* Has the head the form that object_write_head gives it? object_parse_head relies on that form. */
static bool is_stored_head(struct slice head, unsigned status) {
    char line[] = "HTTP/1.1 000 ";
    const size_t length = sizeof line - 1, digits = sizeof "HTTP/1.1 " - 1;
    for (unsigned i = 0, left = status; i < 3; i++, left /= 10)
        line[digits + 2 - i] = (char)('0' + left % 10);
    const char *end = memchr(head.base, '\n', head.length);
    if (status < 100 || status > 999 || end == NULL ||
        !slice_starts_with(head, slice_make(line, length)) || end[-1] != '\r' ||
        (size_t)(end - head.base) < length + 1)
        return false;
    size_t first = (size_t)(end + 1 - head.base);
    return has_lines(slice_make(end + 1, head.length - first), 2, true);
}

/* Has the vary the form that write_provenance, write_source and vary_write give it? A making and a
 * source are optional. An object that is stored elsewhere is never a variant made by services. */
static bool is_stored_vary(struct slice vary) {
    if (vary.length > 0 && vary.base[0] == ':' &&
        (vary.length < OBJECT_PROVENANCE || !object_is_number(vary.base + 1) ||
         !object_is_number(vary.base + PROVENANCE_TAG_AT) ||
         (vary.base[PROVENANCE_KIND_AT] != '0' + OBJECT_SEEN &&
          vary.base[PROVENANCE_KIND_AT] != '0' + OBJECT_UNABLE) ||
         vary.base[OBJECT_PROVENANCE - 1] != '\n'))
        return false;
    size_t provenance = vary.length > 0 && vary.base[0] == ':' ? OBJECT_PROVENANCE : 0;
    struct slice rest = slice_make(vary.base + provenance, vary.length - provenance);
    if (rest.length > 0 && rest.base[0] == '@') {
        if (!object_is_source(rest))
            return false;
        rest = slice_make(rest.base + OBJECT_SOURCE, rest.length - OBJECT_SOURCE);
    }
    bool again = rest.length > 0 && (rest.base[0] == ':' || rest.base[0] == '@');
    return !again && has_lines(rest, 1, false);
}

struct object *object_import(struct cache_key key, const struct object_image *image,
                             struct slice url, struct slice head, struct slice vary,
                             struct body *body) {
    if (!is_stored_head(head, image->status) || !is_stored_vary(vary) ||
        image->scope >= OBJECT_SCOPES || image->etag_at > head.length ||
        image->etag_length > head.length - image->etag_at)
        return NULL;
    struct object *object = new_with_room(key, url.length, head.length, vary.length, body);
    object_put(object->bytes, url);
    object_put(object->bytes + url.length, head);
    object_put(object->bytes + url.length + head.length, vary);
    atomic_init(&object->lifetime, image->lifetime);
    object->initial_age = image->initial_age;
    object->stale_if_error = image->stale_if_error;
    object->stale_while_revalidate = image->stale_while_revalidate;
    object->response_time = image->response_time;
    object->changed_by = image->changed_by;
    object->tags = image->tags;
    object->etag_at = image->etag_at;
    object->etag_length = image->etag_length;
    object->status = image->status;
    object->scope = image->scope;
    atomic_init(&object->traits, image->traits);
    object_set_type(object);
    return object;
}

struct object *object_reference(struct object *object) {
    CHECK_OBJ(object, OBJECT_MAGIC);
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
    return object;
}

void object_prefetch_release(const struct object *object) {
    memory_prefetch_free(object, object_size_of(object));
    body_prefetch_release(object->body);
}

void object_release(struct object **objectp) {
    struct object *object = *objectp;
    *objectp = NULL;
    if (object == NULL)
        return;
    CHECK_OBJ(object, OBJECT_MAGIC);
    if (atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) != 1)
        return;
    ASSERT(!object->indexed);
    body_release(&object->body);
    object->magic = 0;
    memory_free(object, object_size_of(object));
}

void object_parse_head(const struct object *object, struct http_head *head) {
    /* The stored head lacks the empty line, so this function reads the status line and the
     * fields itself. */
    http_head_init(head);
    struct slice rest = object_head(object);
    head->version = 11;
    head->status = object->status;
    const char *end = memchr(rest.base, '\n', rest.length);
    ASSERT(end != NULL && (size_t)(end - rest.base) >= sizeof "HTTP/1.1 200 \r" - 1);
    const char *reason = rest.base + sizeof "HTTP/1.1 200 " - 1;
    head->reason = slice_make(reason, (size_t)(end - 1 - reason));
    rest.length -= (size_t)(end + 1 - rest.base);
    rest.base = end + 1;
    while (rest.length > 0) {
        end = memchr(rest.base, '\n', rest.length);
        const char *colon = memchr(rest.base, ':', rest.length);
        ASSERT(end != NULL && colon != NULL && colon < end);
        struct slice value = slice_make(colon + 2, (size_t)(end - 1 - (colon + 2)));
        http_head_add(head, slice_make(rest.base, (size_t)(colon - rest.base)), value);
        rest.length -= (size_t)(end + 1 - rest.base);
        rest.base = end + 1;
    }
}

bool object_matches(const struct object *object, const struct http_head *request,
                    enum object_scope scope) {
    return (object->scope == scope || object->scope == OBJECT_FOR_ALL) &&
           vary_matches(object_selector(object), request);
}

bool object_same_variant(const struct object *a, const struct object *b) {
    return a->scope == b->scope && object_chain(a) == object_chain(b) &&
           slice_equal(object_selector(a), object_selector(b));
}

bool object_overlaps(const struct object *a, const struct object *b) {
    const struct cache_name name = object_name(a);
    return object_has_name(b, &name) &&
           (a->scope == b->scope || a->scope == OBJECT_FOR_ALL || b->scope == OBJECT_FOR_ALL) &&
           vary_overlaps(object_selector(a), object_selector(b));
}

bool object_is_made_of(const struct object *made, const struct object *stored) {
    return object_chain(made) != 0 && object_chain(stored) == 0 && made->scope == stored->scope &&
           slice_starts_with(object_selector(made), object_selector(stored));
}

/* Space in a merged head for fields that are added at delivery, such as Content-Range. */
enum { MERGED_SPARE = 8 };

/* Fields that a 304 does not change, because they describe the stored bytes. */
static bool kept_from_stored(enum http_name id) {
    return id == HTTP_CONTENT_LENGTH || id == HTTP_CONTENT_ENCODING || id == HTTP_CONTENT_RANGE ||
           id == HTTP_CONTENT_MD5 || id == HTTP_CONTENT_DIGEST || id == HTTP_REPR_DIGEST ||
           id == HTTP_DIGEST || id == HTTP_ETAG || made_at_delivery(id);
}

bool object_merge_head(const struct object *object, const struct http_head *not_modified,
                       struct http_head *merged) {
    struct slice accepted = SLICE("Accept-Encoding");
    object_parse_head(object, merged);
    bool coded = http_head_has(merged, HTTP_CONTENT_ENCODING) &&
                 http_head_has_token(merged, HTTP_VARY, accepted);
    for (unsigned i = 0; i < not_modified->field_count; i++)
        if (!kept_from_stored(not_modified->fields[i].id))
            http_head_remove_text(merged, not_modified->fields[i].name);
    bool all = true;
    for (unsigned i = 0; i < not_modified->field_count; i++)
        if (!kept_from_stored(not_modified->fields[i].id))
            all &=
                http_head_add(merged, not_modified->fields[i].name, not_modified->fields[i].value);
    const struct http_field *age = http_head_find(not_modified, HTTP_AGE);
    if (age != NULL)
        all &= http_head_add(merged, age->name, age->value);
    /* A service may have encoded the bytes. The origin does not know that, and its 304 may leave
     * Accept-Encoding out of Vary. */
    if (coded && !http_head_has_token(merged, HTTP_VARY, accepted))
        all &= http_head_add(merged, http_name_text(HTTP_VARY), accepted);
    return all && merged->field_count + MERGED_SPARE <= HTTP_FIELDS_ROOM;
}
