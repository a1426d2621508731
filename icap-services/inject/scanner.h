/*
 * Finds a place in a stream of HTML, wherever the pieces break:
 *
 *     SCANNER_HEAD_END      directly before "</head>", or before "<body" where a page leaves that
 * out SCANNER_BODY_START    directly behind "<body ...>" SCANNER_BODY_END      directly before
 * "</body>"
 *
 *     struct scanner scanner;
 *     scanner_init(&scanner, SCANNER_HEAD_END);
 *     size_t seen = scanner_scan(&scanner, piece);      seen < piece.length only when found
 *     if (scanner.found)
 *         the place is scanner.pending bytes before the end of what was seen so far
 *     else
 *         the last scanner.pending bytes (at most SCANNER_PENDING_MAX) may be the beginning of the
 *         tag: everything before them can be passed on
 *
 * Follows the tokenizer of the HTML standard (§13.2.5) as far as it matters: comments,
 * declarations, quoted attribute values, the raw text of script, style, title, textarea and
 * their like, and the contents of templates are skipped. Case does not matter. Bytes are never
 * changed and nothing is ever an error.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_INJECT_SCANNER_H
#define RETORT_INJECT_SCANNER_H

#include "base/slice.h"

enum { SCANNER_PENDING_MAX = 8, SCANNER_NAME_MAX = 10 };

enum scanner_place { SCANNER_HEAD_END, SCANNER_BODY_START, SCANNER_BODY_END };

struct scanner {
    enum scanner_place place;
    unsigned state;
    bool found;
    unsigned pending;            /* bytes since '<' of a tag that may be the one */
    char name[SCANNER_NAME_MAX]; /* of the tag being read, in lower case; cut */
    unsigned name_length;
    unsigned templates; /* that are open, one inside the other */
    bool in_body_tag;
    bool in_attribute; /* inside a tag: the name of one has begun */
    const char *raw;   /* element whose raw text is being skipped */
    unsigned matched;  /* of "--" or of "</raw" */
};

void scanner_init(struct scanner *scanner, enum scanner_place place);
size_t scanner_scan(struct scanner *scanner, struct slice piece);

#endif
