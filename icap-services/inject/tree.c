#include "inject/tree.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const body_or_frameset[] = {"body", "frameset"};
/* The elements that can stand in a head. All but the last can stand behind it too (§13.2.6.4.6). */
static const char *const of_head[] = {"html",     "head",  "base",    "basefont", "bgsound",
                                      "link",     "meta",  "script",  "style",    "template",
                                      "noframes", "title", "noscript"};
/* §13.2.6.5: the elements that leave SVG and MathML, and those in which HTML begins again. */
static const char *const leaves_foreign[] = {
    "b",      "big",  "blockquote", "body",  "br",   "center", "code",    "dd",   "div",
    "dl",     "dt",   "em",         "embed", "h1",   "h2",     "h3",      "h4",   "h5",
    "h6",     "head", "hr",         "i",     "img",  "li",     "listing", "menu", "meta",
    "nobr",   "ol",   "p",          "pre",   "ruby", "s",      "small",   "span", "strong",
    "strike", "sub",  "sup",        "table", "tt",   "u",      "ul",      "var"};
static const char *const html_in_svg[] = {"foreignobject", "desc", "title"};
static const char *const html_in_math[] = {"annotation-xml", "mi", "mo", "mn", "ms", "mtext"};
/* Behind one of these elements a frameset can't take the place of the body ("frameset-ok"). */
static const char *const fixes_body[] = {"body",     "pre",    "listing", "li",     "dd",    "dt",
                                         "button",   "applet", "marquee", "object", "table", "area",
                                         "br",       "embed",  "img",     "keygen", "wbr",   "hr",
                                         "textarea", "xmp",    "iframe",  "select", "image"};
static const char *const parts_of_table[] = {"caption", "td",    "th",  "tr",      "tbody",
                                             "thead",   "tfoot", "col", "colgroup"};
static const char *const end_select[] = {"input", "keygen", "textarea"};

static const struct tree_open kept[] = {
    {TREE_TEMPLATE, "template"}, {TREE_SELECT, "select"}, {TREE_TABLE, "table"},
    {TREE_CELL, "caption"},      {TREE_CELL, "td"},       {TREE_CELL, "th"},
    {TREE_OBJECT, "object"},     {TREE_OBJECT, "applet"}, {TREE_OBJECT, "marquee"},
    {TREE_FOREIGN, "svg"},       {TREE_FOREIGN, "math"},
};

static bool is(struct slice name, const char *other) {
    return slice_equal(name, slice_from(other));
}

static const char *tree_find(struct slice name, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is(name, names[i]))
            return names[i];
    return NULL;
}

bool tree_among(struct slice name, const char *const *names, size_t count, bool prefix) {
    for (size_t i = 0; i < count; i++)
        if (prefix ? slice_starts_with(slice_from(names[i]), name) : is(name, names[i]))
            return true;
    return false;
}

static enum tree_kind tree_top(const struct tree *tree) {
    return tree->depth > 0 ? tree->open[tree->depth - 1].kind : 0;
}

bool tree_has_open(const struct tree *tree, unsigned kinds) {
    for (unsigned i = 0; i < tree->depth; i++)
        if (tree->open[i].kind & kinds)
            return true;
    return false;
}

bool tree_is_foreign(const struct tree *tree) {
    return tree_top(tree) == TREE_FOREIGN;
}

static void tree_enter(struct tree *tree, enum tree_kind kind, const char *name) {
    if (tree->depth == TREE_DEPTH_MAX)
        tree->is_too_deep = true;
    else
        tree->open[tree->depth++] = (struct tree_open){kind, name};
}

/* The number of open elements up to the innermost one of these kinds; 0 when there is none, or when
 * one of `bounds` is nearer. */
static unsigned nearest(const struct tree *tree, unsigned kinds, unsigned bounds) {
    for (unsigned depth = tree->depth; depth > 0; depth--) {
        if (tree->open[depth - 1].kind & kinds)
            return depth;
        if (tree->open[depth - 1].kind & bounds)
            break;
    }
    return 0;
}

/* Closes the innermost element of these kinds and this name, with all elements in it. */
static void tree_leave(struct tree *tree, struct slice name, unsigned kinds, unsigned bounds) {
    for (unsigned depth = tree->depth; depth > 0; depth--) {
        const struct tree_open *open = &tree->open[depth - 1];
        if ((open->kind & kinds) && is(name, open->name)) {
            tree->depth = depth - 1;
            return;
        }
        if (open->kind & bounds)
            return;
    }
}

bool tree_is_before_body(const struct tree *tree) {
    return tree->phase < TREE_IN_BODY && !tree_has_open(tree, TREE_TEMPLATE);
}

bool tree_is_of_head(const struct tree *tree, struct slice name, bool prefix) {
    return tree_among(name, of_head, COUNT_OF(of_head) - (tree->phase == TREE_AFTER_HEAD), prefix);
}

/* The standard lets "</body>" count in SVG and MathML too. But these stay open behind it, so that
 * text behind "</svg>" would belong to the body again. So it does not count there. */
bool tree_body_may_end(const struct tree *tree) {
    return tree->phase != TREE_FRAMESET && tree->depth == 0;
}

bool tree_shows_end(const struct tree *tree) {
    return tree->phase != TREE_FRAMESET &&
           !tree_has_open(tree, TREE_TEMPLATE | TREE_SELECT | TREE_OBJECT);
}

/* A tag has come before the body: finds the phase that follows. */
static void tree_advance(struct tree *tree, struct slice name) {
    tree->is_document |= is(name, "html") || is(name, "head") ||
                         tree_among(name, body_or_frameset, COUNT_OF(body_or_frameset), false);
    if (is(name, "frameset"))
        tree->phase = TREE_FRAMESET;
    else if (!tree_is_of_head(tree, name, false)) {
        tree->phase = TREE_IN_BODY;
        tree->body_is_sure = is(name, "body");
    } else if (tree->phase == TREE_BEFORE_HEAD && !is(name, "html"))
        tree->phase = TREE_IN_HEAD;
}

