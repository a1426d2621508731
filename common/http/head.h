/*
 * A message head: the start line and the fields of a request or a response (RFC 9112 §2–5, and
 * ICAP's, which has the same shape), looked into, changed, copied and written. What parses one is
 * http/head_parser.h.
 *
 *     const struct http_field *etag = http_head_find(&head, HTTP_ETAG);
 *     http_head_remove_hop_by_hop(&head);
 *     http_head_set(&head, HTTP_VIA, SLICE("1.1 retort"));
 *     size_t length = http_head_write_request(&head, out, capacity);
 *
 * Names and values are slices of bytes that are kept elsewhere, and must outlive the head
 * (http_head_rebase moves the slices when the bytes move).
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_HTTP_HEAD_H
#define RETORT_HTTP_HEAD_H

#include "base/arena.h"
#include "http/names.h"

/* Parsers take so many fields; heads that are built upon have room for a few more, so that what an
 * intermediary adds (Via, framing) never fails for want of it. */
enum { HTTP_FIELDS_MAX = 128, HTTP_FIELDS_ROOM = HTTP_FIELDS_MAX + 16 };

struct http_field {
    struct slice name, value; /* the value without white space at its ends */
    enum http_name id;
};

struct http_head {
    struct slice method, target; /* requests */
    enum http_method method_id;
    unsigned version; /* 10 or 11; for "HTTP/1.7" 11 */
    unsigned status;  /* responses: 100..999 */
    struct slice reason;
    unsigned field_count;
    uint64_t present[(HTTP_NAME_COUNT + 63) / 64]; /* which known names occur */
    struct http_field fields[HTTP_FIELDS_ROOM];
};

/* An empty head to build upon (http_head_add). The fields themselves are 5 KB, and no one looks
 * behind field_count. */
static inline void http_head_init(struct http_head *head) {
    memset(head, 0, offsetof(struct http_head, fields));
}

/* For those who fill in a field themselves. */
static inline void http_head_note(struct http_head *head, enum http_name id) {
    head->present[id / 64] |= (uint64_t)1 << (id % 64);
}

static inline bool http_head_has(const struct http_head *head, enum http_name id) {
    return (head->present[id / 64] >> (id % 64)) & 1;
}

/* The first field of that name, NULL when there is none. `find` is constant time when absent. */
const struct http_field *http_head_find(const struct http_head *head, enum http_name id);
const struct http_field *http_head_find_next(const struct http_head *head, enum http_name id,
                                             const struct http_field *after);
const struct http_field *http_head_find_text(const struct http_head *head, struct slice name);
/* The value of the first field of that name, an empty slice with base NULL when there is none. */
struct slice http_head_value(const struct http_head *head, enum http_name id);

/* True when a field of that name has the token as an element of its list, case-insensitively
 * ("Connection: close", "Transfer-Encoding: gzip, chunked"). */
bool http_head_has_token(const struct http_head *head, enum http_name id, struct slice token);

/* Changes; slices are kept, not copied. add and set return false when the head is full. */
bool http_head_add(struct http_head *head, struct slice name, struct slice value);
bool http_head_set(struct http_head *head, enum http_name id, struct slice value);
/* Removes every field of that name; returns how many. */
unsigned http_head_remove(struct http_head *head, enum http_name id);
unsigned http_head_remove_text(struct http_head *head, struct slice name);

/* Removes the fields that end at this hop: those of RFC 9110 §7.6.1 (Connection and what it names,
 * Keep-Alive, Proxy-Connection, TE, Transfer-Encoding, Upgrade) and Trailer is kept. A name that
 * would break the message if Connection removed it (Host, Content-Length, Cache-Control, ...) is
 * not removed on its word. */
void http_head_remove_hop_by_hop(struct http_head *head);
/* Removes what says how a body is framed, which no 1xx has (RFC 9110 §8.6, RFC 9112 §6.1). */
void http_head_remove_framing(struct http_head *head);

/* Moves the slices that lie in the `length` bytes at `from` to the same place behind `to`, after
 * the bytes were copied; `from` is not read. Slices that point elsewhere stay. */
void http_head_rebase(struct http_head *head, const char *from, size_t length, const char *to);

/* Copies start line, names and values of `from` to memory of its own, in `bytes` (at least
 * http_head_size() long), and makes `to` point there. `to` may be `from`. */
size_t http_head_size(const struct http_head *head);
void http_head_copy(struct http_head *to, const struct http_head *from, char *bytes);
/* A head of its own on the same bytes. */
void http_head_assign(struct http_head *to, const struct http_head *from);

/* Writers: return the bytes written, or what would be needed if that is more than capacity (then
 * nothing useful was written). They write "Name: value\r\n" lines in order, no empty line. */
/* With the start line "METHOD target HTTP/1.1\r\n" or "HTTP/1.1 status reason\r\n" first; without
 * a reason (base NULL) the standard one is written. */
size_t http_head_write_request(const struct http_head *head, char *out, size_t capacity);
size_t http_head_write_response(const struct http_head *head, char *out, size_t capacity);
/* By one of these, with the empty line, in memory of the arena. */
struct slice http_head_text(const struct http_head *head,
                            size_t (*write)(const struct http_head *, char *, size_t),
                            struct arena *arena);
/* A list field that may stand in several lines, as one value (RFC 9110 §5.3); empty when absent. */
struct slice http_head_joined_value(const struct http_head *head, enum http_name id,
                                    struct arena *arena);

#endif
