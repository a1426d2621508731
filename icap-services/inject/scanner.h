/*
 * Finds a place in a stream of HTML, which comes in pieces of any size:
 *
 *     SCANNER_HEAD_END    where the head ends: before "</head>"; in a page without that tag, before
 *                         what ends the head: "<body", an element or a text that no head has
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
 * A document, which a browser shows (SCANNER_DOCUMENT), has a head and a body, with or without tags
 * for them. A fragment, which a script asks for (SCANNER_FRAGMENT), has them only when a doctype or
 * their tags are there. In XML (SCANNER_XML) only the tags count, since all tags are written there.
 *
 * With scanner.wants_metas the scanner also stops behind each <meta>. Then scanner.meta is the tag,
 * which is the last scanner.pending bytes (at most SCANNER_META_MAX). If the tag is longer,
 * scanner.lost_meta is set. The next call goes on behind it.
 *
 * The scanner follows the HTML standard (tokenizer, §13.2.5) as far as it matters. It skips
 * comments, declarations, quoted attribute values, CDATA sections of SVG and MathML, and the raw
 * text of script (with its escaped states), style, title, textarea, noscript and similar elements.
 * tree.h knows what the tags mean. Case does not matter. The scanner changes no bytes and has no
 * errors.
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
    unsigned mark; /* bytes of a byte-order mark so far; at its largest when none can follow */
    bool in_body_tag;
    bool in_attribute; /* inside a tag: the name of an attribute has begun */
    bool is_closed;    /* inside a tag: "/" was the last byte */
    const char *raw;   /* element whose raw text is being skipped */
    unsigned escape;   /* of a script: 1 behind "<!--", 2 behind "<!-- <script" */
    char opening;      /* in it: what is behind "<", in lower case */
    unsigned matched;  /* of "--", "</raw", "<!--", "[CDATA[" or "]]" */
    struct tree tree;
    struct slice meta; /* base is NULL unless the scanner has stopped behind a <meta> */
    bool lost_meta;
    char tag[SCANNER_META_MAX];
};

void scanner_init(struct scanner *scanner, enum scanner_place place, enum scanner_page page);
size_t scanner_scan(struct scanner *scanner, struct slice piece);
bool scanner_end(struct scanner *scanner);

#endif
