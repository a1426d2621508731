/*
 * Repairs: each takes one peculiarity out of a message head, where it is there, and leaves the rest
 * as it is. See compare.h.
 *
 *     if (repair_folds(&text)) ...        "a: b\r\n c" is "a: b   c" now
 *
 * Threads: values.
 */
#ifndef RETORT_TESTS_FUZZ_REPAIR_H
#define RETORT_TESTS_FUZZ_REPAIR_H

#include "compare.h"

/* All return whether anything was changed. */
bool repair_version_other(struct text *head); /* HTTP/0.9, HTTP/2.0: HTTP/1.1 */
bool repair_version_minor(struct text *head); /* HTTP/1.2 and above: HTTP/1.1 */
bool repair_no_version(struct text *head);    /* "GET /": HTTP/1.1 */
bool repair_protocol(struct text *head);      /* RTSP/ and ICE/: HTTP/ */
bool repair_method(struct text *head);        /* one that llhttp does not know: GET */
bool repair_target(struct text *head);        /* "/", or "a:1" for CONNECT */
bool repair_target_bytes(struct text *head);  /* HTAB and FF in it: x */
bool repair_spaces(struct text *head);        /* several in the start line: one */
bool repair_empty_lines(struct text *head);   /* CR and LF in front */
bool repair_bare_lf(struct text *head);       /* CR LF */
bool repair_bare_cr(struct text *head);       /* CR LF */
bool repair_status(struct text *head);        /* not three digits from 100 on: 200 */
bool repair_reason(struct text *head);        /* control bytes in it: question marks */
bool repair_folds(struct text *head);         /* a space for each byte of the line's end */
bool repair_names(struct text *head);         /* a space in them: x */
bool repair_blanks(struct text *head);        /* those before the colon, in a response, go */
bool repair_no_name(struct text *head);       /* a field without one: X */
bool repair_many_fields(struct text *head);   /* those behind HTTP_FIELDS_MAX go */
bool repair_tabs(struct text *head);          /* HTAB in a length or a coding: a space */
bool repair_length_repeated(
    struct text *head);                        /* one Content-Length of several that are the same */
bool repair_length_large(struct text *head);   /* above INT64_MAX: 1 */
bool repair_empty_codings(struct text *head);  /* a Transfer-Encoding without a value goes */
bool repair_codings(struct text *head);        /* any coding: chunked, once */
bool repair_coding_version(struct text *head); /* a coding in HTTP/1.0: HTTP/1.1 */
bool repair_connect_body(struct text *head);   /* a length or coding of CONNECT goes */
bool repair_never_a_body(struct text *head);   /* length and coding of a 1xx, 204 or 304 go */

#endif
