#include "http/head.h"

#include "base/assert.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* What a byte may be part of. */
enum {
    TOKEN = 1,  /* a name or a method: RFC 9110 §5.6.2 */
    TARGET = 2, /* a request target: what is visible, and bytes above 0x7f */
    TEXT = 4,   /* a value or a reason phrase: the same with SP and HTAB */
    VISIBLE = TARGET | TEXT,
    ANYWHERE = TOKEN | VISIBLE,
};

static const uint8_t classes[256] = {
    ['\t'] = TEXT,
    [' '] = TEXT,
    ['!'] = ANYWHERE,
    ['"'] = VISIBLE,
    ['#' ... '\''] = ANYWHERE,
    ['('] = VISIBLE,
    [')'] = VISIBLE,
    ['*'] = ANYWHERE,
    ['+'] = ANYWHERE,
    [','] = VISIBLE,
    ['-'] = ANYWHERE,
    ['.'] = ANYWHERE,
    ['/'] = VISIBLE,
    ['0' ... '9'] = ANYWHERE,
    [':' ... '@'] = VISIBLE,
    ['A' ... 'Z'] = ANYWHERE,
    ['[' ... ']'] = VISIBLE,
    ['^' ... 'z'] = ANYWHERE,
    ['{'] = VISIBLE,
    ['|'] = ANYWHERE,
    ['}'] = VISIBLE,
    ['~'] = ANYWHERE,
    [0x80 ... 0xff] = VISIBLE,
};

/* The bytes not read yet. */
struct scan {
    const char *at, *end;
};

/* What the parts of the parser return; below zero it is the negative of an enum http_error. */
enum { MORE = 0, TAKEN = 1, BAD = -HTTP_ERROR_SYNTAX };

static inline bool is_class(char c, unsigned class) {
    return classes[(unsigned char)c] & class;
}

static inline bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* The first byte that is not of the class, which is TARGET or TEXT. */
static inline const char *skip(const char *at, const char *end, const unsigned class) {
#ifdef __SSE2__
    const __m128i highest_control = _mm_set1_epi8(class == TEXT ? 0x1f : 0x20);
    const __m128i delete = _mm_set1_epi8(0x7f), tab = _mm_set1_epi8('\t');
    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        __m128i stop = _mm_cmpeq_epi8(_mm_min_epu8(bytes, highest_control), bytes);
        if (class == TEXT)
            stop = _mm_andnot_si128(_mm_cmpeq_epi8(bytes, tab), stop);
        stop = _mm_or_si128(stop, _mm_cmpeq_epi8(bytes, delete));
        unsigned found = (unsigned)_mm_movemask_epi8(stop);
        if (found != 0)
            return at + __builtin_ctz(found);
        at += 16;
    }
#endif
    while (at < end && is_class(*at, class))
        at++;
    return at;
}

/* The first byte that is not of a token. Letters, digits and '-' are seen many at a time, which
 * names mostly consist of; the others one by one. */
static inline const char *skip_token(const char *at, const char *end) {
#ifdef __SSE2__
    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at);
        __m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        __m128i letters = _mm_and_si128(_mm_cmpgt_epi8(lower, _mm_set1_epi8('a' - 1)),
                                        _mm_cmplt_epi8(lower, _mm_set1_epi8('z' + 1)));
        __m128i digits = _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8('0' - 1)),
                                       _mm_cmplt_epi8(bytes, _mm_set1_epi8('9' + 1)));
        __m128i plain =
            _mm_or_si128(_mm_or_si128(letters, digits), _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-')));
        unsigned other = ~(unsigned)_mm_movemask_epi8(plain);
        at += __builtin_ctz(other | 0x10000);
        if ((other & 0xffff) == 0)
            continue;
        if (!is_class(*at, TOKEN))
            return at;
        at++;
    }
#endif
    while (at < end && is_class(*at, TOKEN))
        at++;
    return at;
}

static inline int take_crlf(struct scan *scan) {
    if (scan->at == scan->end)
        return MORE;
    if (scan->at[0] != '\r')
        return BAD;
    if (scan->end - scan->at < 2)
        return MORE;
    if (scan->at[1] != '\n')
        return BAD;
    scan->at += 2;
    return TAKEN;
}

