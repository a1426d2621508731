#include "inject/scanner.h"

enum scanner_state {
    TEXT,
    TAG_OPEN,     /* behind "<" */
    END_TAG_OPEN, /* behind "</" */
    TAG_NAME,     /* in the name of a start tag */
    END_TAG_NAME,
    IN_TAG,        /* behind the name, where attributes stand */
    VALUE_START,   /* behind an attribute's "=" */
    IN_VALUE,      /* without quotes: to the next blank */
    IN_DOUBLE,     /* in "..." */
    IN_SINGLE,     /* in '...' */
    MARKUP,        /* behind "<!" */
    MARKUP_DASH,   /* behind "<!-" */
    COMMENT_START, /* directly behind "<!--": ">" or "->" end it */
    COMMENT,
    DECLARATION, /* "<!...", "<?...", "</3...": to the next ">" */
    CDATA_START, /* in "<![CDATA[", `matched` bytes of what is behind "<!" */
    CDATA,
    RAW,      /* text of a raw element */
    RAW_OPEN, /* "<" in it, and `matched` bytes of something that counts there */
};

/* From this element on everything is text to the end of the page, even its own end tag. */
#define ENDLESS "plaintext"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const raw_elements[] = {"script", "style",   "title",    "textarea", "xmp",
                                           "iframe", "noembed", "noframes", "noscript", ENDLESS};
static const char *const ends_of_head[] = {"head", "body", "html", "br"};
static const char *const ends_of_body[] = {"body", "html"};
static const char *const body_tags[] = {"body", "frameset"};

void scanner_init(struct scanner *scanner, enum scanner_place place, enum scanner_page page) {
    memset(scanner, 0, offsetof(struct scanner, tag));
    scanner->place = place;
    scanner->page = page;
}

