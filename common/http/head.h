/*
 * A message head: the start line and the fields of an HTTP request or response (RFC 9112 §2–5). An
 * ICAP head has the same form. These functions search, change, copy and write heads.
 * http/head_parser.h parses them.
 *
 *     const struct http_field *etag = http_head_find(&head, HTTP_ETAG);
 *     http_head_remove_hop_by_hop(&head);
 *     http_head_set(&head, HTTP_VIA, SLICE("1.1 retort"));
 *     size_t length = http_head_write_request(&head, out, capacity);
 *
 * Names and values are slices. Their bytes belong to the caller and must outlive the head.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_HTTP_HEAD_H
#define RETORT_HTTP_HEAD_H

#include "base/arena.h"
#include "http/names.h"

/* Parsers accept HTTP_FIELDS_MAX fields. A head has room for a few more, so that there is always
 * room for the fields that a proxy adds (Via, framing). */
enum { HTTP_FIELDS_MAX = 128, HTTP_FIELDS_ROOM = HTTP_FIELDS_MAX + 16 };

struct http_field {
    struct slice name, value; /* the value without white space at its ends */
    enum http_name id;
};

struct http_head {
    struct slice method, target; /* requests */
    enum http_method method_id;
    unsigned version; /* 10 or 11; "HTTP/1.7" becomes 11; 20: it came by HTTP/2 */
    unsigned status;  /* responses: 100..999 */
    struct slice reason;
    unsigned field_count;
    uint64_t present[(HTTP_NAME_COUNT + 63) / 64]; /* which known names occur */
    struct http_field fields[HTTP_FIELDS_ROOM];
};

/* Makes an empty head, to which fields can be added. It does not clear the fields, which are 5 KB:
 * nobody reads beyond field_count. */
static inline void http_head_init(struct http_head *head) {
    memset(head, 0, offsetof(struct http_head, fields));
}

/* Notes that a field of this name is there, for code that fills in a field itself. */
static inline void http_head_note(struct http_head *head, enum http_name id) {
    head->present[id / 64] |= (uint64_t)1 << (id % 64);
}

static inline bool http_head_has(const struct http_head *head, enum http_name id) {
    return (head->present[id / 64] >> (id % 64)) & 1;
}

/* The first field of that name; NULL when there is none. http_head_find takes constant time when
 * the field is absent. */
const struct http_field *http_head_find(const struct http_head *head, enum http_name id);
const struct http_field *http_head_find_next(const struct http_head *head, enum http_name id,
                                             const struct http_field *after);
const struct http_field *http_head_find_text(const struct http_head *head, struct slice name);
/* The value of the first field of that name; an empty slice with base NULL when there is none. */
struct slice http_head_value(const struct http_head *head, enum http_name id);

/* True when a field of that name has the token as an element of its list, case-insensitively
 * ("Connection: close", "Transfer-Encoding: gzip, chunked"). */
bool http_head_has_token(const struct http_head *head, enum http_name id, struct slice token);

/* Add a field, or set its value. The head keeps the slices and does not copy their bytes. False:
 * the head is full. */
bool http_head_add(struct http_head *head, struct slice name, struct slice value);
bool http_head_set(struct http_head *head, enum http_name id, struct slice value);
/* Removes every field of that name; returns how many. */
unsigned http_head_remove(struct http_head *head, enum http_name id);
unsigned http_head_remove_text(struct http_head *head, struct slice name);

/* Removes the hop-by-hop fields (RFC 9110 §7.6.1): Connection and the fields that it names,
 * Keep-Alive, Proxy-Connection, TE, Transfer-Encoding, Upgrade. Trailer is kept. Fields without
 * which the message would break (Host, Content-Length, Cache-Control, ...) are kept even if
 * Connection names them. */
void http_head_remove_hop_by_hop(struct http_head *head);
/* Does Connection name fields of the message, besides those that are always of one hop? */
bool http_head_names_fields(const struct http_head *head);
/* Does the response set cookies (RFC 6265 §4.1), or those of RFC 2965, which some programs still
 * take? */
static inline bool http_head_sets_cookies(const struct http_head *head) {
    return http_head_has(head, HTTP_SET_COOKIE) || http_head_has(head, HTTP_SET_COOKIE2);
}
void http_head_remove_set_cookies(struct http_head *head);
/* Removes the fields about the framing of a body. No 1xx response has a body (RFC 9110 §8.6, RFC
 * 9112 §6.1). */
void http_head_remove_framing(struct http_head *head);

/* Copies the start line, the names and the values of `from` into `bytes`, which has at least
 * http_head_size() bytes, and makes `to` point there. `to` may be `from`. */
size_t http_head_size(const struct http_head *head);
void http_head_copy(struct http_head *to, const struct http_head *from, char *bytes);
/* Copies the head but not its bytes: both heads point to the same bytes afterwards. */
void http_head_assign(struct http_head *to, const struct http_head *from);

/* Write the start line, "METHOD target HTTP/1.1\r\n" or "HTTP/1.1 status reason\r\n", and the lines
 * "Name: value\r\n" in their order, without the empty line. If the reason has base NULL, the
 * standard reason is written. They return the length of the text. If that is more than capacity,
 * nothing was written. */
size_t http_head_write_request(const struct http_head *head, char *out, size_t capacity);
size_t http_head_write_response(const struct http_head *head, char *out, size_t capacity);
/* Calls `write`, which is one of the two functions above, with memory of the arena, and appends the
 * empty line. */
struct slice http_head_text(const struct http_head *head,
                            size_t (*write)(const struct http_head *, char *, size_t),
                            struct arena *arena);
/* Joins the lines of a list field into one value (RFC 9110 §5.3). The value is empty when the field
 * is absent. */
struct slice http_head_joined_value(const struct http_head *head, enum http_name id,
                                    struct arena *arena);
/* As http_head_joined_value, for a field of any name. */
struct slice http_head_joined_text(const struct http_head *head, struct slice name,
                                   struct arena *arena);

#endif
