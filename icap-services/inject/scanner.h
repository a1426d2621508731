/*
 * Finds a place in a stream of HTML, wherever the pieces break:
 *
 *     SCANNER_HEAD_END    where the head ends: before "</head>", or before what ends it where a
 *                         page leaves that out: "<body", an element or a text that no head has
 *     SCANNER_BODY_START  behind "<body ...>", or before what begins the body without one
 *     SCANNER_BODY_END    before "</body>" or "</html>"
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
 * A fragment of a page, which scripts ask for, must not be taken for one: what leaves out its tags
 * has a place only behind a doctype, "<html" or "<head".
 *
 * With scanner.wants_metas set it also stops behind each <meta>: scanner.meta is the tag then, the
 * last scanner.pending bytes (at most SCANNER_META_MAX; of a longer one scanner.lost_meta tells),
 * and the next call goes on.
 *
 * Follows the HTML standard (tokenizer, §13.2.5) as far as it matters: comments, declarations,
 * quoted attribute values, the raw text of script (with its escaped states), style, title,
 * textarea, noscript and their like, CDATA sections of SVG and MathML, and the contents of
 * templates are skipped. Case does not matter. Bytes are never changed and nothing is ever an
 * error.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_INJECT_SCANNER_H
#define RETORT_INJECT_SCANNER_H

#include "base/slice.h"

enum {
    SCANNER_PENDING_MAX = 12,
    SCANNER_META_MAX = 4096,
    SCANNER_NAME_MAX = 15,
    SCANNER_FOREIGN_MAX = 16
};

enum scanner_place { SCANNER_HEAD_END, SCANNER_BODY_START, SCANNER_BODY_END };

struct scanner {
    enum scanner_place place;
    bool wants_metas;
    unsigned state;
    bool found;
    unsigned pending;            /* bytes since '<' of a tag that may be the one */
    char name[SCANNER_NAME_MAX]; /* of the tag being read, in lower case; cut */
    unsigned name_length;
    unsigned templates; /* that are open, one inside the other */
    bool is_document;   /* a doctype, <html> or <head> was there */
    bool is_framed;     /* a frameset in place of a body */
    bool in_body_tag;
    bool in_attribute; /* inside a tag: the name of one has begun */
    bool is_closed;    /* inside a tag: "/" was the last byte */
    const char *raw;   /* element whose raw text is being skipped */
    unsigned escape;   /* of a script: 1 behind "<!--", 2 behind "<!-- <script" */
    char opening;      /* in it: what is behind "<", in lower case */
    unsigned matched;  /* of "--", "</raw", "<!--", "[CDATA[" or "]]" */
    /* Elements that are not HTML, and inside them those in which HTML begins again. */
    const char *foreign[SCANNER_FOREIGN_MAX];
    unsigned foreign_depth;
    struct slice meta; /* NULL but after a stop */
    bool lost_meta;
    char tag[SCANNER_META_MAX];
};

void scanner_init(struct scanner *scanner, enum scanner_place place);
size_t scanner_scan(struct scanner *scanner, struct slice piece);

#endif
