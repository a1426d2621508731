/*
 * The parser of message heads (http/head.h): makes a `struct http_head` from received bytes.
 *
 * It holds no state and allocates nothing. It fills the head with slices into the caller's bytes,
 * which must outlive it.
 *
 *     struct http_head head;
 *     ssize_t used = http_head_parse_request(&head, buffer, length, checked);
 *     if (used == 0)  -> read more, set checked = length, try again
 *     if (used < 0)   -> bad: -used is an enum http_error; http_error_status() is the answer
 *
 * The parser is strict (RFC 9112 §2.2, §5). These are errors: a bare LF, NUL, CR not followed by
 * LF, obs-fold, an empty name, a name that is not a token, control bytes in values, and a start
 * line that breaks the grammar. White space before the colon is an error in a request, and no part
 * of the name in a response and in trailers (§5.1). Up to two empty lines before a request line are
 * skipped (§2.2). Bytes above 0x7f are accepted in values and in the request target. The
 * space in front of an absent reason phrase may be absent. An error is reported as soon as its
 * bytes are there, even if the head is incomplete. The result does not depend on whether the bytes
 * came at once or in pieces.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_HTTP_HEAD_PARSER_H
#define RETORT_HTTP_HEAD_PARSER_H

#include "http/head.h"

#include <sys/types.h>

enum http_error {
    HTTP_ERROR_SYNTAX = 1,      /* 400; also HTTP/0.9 */
    HTTP_ERROR_TOO_MANY_FIELDS, /* 431: more than HTTP_FIELDS_MAX */
    HTTP_ERROR_VERSION,         /* 505: HTTP/2.0 and above */
};

/* >0: bytes of the head, the empty line included; 0: incomplete; <0: -enum http_error. The head is
 * filled in only when the result is >0. `checked` is the length for which the same call on the same
 * bytes gave 0 before (0 at first): it only saves time. */
ssize_t http_head_parse_request(struct http_head *head, const char *bytes, size_t length,
                                size_t checked);
ssize_t http_head_parse_response(struct http_head *head, const char *bytes, size_t length,
                                 size_t checked);
/* Like http_head_parse_response, for a status line "ICAP/1.0 204 ..." (RFC 3507 §4.3.3); version
 * becomes 10. */
ssize_t http_head_parse_icap_response(struct http_head *head, const char *bytes, size_t length,
                                      size_t checked);
/* Replaces each obs-fold in the field lines of a head by spaces, in place: "replace each received
 * obs-fold with one or more SP octets prior to interpreting the field value" (RFC 9112 §5.2). For a
 * protocol whose heads may be folded, after the parser has refused one; HTTP's are never unfolded
 * here. It leaves the start line and all bytes behind the first empty line alone. The head may be
 * incomplete. Returns whether anything was replaced. */
bool http_head_unfold(char *bytes, size_t length);
/* Parses field lines without a start line, up to and with the empty line: trailers of a response
 * (RFC 9112 §7.1.2). */
ssize_t http_head_parse_fields(struct http_head *head, const char *bytes, size_t length);

/* 400, 431 or 505, and a sentence for the error page and the log. */
unsigned http_error_status(enum http_error error);
const char *http_error_text(enum http_error error);

#endif
