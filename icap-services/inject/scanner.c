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

/* What begins here is text to the end of the page, its own end tag too. */
#define ENDLESS "plaintext"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const raw_elements[] = {"script", "style",   "title",    "textarea", "xmp",
                                           "iframe", "noembed", "noframes", "noscript", ENDLESS};
/* What can stand in a head without ending it; and what lets it go on, or begin. */
static const char *const head_elements[] = {
    "html",   "head",  "base",     "basefont", "bgsound",  "link", "meta",
    "script", "style", "template", "noframes", "noscript", "title"};
static const char *const ends_of_head[] = {"head", "body", "html", "br"};
static const char *const ends_of_body[] = {"body", "html"};
/* §13.2.6.5: where HTML begins again inside of SVG and MathML, and what leaves these. */
static const char *const html_again[] = {
    "foreignobject", "desc", "title", "annotation-xml", "mi", "mo", "mn", "ms", "mtext"};
static const char *const leaves_foreign[] = {
    "b",      "big",  "blockquote", "body",  "br",   "center", "code",    "dd",   "div",
    "dl",     "dt",   "em",         "embed", "h1",   "h2",     "h3",      "h4",   "h5",
    "h6",     "head", "hr",         "i",     "img",  "li",     "listing", "menu", "meta",
    "nobr",   "ol",   "p",          "pre",   "ruby", "s",      "small",   "span", "strong",
    "strike", "sub",  "sup",        "table", "tt",   "u",      "ul",      "var"};

void scanner_init(struct scanner *scanner, enum scanner_place place) {
    memset(scanner, 0, offsetof(struct scanner, tag));
    scanner->place = place;
}

