/*
 * Where head and body of a page are, tag by tag: as much of the HTML standard's tree construction
 * (§13.2.6) as decides that. The scanner reads the tags, this knows what they mean.
 *
 *     struct tree tree = {0};
 *     tree_start(&tree, SLICE("table"), false);
 *     tree_body_may_end(&tree)                     false: "</body>" in a table is ignored
 *     tree_end(&tree, SLICE("table"));
 *
 * A page may leave out the tags of its head and body; a browser makes both all the same. So the
 * phase follows what would begin them too: tree_leaves_head() of a tag is asked before
 * tree_start().
 *
 * Kept are only those open elements that decide whether "</body>" counts, what tags in a select or
 * a table do, and where SVG and MathML begin and end. Names are in lower case.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_INJECT_TREE_H
#define RETORT_INJECT_TREE_H

#include "base/slice.h"

enum { TREE_DEPTH_MAX = 64 };

enum tree_phase { TREE_BEFORE_HEAD, TREE_IN_HEAD, TREE_AFTER_HEAD, TREE_IN_BODY, TREE_FRAMESET };

/* Sets of these are sums. */
enum tree_kind {
    TREE_TEMPLATE = 1,
    TREE_SELECT = 2,
    TREE_TABLE = 4,
    TREE_CELL = 8, /* a caption too */
    TREE_OBJECT = 16,
    TREE_FOREIGN = 32, /* <svg> or <math> */
    TREE_HTML = 64     /* inside of these: an element in which HTML begins again */
};

struct tree {
    enum tree_phase phase;
    bool is_document;  /* a doctype, <html>, <head>, <body> or <frameset> was there */
    bool body_is_sure; /* a frameset can't take the place of the body any more */
    bool is_too_deep;  /* more is open than can be kept: nothing is known any more */
    unsigned depth;
    struct tree_open {
        enum tree_kind kind;
        const char *name;
    } open[TREE_DEPTH_MAX]; /* the innermost last */
};

/* A start tag has ended; `closed`: with "/>". */
void tree_start(struct tree *tree, struct slice name, bool closed);
void tree_end(struct tree *tree, struct slice name);
/* Text that is not blank. */
void tree_text(struct tree *tree);

/* In a head, or in front of or behind one, where a tag or a text may begin the body. */
bool tree_is_before_body(const struct tree *tree);
/* May an element of this name stand there without beginning the body? With `prefix` the name may go
 * on. Of the names of the body itself: false. */
bool tree_is_of_head(const struct tree *tree, struct slice name, bool prefix);
/* Does "</body>" end the body here? */
bool tree_body_may_end(const struct tree *tree);
/* Would what stands here, at the end of the page, be shown? */
bool tree_shows_end(const struct tree *tree);
/* In SVG or MathML, where HTML has not begun again. */
bool tree_is_foreign(const struct tree *tree);
bool tree_has_open(const struct tree *tree, unsigned kinds);

/* Is `name` among these, or with `prefix` the beginning of one? */
bool tree_among(struct slice name, const char *const *names, size_t count, bool prefix);

#endif
