/*
 * Follows a page tag by tag, to know where its head and its body are. It does as much of the HTML
 * standard's tree construction (§13.2.6) as that needs. The scanner (scanner.h) reads the tags and
 * calls these functions, which know what the tags mean.
 *
 *     struct tree tree = {0};
 *     tree_start(&tree, SLICE("table"), false);
 *     tree_body_may_end(&tree)                     false: "</body>" in a table is ignored
 *     tree_end(&tree, SLICE("table"));
 *
 * A page may leave out the tags of its head and body; a browser makes both all the same. So other
 * tags and texts can begin the body too: tree_is_of_head() tells which tags can't.
 *
 * The tree keeps only the open elements that matter. They decide whether "</body>" counts, what
 * tags in a select or a table do, and where SVG and MathML begin and end. Names are in lower case.
 *
 * Threads: values; no shared state.
 */
#ifndef RETORT_INJECT_TREE_H
#define RETORT_INJECT_TREE_H

#include "base/slice.h"

enum { TREE_DEPTH_MAX = 64 };

enum tree_phase { TREE_BEFORE_HEAD, TREE_IN_HEAD, TREE_AFTER_HEAD, TREE_IN_BODY, TREE_FRAMESET };

/* The kinds of elements that the tree keeps. A set of kinds is their sum. */
enum tree_kind {
    TREE_TEMPLATE = 1,
    TREE_SELECT = 2,
    TREE_TABLE = 4,
    TREE_CELL = 8, /* a caption too */
    TREE_OBJECT = 16,
    TREE_FOREIGN = 32, /* <svg> or <math> */
    TREE_HTML = 64     /* inside <svg> or <math>: an element in which HTML begins again */
};

struct tree {
    enum tree_phase phase;
    bool is_document;  /* a doctype, <html>, <head>, <body> or <frameset> was there */
    bool body_is_sure; /* a frameset can't take the place of the body any more */
    bool is_too_deep;  /* more is open than the tree can keep: it knows nothing any more */
    unsigned depth;
    struct tree_open {
        enum tree_kind kind;
        const char *name;
    } open[TREE_DEPTH_MAX]; /* the innermost last */
};

/* A start tag has ended. `closed`: it ended with "/>". */
void tree_start(struct tree *tree, struct slice name, bool closed);
void tree_end(struct tree *tree, struct slice name);
/* A text has come that is not blank. */
void tree_text(struct tree *tree);

/* Is the page at a place in, before or behind the head, so that a tag or a text may begin the
 * body? */
bool tree_is_before_body(const struct tree *tree);
/* May an element of this name stand there without beginning the body? With `prefix`, `name` is the
 * beginning of a name. False for the names of the body itself. */
bool tree_is_of_head(const struct tree *tree, struct slice name, bool prefix);
/* Does "</body>" end the body here? */
bool tree_body_may_end(const struct tree *tree);
/* Would a browser show what stands here, at the end of the page? */
bool tree_shows_end(const struct tree *tree);
/* Is the page inside SVG or MathML, and HTML has not begun again? */
bool tree_is_foreign(const struct tree *tree);
bool tree_has_open(const struct tree *tree, unsigned kinds);

/* Is `name` one of the names, or, with `prefix`, the beginning of one? */
bool tree_among(struct slice name, const char *const *names, size_t count, bool prefix);

#endif