static bool is_letter(unsigned char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_blank(unsigned char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool ends_name(unsigned char c) {
    return c == '>' || c == '/' || is_blank(c);
}

static bool name_is(const struct scanner *scanner, const char *name) {
    size_t length = strlen(name);
    return scanner->name_length == length && memcmp(scanner->name, name, length) == 0;
}

static const char *name_among(const struct scanner *scanner, const char *const *names,
                              size_t count) {
    for (size_t i = 0; i < count; i++)
        if (name_is(scanner, names[i]))
            return names[i];
    return NULL;
}

/* Could the name so far still become one of these? Longer ones than the buffer are none of ours. */
static bool name_begins(const struct scanner *scanner, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (scanner->name_length <= strlen(names[i]) &&
            memcmp(scanner->name, names[i], scanner->name_length) == 0)
            return true;
    return false;
}

static void name_add(struct scanner *scanner, unsigned char c) {
    if (scanner->name_length < SCANNER_NAME_MAX)
        scanner->name[scanner->name_length++] = (char)ascii_lower(c);
}

/* Are we in a head, or between it and the body, so that anything else would begin the body? */
static bool body_may_begin(const struct scanner *scanner) {
    return scanner->is_document && !scanner->is_framed && scanner->templates == 0 &&
           scanner->place != SCANNER_BODY_END;
}

/* SVG and MathML, unless HTML has begun again inside. */
static bool is_foreign(const struct scanner *scanner) {
    if (scanner->foreign_depth == 0)
        return false;
    const char *inmost = scanner->foreign[scanner->foreign_depth - 1];
    return strcmp(inmost, "svg") == 0 || strcmp(inmost, "math") == 0;
}

static void enter(struct scanner *scanner, const char *element) {
    if (scanner->foreign_depth < SCANNER_FOREIGN_MAX)
        scanner->foreign[scanner->foreign_depth++] = element;
}

static void note_foreign_start(struct scanner *scanner) {
    static const char *const roots[] = {"svg", "math"};
    const char *root = name_among(scanner, roots, COUNT_OF(roots));
    const char *html = name_among(scanner, html_again, COUNT_OF(html_again));
    bool foreign = is_foreign(scanner);
    if (foreign && name_among(scanner, leaves_foreign, COUNT_OF(leaves_foreign)))
        scanner->foreign_depth = 0;
    else if (!scanner->is_closed && (root != NULL || (html != NULL && foreign)))
        enter(scanner, root != NULL ? root : html);
}

static void note_foreign_end(struct scanner *scanner) {
    unsigned depth = scanner->foreign_depth;
    while (depth > 0 && !name_is(scanner, scanner->foreign[depth - 1]))
        depth--;
    if (depth > 0)
        scanner->foreign_depth = depth - 1;
}

static unsigned text(struct scanner *scanner, unsigned char c) {
    if (c != '<' && !is_blank(c) && body_may_begin(scanner))
        scanner->found = true;
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
    if (!is_letter(c)) {
        scanner->found = body_may_begin(scanner); /* the "<" was text */
        return c == '<' ? TAG_OPEN : TEXT;
    }
    name_add(scanner, c);
    return TAG_NAME;
}

static unsigned end_tag_open(struct scanner *scanner, unsigned char c) {
    if (c == '>')
        return TEXT;
    if (!is_letter(c))
        return DECLARATION;
    name_add(scanner, c);
    return END_TAG_NAME;
}

/* The start tag has closed: is text to follow that is not HTML? */
static unsigned after_start_tag(struct scanner *scanner) {
    bool in_html = !is_foreign(scanner);
    if (scanner->in_body_tag) {
        scanner->found = true;
        scanner->pending = 0;
    }
    note_foreign_start(scanner);
    scanner->templates += name_is(scanner, "template");
    scanner->is_document |= name_is(scanner, "html") || name_is(scanner, "head");
    scanner->is_framed |= name_is(scanner, "frameset");
    scanner->raw = in_html ? name_among(scanner, raw_elements, COUNT_OF(raw_elements)) : NULL;
    scanner->matched = scanner->escape = 0;
    return scanner->raw != NULL ? RAW : TEXT;
}

/* A start tag whose name is read, or can't become one of a head any more. */
static void judge_start(struct scanner *scanner, bool complete) {
    bool is_body = complete && name_is(scanner, "body") && scanner->templates == 0;
    bool stays = complete ? name_among(scanner, head_elements, COUNT_OF(head_elements)) != NULL
                          : name_begins(scanner, head_elements, COUNT_OF(head_elements));
    if (scanner->place == SCANNER_HEAD_END)
        scanner->found = is_body || (!stays && body_may_begin(scanner));
    else if (scanner->place == SCANNER_BODY_START && !is_body && !stays) {
        static const char *const others[] = {"body", "frameset"};
        bool open =
            complete ? name_is(scanner, others[1]) : name_begins(scanner, others, COUNT_OF(others));
        scanner->found = !open && body_may_begin(scanner);
    }
    scanner->in_body_tag = is_body && scanner->place == SCANNER_BODY_START;
}

static unsigned tag_name(struct scanner *scanner, unsigned char c) {
    bool complete = ends_name(c);
    if (!complete)
        name_add(scanner, c);
    judge_start(scanner, complete);
    if (!complete)
        return TAG_NAME;
    scanner->is_closed = c == '/';
    return c == '>' ? after_start_tag(scanner) : IN_TAG;
}

/* The end tags before which the place may be, in `names`. */
static size_t wanted_ends(const struct scanner *scanner, const char *const **names) {
    *names = scanner->place == SCANNER_BODY_END ? ends_of_body : ends_of_head;
    if (scanner->place == SCANNER_BODY_END)
        return COUNT_OF(ends_of_body);
    if (scanner->place == SCANNER_BODY_START)
        (*names)++;
    size_t first = scanner->place == SCANNER_HEAD_END;
    return body_may_begin(scanner) ? COUNT_OF(ends_of_head) - !first : first;
}

static unsigned end_tag_name(struct scanner *scanner, unsigned char c) {
    if (!ends_name(c)) {
        name_add(scanner, c);
        return END_TAG_NAME;
    }
    const char *const *names;
    size_t count = wanted_ends(scanner, &names);
    note_foreign_end(scanner);
    if (name_is(scanner, "template") && scanner->templates > 0)
        scanner->templates--;
    scanner->found = name_among(scanner, names, count) != NULL && scanner->templates == 0;
    scanner->name_length = 0; /* an end tag opens no raw text */
    return c == '>' ? TEXT : IN_TAG;
}

static unsigned in_tag(struct scanner *scanner, unsigned char c) {
    if (c == '>')
        return after_start_tag(scanner);
    scanner->is_closed = c == '/';
    if (c == '=' && scanner->in_attribute) {
        scanner->in_attribute = false;
        return VALUE_START;
    }
    if (c == '/')
        scanner->in_attribute = false;
    else if (!is_blank(c)) /* "=" too, where a name may begin */
        scanner->in_attribute = true;
    return IN_TAG;
}

static unsigned value_start(struct scanner *scanner, unsigned char c) {
    if (c == '"')
        return IN_DOUBLE;
    if (c == '\'')
        return IN_SINGLE;
    if (c == '>')
        return after_start_tag(scanner);
    return is_blank(c) ? VALUE_START : IN_VALUE;
}

static unsigned in_value(struct scanner *scanner, unsigned char c) {
    if (c == '>')
        return after_start_tag(scanner);
    return is_blank(c) ? IN_TAG : IN_VALUE;
}

static unsigned markup(struct scanner *scanner, unsigned char c) {
    scanner->is_document |= (c | 0x20) == 'd'; /* "<!doctype", or a comment that nobody writes */
    scanner->matched = 1;
    if (c == '[' && is_foreign(scanner))
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

/* In a script "<!--" begins what "-->" ends; `matched` counts its dashes. */
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

/* The name of what ends the raw text, or within an escaped script begins and ends another, is
 * there: `c` is behind it. */
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

/* What counts within the raw text and begins with "<" and the byte in `opening`; "" for nothing. */
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

static unsigned step(struct scanner *scanner, unsigned char c) {
    switch (scanner->state) {
    case TEXT: return text(scanner, c);
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

/* The byte that has to come before a state can be left, -1 when every byte counts. */
static int waiting_for(const struct scanner *scanner) {
    if (scanner->wants_metas && scanner->pending > 0)
        return -1;
    switch (scanner->state) {
    case TEXT: return body_may_begin(scanner) ? -1 : '<';
    case RAW: return scanner->escape == 0 ? '<' : -1;
    case IN_DOUBLE: return '"';
    case IN_SINGLE: return '\'';
    case DECLARATION: return '>';
    default: return -1;
    }
}

/* Does the tag being read matter as a whole? */
static bool is_meta(const struct scanner *scanner) {
    static const char *const metas[] = {"meta"};
    if (!scanner->wants_metas || scanner->templates > 0)
        return false;
    return scanner->state == TAG_NAME ? name_begins(scanner, metas, 1) : name_is(scanner, metas[0]);
}

/* May what is being read still turn out to be the one? */
static bool is_candidate(const struct scanner *scanner) {
    static const char *const body[] = {"body"};
    const char *const *ends;
    size_t count = wanted_ends(scanner, &ends);
    bool may_begin = body_may_begin(scanner);
    switch (scanner->state) {
    case TAG_OPEN: return scanner->place != SCANNER_BODY_START || may_begin || scanner->wants_metas;
    case END_TAG_OPEN: return count > 0;
    case TAG_NAME:
        return is_meta(scanner) || may_begin ||
               (scanner->place == SCANNER_HEAD_END && name_begins(scanner, body, 1));
    case END_TAG_NAME: return name_begins(scanner, ends, count);
    case IN_TAG:
    case VALUE_START:
    case IN_VALUE:
    case IN_DOUBLE:
    case IN_SINGLE: return is_meta(scanner);
    default: return false;
    }
}

/* Keeps what may be a meta tag; true when it is there as a whole. */
static bool collect_meta(struct scanner *scanner, unsigned char c) {
    if (!scanner->wants_metas || scanner->pending == 0)
        return false;
    if (scanner->pending > SCANNER_META_MAX) {
        scanner->lost_meta |= name_is(scanner, "meta");
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
    while (at < piece.length && !scanner->found) {
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
        scanner->state = step(scanner, c);
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