static inline int take_space(struct scan *scan) {
    if (scan->at == scan->end)
        return MORE;
    return *scan->at++ == ' ' ? TAKEN : BAD;
}

enum { PROTOCOL_LENGTH = 5, VERSION_LENGTH = 8 };

static bool begins_version(const char *at, size_t length, const char *protocol) {
    static const char digits[] = "     0.0";
    for (size_t i = 0; i < length; i++) {
        bool good = i < PROTOCOL_LENGTH ? at[i] == protocol[i]
                    : digits[i] == '0'  ? is_digit(at[i])
                                        : at[i] == digits[i];
        if (!good)
            return false;
    }
    return true;
}

/* "HTTP/1.1" and its kind; `protocol` is "HTTP/" or "ICAP/". */
static int take_version(struct scan *scan, const char *protocol, unsigned *version) {
    const char *at = scan->at;
    size_t length = (size_t)(scan->end - at);
    if (length < VERSION_LENGTH)
        return begins_version(at, length, protocol) ? MORE : BAD;
    if (memcmp(at, protocol, PROTOCOL_LENGTH) != 0 || !is_digit(at[5]) || at[6] != '.' ||
        !is_digit(at[7]))
        return BAD;
    if (at[5] != '1')
        return at[5] == '0' ? BAD : -HTTP_ERROR_VERSION;
    *version = at[7] == '0' ? 10 : 11;
    scan->at += VERSION_LENGTH;
    return TAKEN;
}

/* RFC 9112 §2.2: a client of old might have sent line ends behind the body before. */
static int skip_empty_lines(struct scan *scan) {
    enum { EMPTY_LINES_MAX = 2 };
    for (unsigned lines = 0; scan->at < scan->end && *scan->at == '\r'; lines++) {
        int result = lines == EMPTY_LINES_MAX ? BAD : take_crlf(scan);
        if (result != TAKEN)
            return result;
    }
    return TAKEN;
}

static int take_method(struct http_head *head, struct scan *scan) {
    const char *method = scan->at;
    scan->at = skip_token(method, scan->end);
    head->method = slice_make(method, (size_t)(scan->at - method));
    if (scan->at < scan->end && head->method.length == 0)
        return BAD;
    head->method_id = http_method_lookup(head->method);
    return take_space(scan);
}

static int take_target(struct http_head *head, struct scan *scan) {
    const char *target = scan->at;
    scan->at = skip(scan->at, scan->end, TARGET);
    head->target = slice_make(target, (size_t)(scan->at - target));
    if (scan->at < scan->end && head->target.length == 0)
        return BAD;
    return take_space(scan);
}

static int take_request_line(struct http_head *head, struct scan *scan) {
    int result = skip_empty_lines(scan);
    if (result == TAKEN)
        result = take_method(head, scan);
    if (result == TAKEN)
        result = take_target(head, scan);
    if (result == TAKEN)
        result = take_version(scan, "HTTP/", &head->version);
    if (result == TAKEN)
        result = take_crlf(scan);
    return result;
}

static int take_status(struct http_head *head, struct scan *scan) {
    head->status = 0;
    for (unsigned i = 0; i < 3; i++, scan->at++) {
        if (scan->at == scan->end)
            return MORE;
        if (!is_digit(*scan->at))
            return BAD;
        head->status = head->status * 10 + (unsigned)(*scan->at - '0');
    }
    return head->status < 100 ? BAD : TAKEN;
}

/* The space in front of an absent reason phrase may be absent too: many servers leave it out, and
 * the line has one meaning all the same. */
static int take_reason(struct http_head *head, struct scan *scan) {
    head->reason = slice_make(scan->at, 0);
    if (scan->at == scan->end)
        return MORE;
    if (*scan->at != ' ')
        return take_crlf(scan);
    const char *reason = ++scan->at;
    scan->at = skip(scan->at, scan->end, TEXT);
    head->reason = slice_make(reason, (size_t)(scan->at - reason));
    return take_crlf(scan);
}

