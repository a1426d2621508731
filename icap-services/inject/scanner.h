/*
 * Finds a place in a stream of HTML, wherever the pieces break:
 *
 *     SCANNER_HEAD_END    where the head ends: before "</head>", or before what ends it where a
 *                         page leaves that out: "<body", an element or a text that no head has
 *     SCANNER_BODY_START  behind "<body ...>", or before what begins the body without one
 *     SCANNER_BODY_END    before the "</body>" or "</html>" that ends the body, or at the page's
 *                         end
 *
 *     struct scanner scanner;
 *     scanner_init(&scanner, SCANNER_HEAD_END, SCANNER_DOCUMENT);
 *     size_t seen = scanner_scan(&scanner, piece);      seen < piece.length only when found
 *     if (scanner.found)
 *         the place is scanner.pending bytes before the end of what was seen so far
 *     else if (scanner.hopeless)
 *         there is none: the bytes behind `seen` need not be scanned
 *     else
 *         the last scanner.pending bytes (at most SCANNER_PENDING_MAX) may be the beginning of the
 *         tag: everything before them can be passed on
 *     if (scanner_end(&scanner))
 *         the page is over, and its end is the place
 *
 * What a browser is to show (SCANNER_DOCUMENT) has a head and a body, whether it has tags for them
 * or not. A fragment, which a script asks for (SCANNER_FRAGMENT), has not, unless a doctype or the
 * tags are there. In XML (SCANNER_XML) all tags are written, and only these count.
 *
 * With scanner.wants_metas set it also stops behind each <meta>: scanner.meta is the tag then, the
 * last scanner.pending bytes (at most SCANNER_META_MAX; of a longer one scanner.lost_meta tells),
 * and the next call goes on.
 *
 * Follows the HTML standard (tokenizer, §13.2.5) as far as it matters: comments, declarations,
 * quoted attribute values, the raw text of script (with its escaped states), style, title,
 * textarea, noscript and their like, and CDATA sections of SVG and MathML are skipped. What the
 * tags mean, tree.h says. Case does not matter. Bytes are never changed and nothing is ever an
 * error.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_INJECT_SCANNER_H
#define RETORT_INJECT_SCANNER_H

#include "inject/tree.h"

enum { SCANNER_PENDING_MAX = 12, SCANNER_META_MAX = 4096, SCANNER_NAME_MAX = 15 };

enum scanner_place { SCANNER_HEAD_END, SCANNER_BODY_START, SCANNER_BODY_END };
enum scanner_page { SCANNER_DOCUMENT, SCANNER_FRAGMENT, SCANNER_XML };

struct scanner {
    enum scanner_place place;
    enum scanner_page page;
    bool wants_metas;
    unsigned state;
    bool found, hopeless;
    unsigned pending;            /* bytes since '<' of a tag that may be the one */
    char name[SCANNER_NAME_MAX]; /* of the tag being read, in lower case; cut */
    unsigned name_length;
    unsigned mark; /* bytes of a byte-order mark that were there, or may be no more */
    bool in_body_tag;
    bool in_attribute; /* inside a tag: the name of one has begun */
    bool is_closed;    /* inside a tag: "/" was the last byte */
    const char *raw;   /* element whose raw text is being skipped */
    unsigned escape;   /* of a script: 1 behind "<!--", 2 behind "<!-- <script" */
    char opening;      /* in it: what is behind "<", in lower case */
    unsigned matched;  /* of "--", "</raw", "<!--", "[CDATA[" or "]]" */
    struct tree tree;
    struct slice meta; /* NULL but after a stop */
    bool lost_meta;
    char tag[SCANNER_META_MAX];
};

void scanner_init(struct scanner *scanner, enum scanner_place place, enum scanner_page page);
size_t scanner_scan(struct scanner *scanner, struct slice piece);
bool scanner_end(struct scanner *scanner);

#endif
