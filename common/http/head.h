/*
 * A message head: the start line and the field lines of a request or a response (RFC 9112 §2–5, and
 * ICAP's, which has the same shape).
 *
 * The parsers hold no state and allocate nothing. They fill a `struct http_head` with slices into
 * the caller's bytes, which must outlive it (http_head_rebase moves the slices when the bytes
 * move).
 *
 *     struct http_head head;
 *     ssize_t used = http_head_parse_request(&head, buffer, length, checked);
 *     if (used == 0)  -> read more, set checked = length, try again
 *     if (used < 0)   -> bad: -used is an enum http_error; http_error_status() is the answer
 *     const struct http_field *etag = http_head_find(&head, HTTP_ETAG);
 *
 * Strictness (RFC 9112 §2.2, §5): a bare LF ends a line only where `bare LF` is asked for (never);
 * NUL, CR not followed by LF, obs-fold, white space before the colon, an empty name, a name that is
 * not a token, control bytes in values and a start line that is not of the grammar are errors. Up
 * to two empty lines before a request line are skipped (§2.2). Bytes above 0x7f are accepted in
 * values and in the request target. The space in front of an absent reason phrase may be absent.
 * What is bad is refused as soon as it is there, however many bytes are still to come, and the same
 * way whether the bytes came at once or in pieces.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_HTTP_HEAD_H
#define RETORT_HTTP_HEAD_H

#include "http/names.h"

#include <sys/types.h>

/* Parsers take so many fields; heads that are built upon have room for a few more, so that what an
 * intermediary adds (Via, framing) never fails for want of it. */
enum { HTTP_FIELDS_MAX = 128, HTTP_FIELDS_ROOM = HTTP_FIELDS_MAX + 16 };

enum http_error {
    HTTP_ERROR_SYNTAX = 1,      /* 400 */
    HTTP_ERROR_TOO_MANY_FIELDS, /* 431: more than HTTP_FIELDS_MAX */
    HTTP_ERROR_VERSION,         /* 505: HTTP/2.0 and above, HTTP/0.9 (400) is SYNTAX */
};

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

/* >0: bytes of the head, the empty line included; 0: incomplete; <0: -enum http_error. The head is
 * filled in only when the result is >0. `checked` is the length for which the same call on the same
 * bytes gave 0 before (0 at first): it only saves time. */
ssize_t http_head_parse_request(struct http_head *head, const char *bytes, size_t length,
                                size_t checked);
ssize_t http_head_parse_response(struct http_head *head, const char *bytes, size_t length,
                                 size_t checked);
/* The same for a status line "ICAP/1.0 204 ..." (RFC 3507 §4.3.3); version becomes 10. */
ssize_t http_head_parse_icap_response(struct http_head *head, const char *bytes, size_t length,
                                      size_t checked);
/* Field lines alone, up to and with the empty line: trailers (RFC 9112 §7.1.2). */
ssize_t http_head_parse_fields(struct http_head *head, const char *bytes, size_t length);

/* 400, 431 or 505, and a sentence for the error page and the log. */
unsigned http_error_status(enum http_error error);
const char *http_error_text(enum http_error error);

/* An empty head to build upon (http_head_add). */
void http_head_init(struct http_head *head);

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

#endif