static int take_status_line(struct http_head *head, struct scan *scan, const char *protocol) {
    int result = take_version(scan, protocol, &head->version);
    if (result == TAKEN)
        result = take_space(scan);
    if (result == TAKEN)
        result = take_status(head, scan);
    if (result == TAKEN)
        result = take_reason(head, scan);
    return result;
}

static int take_http_status_line(struct http_head *head, struct scan *scan) {
    return take_status_line(head, scan, "HTTP/");
}

static int take_icap_status_line(struct http_head *head, struct scan *scan) {
    int result = take_status_line(head, scan, "ICAP/");
    head->version = 10;
    return result;
}

static inline void note_present(struct http_head *head, enum http_name id) {
    head->present[id / 64] |= (uint64_t)1 << (id % 64);
}

static inline bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* One field line. A line that begins with white space (obs-fold) fails for want of a name, white
 * space before the colon for want of a colon. */
static int take_field(struct http_head *head, struct scan *scan) {
    const char *at = scan->at, *end = scan->end, *name = at;
    at = skip_token(at, end);
    if (at == end)
        return MORE;
    if (*at != ':' || at == name)
        return BAD;
    size_t name_length = (size_t)(at - name);
    do
        at++;
    while (at < end && is_blank(*at));
    const char *value = at;
    scan->at = at = skip(at, end, TEXT);
    int result = take_crlf(scan);
    if (result != TAKEN)
        return result;
    if (head->field_count == HTTP_FIELDS_MAX)
        return -HTTP_ERROR_TOO_MANY_FIELDS;
    while (at > value && is_blank(at[-1]))
        at--;
    struct http_field *field = &head->fields[head->field_count++];
    field->name = slice_make(name, name_length);
    field->value = slice_make(value, (size_t)(at - value));
    field->id = http_name_lookup(field->name);
    note_present(head, field->id);
    return TAKEN;
}

/* Field lines up to and with the empty one. */
static int take_fields(struct http_head *head, struct scan *scan) {
    while (scan->at < scan->end) {
        if (*scan->at == '\r')
            return take_crlf(scan);
        int result = take_field(head, scan);
        if (result != TAKEN)
            return result;
    }
    return MORE;
}

/* The fields themselves are 5 KB, and no one looks behind field_count. */
void http_head_init(struct http_head *head) {
    memset(head, 0, offsetof(struct http_head, fields));
}

/*
 * `checked` bytes were good so far and no line has ended since: only the open line can have gone
 * wrong. Reading just that keeps a head that arrives byte by byte from costing the square of its
 * length. No start line is as short as the two empty lines that may stand before it.
 */
static ssize_t parse_open_line(struct http_head *head,
                               int (*take_start_line)(struct http_head *, struct scan *),
                               const char *bytes, size_t length, size_t checked) {
    enum { EMPTY_LINES = 4 };
    const char *line_end = memrchr(bytes, '\n', checked);
    struct scan scan = {bytes, bytes + length};
    if (line_end == NULL || line_end - bytes < EMPTY_LINES)
        return take_start_line(head, &scan);
    scan.at = line_end + 1;
    return take_fields(head, &scan);
}

static inline ssize_t parse(struct http_head *head,
                            int (*take_start_line)(struct http_head *, struct scan *),
                            const char *bytes, size_t length, size_t checked) {
    http_head_init(head);
    if (length == 0)
        return MORE;
    if (checked > 0 && checked <= length && memchr(bytes + checked, '\n', length - checked) == NULL)
        return parse_open_line(head, take_start_line, bytes, length, checked);
    struct scan scan = {bytes, bytes + length};
    int result = take_start_line(head, &scan);
    if (result == TAKEN)
        result = take_fields(head, &scan);
    return result == TAKEN ? scan.at - bytes : result;
}

ssize_t http_head_parse_request(struct http_head *head, const char *bytes, size_t length,
                                size_t checked) {
    return parse(head, take_request_line, bytes, length, checked);
}

ssize_t http_head_parse_response(struct http_head *head, const char *bytes, size_t length,
                                 size_t checked) {
    return parse(head, take_http_status_line, bytes, length, checked);
}