static bool scanner_is_letter(unsigned char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool scanner_is_blank(unsigned char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool ends_name(unsigned char c) {
    return c == '>' || c == '/' || scanner_is_blank(c);
}

static struct slice scanner_name_of(const struct scanner *scanner) {
    return slice_make(scanner->name, scanner->name_length);
}

static bool scanner_name_is(const struct scanner *scanner, const char *name) {
    return slice_equal(scanner_name_of(scanner), slice_from(name));
}

static const char *raw_name(const struct scanner *scanner) {
    for (size_t i = 0; i < COUNT_OF(raw_elements); i++)
        if (scanner_name_is(scanner, raw_elements[i]))
            return raw_elements[i];
    return NULL;
}

static void name_add(struct scanner *scanner, unsigned char c) {
    if (scanner->name_length < SCANNER_NAME_MAX)
        scanner->name[scanner->name_length++] = (char)ascii_lower(c);
}

/* May a tag or a text end the head here, or begin the body, so that the place is here? In XML it
 * may not, since all tags are written there. */
static bool body_may_begin(const struct scanner *scanner) {
    return scanner->place != SCANNER_BODY_END && scanner->page != SCANNER_XML &&
           tree_is_before_body(&scanner->tree);
}

/* The body begins without a tag of its own. In a fragment that is not the place. */
static void scanner_begin_body(struct scanner *scanner) {
    if (scanner->page == SCANNER_DOCUMENT || scanner->tree.is_document)
        scanner->found = true;
    else
        scanner->hopeless = true;
}

/* If "{" or "[" is the first byte, the server sends data and calls it a page. */
static bool is_data(const struct scanner *scanner, unsigned char c) {
    return (c == '{' || c == '[') && scanner->tree.phase == TREE_BEFORE_HEAD &&
           !scanner->tree.is_document;
}

/* Notes a byte of text that is not blank. A byte of 0 means UTF-16 or no page at all. */
static void note_text(struct scanner *scanner, unsigned char c) {
    if (scanner->page == SCANNER_XML)
        return;
    if (tree_is_before_body(&scanner->tree) && (c == 0 || is_data(scanner, c)))
        scanner->hopeless = true;
    else if (body_may_begin(scanner))
        scanner_begin_body(scanner);
    else
        tree_text(&scanner->tree);
}

/* Reads the first bytes of the page. A byte-order mark is no text. That of UTF-16 tells that tags
 * have other bytes, whatever the Content-Type says. */
static bool is_in_mark(struct scanner *scanner, unsigned char c) {
    static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
    if (scanner->mark == sizeof mark)
        return false;
    if (c == mark[scanner->mark]) {
        scanner->mark++;
        return true;
    }
    scanner->hopeless = scanner->mark == 0 && (c == 0xfe || c == 0xff);
    scanner->mark = sizeof mark;
    return scanner->hopeless;
}

static unsigned scanner_text(struct scanner *scanner, unsigned char c) {
    if (is_in_mark(scanner, c))
        return TEXT;
    if (c != '<' && !scanner_is_blank(c))
        note_text(scanner, c);
    return c == '<' ? TAG_OPEN : TEXT;
}

static unsigned tag_open(struct scanner *scanner, unsigned char c) {
    scanner->name_length = 0;
    scanner->in_attribute = scanner->in_body_tag = scanner->is_closed = false;
    if (c == '/')
        return END_TAG_OPEN;
    if (c == '!')
        return MARKUP;
    if (c == '?')
        return DECLARATION;
    if (!scanner_is_letter(c)) {
        note_text(scanner, '<'); /* which it was */
        return c == '<' ? TAG_OPEN : TEXT;
    }
    name_add(scanner, c);
    return TAG_NAME;
}

static unsigned end_tag_open(struct scanner *scanner, unsigned char c) {
    if (c == '>')
        return TEXT;
    if (!scanner_is_letter(c))
        return DECLARATION;
    name_add(scanner, c);
    return END_TAG_NAME;
}

/* A tag has ended: does text follow that is not HTML? Not behind an end tag, which has lost its
 * name by now. */
static unsigned after_tag(struct scanner *scanner) {
    struct tree *tree = &scanner->tree;
    bool is_xml = scanner->page == SCANNER_XML, is_empty = is_xml && scanner->is_closed;
    if (scanner->name_length == 0)
        return TEXT;
    if (scanner->in_body_tag && !is_empty) {
        scanner->found = true;
        scanner->pending = 0;
    }
    bool is_raw = !tree_is_foreign(tree); /* of what leaves SVG, nothing is */
    if (!is_empty)
        tree_start(tree, scanner_name_of(scanner), scanner->is_closed);
    scanner->hopeless |=
        tree->is_too_deep || (tree->phase == TREE_FRAMESET && scanner->place != SCANNER_HEAD_END);
    scanner->raw = is_raw && !is_empty ? raw_name(scanner) : NULL;
    scanner->matched = scanner->escape = 0;
    return scanner->raw != NULL ? RAW : TEXT;
}

/* A start tag before the body; its name is read or has begun. Does it begin the body, so that the
 * place is here? */
static void judge_start(struct scanner *scanner, bool complete) {
    struct tree *tree = &scanner->tree;
    struct slice name = scanner_name_of(scanner);
    if (scanner->place == SCANNER_BODY_END || !tree_is_before_body(tree) ||
        tree_is_of_head(tree, name, !complete))
        return;
    bool is_body = tree_among(name, body_tags, COUNT_OF(body_tags), !complete);
    if (is_body && !complete)
        return;
    if (is_body && scanner->place == SCANNER_HEAD_END)
        scanner->found = true;
    else if (is_body)
        scanner->in_body_tag = scanner_name_is(scanner, "body");
    else if (body_may_begin(scanner))
        scanner_begin_body(scanner);
}

static unsigned tag_name(struct scanner *scanner, unsigned char c) {
    bool complete = ends_name(c);
    if (!complete)
        name_add(scanner, c);
    judge_start(scanner, complete);
    if (!complete)
        return TAG_NAME;
    scanner->is_closed = c == '/';
    return c == '>' ? after_tag(scanner) : IN_TAG;
}

/* The end tags that may mark the place, in `names`. */
static size_t wanted_ends(const struct scanner *scanner, const char *const **names) {
    bool may_end = scanner->place == SCANNER_BODY_END ? tree_body_may_end(&scanner->tree)
                                                      : body_may_begin(scanner);
    bool in_head = scanner->tree.phase <= TREE_IN_HEAD && tree_is_before_body(&scanner->tree);
    bool wants_head = scanner->place == SCANNER_HEAD_END && in_head;
    *names = scanner->place == SCANNER_BODY_END ? ends_of_body : ends_of_head + !wants_head;
    if (scanner->place == SCANNER_BODY_END)
        return may_end ? COUNT_OF(ends_of_body) : 0;
    return may_end ? COUNT_OF(ends_of_head) - !wants_head : wants_head;
}

static unsigned end_tag_name(struct scanner *scanner, unsigned char c) {
    if (!ends_name(c)) {
        name_add(scanner, c);
        return END_TAG_NAME;
    }
    const char *const *names;
    size_t count = wanted_ends(scanner, &names);
    scanner->found = tree_among(scanner_name_of(scanner), names, count, false);
    tree_end(&scanner->tree, scanner_name_of(scanner));
    scanner->name_length = 0; /* an end tag opens no raw text */
    return c == '>' ? TEXT : IN_TAG;
}

static unsigned in_tag(struct scanner *scanner, unsigned char c) {
    if (c == '>')
        return after_tag(scanner);
    scanner->is_closed = c == '/';
    if (c == '=' && scanner->in_attribute) {
        scanner->in_attribute = false;
        return VALUE_START;
    }
    if (c == '/')
        scanner->in_attribute = false;
    else if (!scanner_is_blank(c)) /* "=" too, where a name may begin */
        scanner->in_attribute = true;
    return IN_TAG;
}

static unsigned value_start(struct scanner *scanner, unsigned char c) {
    if (c == '"')
        return IN_DOUBLE;
    if (c == '\'')
        return IN_SINGLE;
    if (c == '>')
        return after_tag(scanner);
    return scanner_is_blank(c) ? VALUE_START : IN_VALUE;
}

static unsigned in_value(struct scanner *scanner, unsigned char c) {
    if (c == '>')
        return after_tag(scanner);
    return scanner_is_blank(c) ? IN_TAG : IN_VALUE;
}

static unsigned markup(struct scanner *scanner, unsigned char c) {
    scanner->tree.is_document |=
        (c | 0x20) == 'd'; /* "<!doctype", or a comment that nobody writes */
    scanner->matched = 1;
    if (c == '[' && (scanner->page == SCANNER_XML || tree_is_foreign(&scanner->tree)))
        return CDATA_START;
    return c == '-' ? MARKUP_DASH : c == '>' ? TEXT : DECLARATION;
}

static unsigned comment(struct scanner *scanner, unsigned char c) {
    if (c == '>' && scanner->matched >= 2)
        return TEXT;
    if (c == '!' && scanner->matched == 2) { /* "--!>" ends a comment too */
        scanner->matched = 3;
        return COMMENT;
    }
    scanner->matched = c == '-' ? (scanner->matched == 1 || scanner->matched == 2 ? 2 : 1) : 0;
    return COMMENT;
}

static unsigned comment_start(struct scanner *scanner, unsigned char c) {
    if (c == '>')
        return TEXT;
    if (c == '-' && scanner->matched == 0) {
        scanner->matched = 1;
        return COMMENT_START;
    }
    if (c == '-') {
        scanner->matched = 2;
        return COMMENT;
    }
    scanner->matched = 0;
    return COMMENT;
}

static unsigned markup_dash(struct scanner *scanner, unsigned char c) {
    scanner->matched = 0;
    if (c == '>')
        return TEXT;
    return c == '-' ? COMMENT_START : DECLARATION;
}

static unsigned cdata(struct scanner *scanner, unsigned char c) {
    if (c == '>' && scanner->matched == 2)
        return TEXT;
    scanner->matched = c == ']' ? (scanner->matched < 2 ? scanner->matched + 1 : 2) : 0;
    return CDATA;
}

static unsigned cdata_start(struct scanner *scanner, unsigned char c) {
    static const char opening[] = "[CDATA[";
    if (c != (unsigned char)opening[scanner->matched])
        return c == '>' ? TEXT : DECLARATION;
    if (++scanner->matched < sizeof opening - 1)
        return CDATA_START;
    scanner->matched = 0;
    return CDATA;
}

/* Reads raw text. In a script "<!--" begins what "-->" ends; `matched` counts the dashes. */
static unsigned raw(struct scanner *scanner, unsigned char c) {
    if (c == '<') {
        scanner->matched = 1;
        return RAW_OPEN;
    }
    if (scanner->escape > 0 && c == '>' && scanner->matched >= 2)
        scanner->escape = 0;
    scanner->matched = c == '-' ? scanner->matched + (scanner->matched < 2) : 0;
    return RAW;
}

/* `c` stands behind a name that ends the raw text, or that begins or ends another element in an
 * escaped script. */
static unsigned raw_boundary(struct scanner *scanner, unsigned char c) {
    bool is_end = scanner->opening == '/';
    scanner->matched = 0;
    if (!is_end || scanner->escape == 2) {
        scanner->escape = is_end ? 1 : 2;
        return raw(scanner, c);
    }
    scanner->name_length = 0;
    scanner->in_attribute = scanner->is_closed = false;
    return c == '>' ? TEXT : IN_TAG;
}

/* What counts inside the raw text and begins with "<" and the byte in `opening`; "": nothing
 * does. */
static const char *raw_expected(const struct scanner *scanner, char end[2 + SCANNER_NAME_MAX + 1]) {
    bool is_script = strcmp(scanner->raw, "script") == 0;
    if (scanner->opening == '/' && strcmp(scanner->raw, ENDLESS) != 0) {
        memcpy(end, "</", 2);
        strcpy(end + 2, scanner->raw);
        return end;
    }
    if (scanner->opening == '!' && is_script && scanner->escape == 0)
        return "<!--";
    return scanner->opening == 's' && is_script && scanner->escape == 1 ? "<script" : "";
}

static unsigned raw_open(struct scanner *scanner, unsigned char c) {
    char end[2 + SCANNER_NAME_MAX + 1];
    if (scanner->matched == 1)
        scanner->opening = (char)ascii_lower(c);
    const char *expected = raw_expected(scanner, end);
    size_t length = strlen(expected);
    if (scanner->matched == length && ends_name(c))
        return raw_boundary(scanner, c);
    if (scanner->matched >= length || ascii_lower(c) != (unsigned char)expected[scanner->matched]) {
        scanner->matched = 0;
        return raw(scanner, c);
    }
    scanner->matched++;
    if (scanner->opening != '!' || scanner->matched < length)
        return RAW_OPEN;
    scanner->escape = 1;
    scanner->matched = 2;
    return RAW;
}

static unsigned scanner_step(struct scanner *scanner, unsigned char c) {
    switch (scanner->state) {
    case TEXT: return scanner_text(scanner, c);
    case TAG_OPEN: return tag_open(scanner, c);
    case END_TAG_OPEN: return end_tag_open(scanner, c);
    case TAG_NAME: return tag_name(scanner, c);
    case END_TAG_NAME: return end_tag_name(scanner, c);
    case IN_TAG: return in_tag(scanner, c);
    case VALUE_START: return value_start(scanner, c);
    case IN_VALUE: return in_value(scanner, c);
    case IN_DOUBLE: return c == '"' ? IN_TAG : IN_DOUBLE;
    case IN_SINGLE: return c == '\'' ? IN_TAG : IN_SINGLE;
    case MARKUP: return markup(scanner, c);
    case MARKUP_DASH: return markup_dash(scanner, c);
    case COMMENT_START: return comment_start(scanner, c);
    case COMMENT: return comment(scanner, c);
    case DECLARATION: return c == '>' ? TEXT : DECLARATION;
    case CDATA_START: return cdata_start(scanner, c);
    case CDATA: return cdata(scanner, c);
    case RAW: return raw(scanner, c);
    default: return raw_open(scanner, c);
    }
}

/* Is this a place where text changes nothing? */
static bool is_known_text(const struct scanner *scanner) {
    return scanner->page == SCANNER_XML || scanner->tree.phase == TREE_FRAMESET ||
           (scanner->tree.phase == TREE_IN_BODY && scanner->tree.body_is_sure);
}

/* The byte that must come before the state can change; -1: every byte counts. */
static int waiting_for(const struct scanner *scanner) {
    if (scanner->wants_metas && scanner->pending > 0)
        return -1;
    switch (scanner->state) {
    case TEXT: return scanner->mark == 3 && is_known_text(scanner) ? '<' : -1;
    case RAW: return scanner->escape == 0 ? '<' : -1;
    case IN_DOUBLE: return '"';
    case IN_SINGLE: return '\'';
    case DECLARATION: return '>';
    default: return -1;
    }
}

/* Is the tag that is being read a <meta> that is wanted as a whole? */
static bool is_meta(const struct scanner *scanner) {
    static const char *const metas[] = {"meta"};
    return scanner->wants_metas && !tree_has_open(&scanner->tree, TREE_TEMPLATE) &&
           tree_among(scanner_name_of(scanner), metas, COUNT_OF(metas), scanner->state == TAG_NAME);
}

/* May the tag whose name has begun be wanted? In XML only the tags of the body are. Elsewhere any
 * other tag has been judged by its first letters. */
static bool may_be_wanted(const struct scanner *scanner) {
    return scanner->page != SCANNER_XML ||
           tree_among(scanner_name_of(scanner), body_tags, COUNT_OF(body_tags), true);
}

/* May the tag that is being read still turn out to be the place? */
static bool is_candidate(const struct scanner *scanner) {
    const char *const *ends;
    size_t count = wanted_ends(scanner, &ends);
    bool may_begin = scanner->place != SCANNER_BODY_END && tree_is_before_body(&scanner->tree);
    switch (scanner->state) {
    case TAG_OPEN: return may_begin || count > 0 || scanner->wants_metas;
    case END_TAG_OPEN: return count > 0;
    case TAG_NAME: return is_meta(scanner) || (may_begin && may_be_wanted(scanner));
    case END_TAG_NAME: return tree_among(scanner_name_of(scanner), ends, count, true);
    case IN_TAG:
    case VALUE_START:
    case IN_VALUE:
    case IN_DOUBLE:
    case IN_SINGLE: return is_meta(scanner);
    default: return false;
    }
}

/* Collects what may be a <meta>. True when the tag is there as a whole. */
static bool collect_meta(struct scanner *scanner, unsigned char c) {
    if (!scanner->wants_metas || scanner->pending == 0)
        return false;
    if (scanner->pending > SCANNER_META_MAX) {
        scanner->lost_meta |= scanner_name_is(scanner, "meta");
        scanner->name_length = 0;
        return false;
    }
    scanner->tag[scanner->pending - 1] = (char)c;
    if (scanner->state != TEXT || c != '>' || !is_meta(scanner))
        return false;
    scanner->meta = slice_make(scanner->tag, scanner->pending);
    return true;
}

size_t scanner_scan(struct scanner *scanner, struct slice piece) {
    size_t at = 0;
    if (scanner->meta.base != NULL) {
        scanner->meta = slice_make(NULL, 0);
        scanner->pending = 0;
    }
    while (at < piece.length && !scanner->found && !scanner->hopeless) {
        int wanted = waiting_for(scanner);
        if (wanted >= 0) {
            const char *next = memchr(piece.base + at, wanted, piece.length - at);
            if (next == NULL)
                return piece.length;
            at = (size_t)(next - piece.base);
        }
        unsigned char c = (unsigned char)piece.base[at++];
        unsigned before = scanner->state;
        scanner->pending++;
        scanner->state = scanner_step(scanner, c);
        if (scanner->state == TAG_OPEN && !scanner->found)
            scanner->pending = 1;
        if (collect_meta(scanner, c))
            return at;
        if (!scanner->found && !is_candidate(scanner))
            scanner->pending = 0;
        else if (scanner->found && before == TEXT)
            scanner->pending = 1; /* a text begins the body */
    }
    return at;
}

bool scanner_end(struct scanner *scanner) {
    const struct tree *tree = &scanner->tree;
    bool is_document = scanner->page == SCANNER_DOCUMENT || tree->is_document;
    bool is_shown =
        scanner->place == SCANNER_BODY_END ? tree_shows_end(tree) : tree_is_before_body(tree);
    if (scanner->page != SCANNER_XML && scanner->state == TEXT && is_document && is_shown &&
        !scanner->hopeless) {
        scanner->found = true;
        scanner->pending = 0;
    }
    return scanner->found;
}