static void start_foreign(struct tree *tree, struct slice name, bool closed) {
    const char *root = tree->open[tree->depth - 1].name;
    bool is_svg = strcmp(root, "svg") == 0;
    const char *html = is_svg ? tree_find(name, html_in_svg, COUNT_OF(html_in_svg))
                              : tree_find(name, html_in_math, COUNT_OF(html_in_math));
    if (closed)
        return;
    if (html != NULL)
        tree_enter(tree, TREE_HTML, html);
    else if (is(name, root))
        tree_enter(tree, TREE_FOREIGN, root);
}

/* Closes what the new tag closes: "<td>" and similar tags close the cell before them; a table
 * inside a table, but outside a cell, closes the outer one; a select closes at tags that can't
 * stand in it. False: the tag is ignored. */
static bool tree_make_room(struct tree *tree, struct slice name) {
    bool is_part = tree_among(name, parts_of_table, COUNT_OF(parts_of_table), false);
    unsigned table = nearest(tree, TREE_TABLE, TREE_TEMPLATE);
    if (tree_top(tree) == TREE_SELECT) {
        if ((is_part || is(name, "table")) && table > 0)
            tree->depth--;
        else if (is(name, "select") || tree_among(name, end_select, COUNT_OF(end_select), false)) {
            tree->depth--;
            return !is(name, "select");
        } else
            return is(name, "template");
    }
    if (is_part) {
        if (table == 0)
            return false;
        tree->depth = table;
    } else if (is(name, "table") && nearest(tree, TREE_TABLE, TREE_TEMPLATE | TREE_CELL) > 0)
        tree->depth = table - 1;
    return true;
}

void tree_start(struct tree *tree, struct slice name, bool closed) {
    if (tree_is_foreign(tree)) {
        if (!tree_among(name, leaves_foreign, COUNT_OF(leaves_foreign), false)) {
            start_foreign(tree, name, closed);
            return;
        }
        while (tree_is_foreign(tree))
            tree->depth--;
    }
    bool in_template = tree_has_open(tree, TREE_TEMPLATE);
    if (tree_is_before_body(tree))
        tree_advance(tree, name);
    else if (is(name, "frameset") && !tree->body_is_sure && !in_template)
        tree->phase = TREE_FRAMESET;
    if (tree->phase == TREE_FRAMESET || (!in_template && !tree_make_room(tree, name)))
        return;
    tree->body_is_sure |= tree_among(name, fixes_body, COUNT_OF(fixes_body), false);
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        if (is(name, kept[i].name) && !(closed && kept[i].kind == TREE_FOREIGN) &&
            (!in_template || (kept[i].kind & (TREE_FOREIGN | TREE_TEMPLATE))))
            tree_enter(tree, kept[i].kind, kept[i].name);
}

static void end_part_of_table(struct tree *tree, struct slice name) {
    unsigned bounds = TREE_TABLE | TREE_TEMPLATE;
    unsigned cell = nearest(tree, TREE_CELL, bounds);
    bool is_own_end = is(name, "td") || is(name, "th") || is(name, "caption");
    if (tree_top(tree) == TREE_SELECT) {
        if (nearest(tree, TREE_TABLE, TREE_TEMPLATE) == 0)
            return;
        tree->depth--;
    }
    if (is_own_end)
        tree_leave(tree, name, TREE_CELL, bounds);
    else if (cell > 0 && strcmp(tree->open[cell - 1].name, "caption") != 0 && !is(name, "col") &&
             !is(name, "colgroup"))
        tree->depth = cell - 1;
}

/* Handles the end tags of the elements that are kept, except those that end parts of the page. */
static void end_element(struct tree *tree, struct slice name) {
    unsigned html = TREE_TEMPLATE | TREE_SELECT | TREE_TABLE | TREE_CELL | TREE_OBJECT;
    if (tree_is_foreign(tree) && (is(name, "p") || is(name, "br")))
        while (tree_is_foreign(tree))
            tree->depth--;
    if (is(name, "template"))
        tree_leave(tree, name, TREE_TEMPLATE, 0);
    else if (is(name, "select"))
        tree_leave(tree, name, TREE_SELECT, TREE_TEMPLATE);
    else if (is(name, "table")) {
        if (nearest(tree, TREE_TABLE, TREE_TEMPLATE) > 0)
            tree_leave(tree, name, TREE_TABLE, TREE_TEMPLATE);
    } else if (tree_among(name, parts_of_table, COUNT_OF(parts_of_table), false))
        end_part_of_table(tree, name);
    else if (tree_top(tree) != TREE_SELECT) {
        tree_leave(tree, name, TREE_OBJECT, html | TREE_HTML);
        tree_leave(tree, name, TREE_FOREIGN | TREE_HTML, html);
    }
}

void tree_end(struct tree *tree, struct slice name) {
    bool ends_head = is(name, "body") || is(name, "html") || is(name, "br");
    if (!tree_is_before_body(tree))
        end_element(tree, name);
    else if (ends_head)
        tree->phase = TREE_IN_BODY;
    else if (is(name, "head"))
        tree->phase = TREE_AFTER_HEAD;
    tree->body_is_sure |= is(name, "br");
}

void tree_text(struct tree *tree) {
    if (tree_is_before_body(tree))
        tree->phase = TREE_IN_BODY;
    if (tree->phase == TREE_IN_BODY && !tree_has_open(tree, TREE_TEMPLATE))
        tree->body_is_sure = true;
}