ssize_t http_head_parse_icap_response(struct http_head *head, const char *bytes, size_t length,
                                      size_t checked) {
    return parse(head, take_icap_status_line, bytes, length, checked);
}

ssize_t http_head_parse_fields(struct http_head *head, const char *bytes, size_t length) {
    struct scan scan = {bytes, bytes + length};
    http_head_init(head);
    int result = take_fields(head, &scan);
    return result == TAKEN ? scan.at - bytes : result;
}

unsigned http_error_status(enum http_error error) {
    switch (error) {
    case HTTP_ERROR_TOO_MANY_FIELDS: return 431;
    case HTTP_ERROR_VERSION: return 505;
    case HTTP_ERROR_SYNTAX: break;
    }
    return 400;
}

const char *http_error_text(enum http_error error) {
    switch (error) {
    case HTTP_ERROR_TOO_MANY_FIELDS: return "The message has too many header fields.";
    case HTTP_ERROR_VERSION: return "The protocol version is not supported; use HTTP/1.1.";
    case HTTP_ERROR_SYNTAX: break;
    }
    return "The message head is not of HTTP's grammar.";
}

const struct http_field *http_head_find(const struct http_head *head, enum http_name id) {
    if (!http_head_has(head, id))
        return NULL;
    return http_head_find_next(head, id, NULL);
}

/* From the first field on when `after` is NULL. */
const struct http_field *http_head_find_next(const struct http_head *head, enum http_name id,
                                             const struct http_field *after) {
    const struct http_field *end = head->fields + head->field_count;
    for (const struct http_field *f = after == NULL ? head->fields : after + 1; f < end; f++)
        if (f->id == id)
            return f;
    return NULL;
}

static inline bool is_named(const struct http_field *field, enum http_name id, struct slice name) {
    return field->id == id && (id != HTTP_OTHER || slice_equal_nocase(field->name, name));
}

const struct http_field *http_head_find_text(const struct http_head *head, struct slice name) {
    enum http_name id = http_name_lookup(name);
    const struct http_field *field = http_head_find(head, id);
    while (field != NULL && !is_named(field, id, name))
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

static bool add(struct http_head *head, enum http_name id, struct slice name, struct slice value) {
    if (head->field_count == HTTP_FIELDS_ROOM)
        return false;
    head->fields[head->field_count++] = (struct http_field){name, value, id};
    note_present(head, id);
    return true;
}

bool http_head_add(struct http_head *head, struct slice name, struct slice value) {
    return add(head, http_name_lookup(name), name, value);
}

/* The first field of the name keeps its place. */
bool http_head_set(struct http_head *head, enum http_name id, struct slice value) {
    ASSERT(id != HTTP_OTHER);
    const struct http_field *first = http_head_find(head, id);
    if (first == NULL)
        return add(head, id, http_name_text(id), value);
    unsigned kept = (unsigned)(first - head->fields);
    head->fields[kept++].value = value;
    for (unsigned i = kept; i < head->field_count; i++)
        if (head->fields[i].id != id)
            head->fields[kept++] = head->fields[i];
    head->field_count = kept;
    return true;
}

/* Closes the gaps that fields marked for removal leave; `present` is made anew, because HTTP_OTHER
 * stands for many names. Returns how many went. */
static unsigned remove_marked(struct http_head *head, const bool *marked) {
    unsigned kept = 0, count = head->field_count;
    memset(head->present, 0, sizeof head->present);
    for (unsigned i = 0; i < count; i++) {
        if (marked[i])
            continue;
        if (kept != i)
            head->fields[kept] = head->fields[i];
        note_present(head, head->fields[kept++].id);
    }
    head->field_count = kept;
    return count - kept;
}

static void mark_named(const struct http_head *head, bool *marked, enum http_name id,
                       struct slice name) {
    if (!http_head_has(head, id))
        return;
    for (unsigned i = 0; i < head->field_count; i++)
        if (is_named(&head->fields[i], id, name))
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
    END_TO_END_ALWAYS, /* says what the message is or whose: not to be taken off by a word */
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
    [HTTP_TRAILER] = END_TO_END_ALWAYS,
    [HTTP_VARY] = END_TO_END_ALWAYS,
    [HTTP_VIA] = END_TO_END_ALWAYS,
    [HTTP_X_FORWARDED_FOR] = END_TO_END_ALWAYS,
};

static void mark_connection_options(const struct http_head *head, bool *marked) {
    const struct http_field *field = http_head_find(head, HTTP_CONNECTION);
    for (; field != NULL; field = http_head_find_next(head, HTTP_CONNECTION, field)) {
        struct slice rest = field->value, option;
        while (slice_next_element(&rest, &option)) {
            enum http_name id = http_name_lookup(option);
            if (hops[id] == END_TO_END)
                mark_named(head, marked, id, option);
        }
    }
}

void http_head_remove_hop_by_hop(struct http_head *head) {
    bool marked[HTTP_FIELDS_ROOM] = {false};
    mark_connection_options(head, marked);
    for (unsigned i = 0; i < head->field_count; i++)
        if (hops[head->fields[i].id] == THIS_HOP)
            marked[i] = true;
    remove_marked(head, marked);
}

struct move {
    uintptr_t from, end, to;
};

static void move_slice(struct slice *slice, const struct move *move) {
    uintptr_t base = (uintptr_t)slice->base;
    if (base >= move->from && base + slice->length <= move->end && base != 0)
        slice->base = (const char *)(base - move->from + move->to);
}

/* Slices that point elsewhere (to constants, to an arena) stay. */
void http_head_rebase(struct http_head *head, const char *from, size_t length, const char *to) {
    struct move move = {(uintptr_t)from, (uintptr_t)from + length, (uintptr_t)to};
    move_slice(&head->method, &move);
    move_slice(&head->target, &move);
    move_slice(&head->reason, &move);
    for (unsigned i = 0; i < head->field_count; i++) {
        move_slice(&head->fields[i].name, &move);
        move_slice(&head->fields[i].value, &move);
    }
}

size_t http_head_size(const struct http_head *head) {
    size_t size = head->method.length + head->target.length + head->reason.length;
    for (unsigned i = 0; i < head->field_count; i++)
        size += head->fields[i].name.length + head->fields[i].value.length;
    return size;
}

static inline char *put(char *at, struct slice bytes) {
    if (bytes.length > 0)
        memcpy(at, bytes.base, bytes.length);
    return at + bytes.length;
}

static inline struct slice copy_slice(struct slice slice, char **at) {
    struct slice copy = slice_make(slice.base == NULL ? NULL : *at, slice.length);
    *at = put(*at, slice);
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
        at = put(at, head->fields[i].name);
        at = put(at, SLICE(": "));
        at = put(at, head->fields[i].value);
        at = put(at, SLICE("\r\n"));
    }
}

size_t http_head_write_request(const struct http_head *head, char *out, size_t capacity) {
    size_t size =
        head->method.length + head->target.length + strlen("  HTTP/1.1\r\n") + fields_size(head);
    if (size > capacity)
        return size;
    char *at = put(out, head->method);
    *at++ = ' ';
    at = put(at, head->target);
    at = put(at, SLICE(" HTTP/1.1\r\n"));
    put_fields(head, at);
    return size;
}

/* A head that was built here needs no reason: the standard one is written. */
size_t http_head_write_response(const struct http_head *head, char *out, size_t capacity) {
    ASSERT(head->status >= 100 && head->status <= 999);
    struct slice reason = head->reason;
    if (reason.base == NULL)
        reason = slice_from(http_reason(head->status));
    size_t size = strlen("HTTP/1.1 200 \r\n") + reason.length + fields_size(head);
    if (size > capacity)
        return size;
    char *at = put(out, SLICE("HTTP/1.1 "));
    *at++ = (char)('0' + head->status / 100);
    *at++ = (char)('0' + head->status / 10 % 10);
    *at++ = (char)('0' + head->status % 10);
    *at++ = ' ';
    at = put(at, reason);
    at = put(at, SLICE("\r\n"));
    put_fields(head, at);
    return size;
}
