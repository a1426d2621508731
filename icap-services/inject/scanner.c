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
    RAW,         /* text of a raw element */
    RAW_END,     /* "</na..." in it, `matched` bytes long */
};

static const char *const raw_elements[] = {"script", "style",  "title",   "textarea",
                                           "xmp",    "iframe", "noembed", "noframes"};

void scanner_init(struct scanner *scanner, enum scanner_place place) {
    memset(scanner, 0, sizeof *scanner);
    scanner->place = place;
}

static bool is_letter(unsigned char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static bool is_blank(unsigned char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool ends_name(unsigned char c) {
    return c == '>' || c == '/' || c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool name_is(const struct scanner *scanner, const char *name) {
    size_t length = strlen(name);
    return scanner->name_length == length && memcmp(scanner->name, name, length) == 0;
}

/* Could the name so far still become the one? Longer names than the buffer's are none of ours. */
static bool name_begins(const struct scanner *scanner, const char *name) {
    return scanner->name_length <= strlen(name) &&
           memcmp(scanner->name, name, scanner->name_length) == 0;
}

static void name_add(struct scanner *scanner, unsigned char c) {
    if (scanner->name_length < SCANNER_NAME_MAX)
        scanner->name[scanner->name_length++] = (char)ascii_lower(c);
}

static unsigned text(struct scanner *scanner, unsigned char c) {
    (void)scanner;
    return c == '<' ? TAG_OPEN : TEXT;
}

static unsigned tag_open(struct scanner *scanner, unsigned char c) {
    scanner->name_length = 0;
    scanner->in_attribute = scanner->in_body_tag = false;
    if (c == '/')
        return END_TAG_OPEN;
    if (c == '!')
        return MARKUP;
    if (c == '?')
        return DECLARATION;
    if (c == '<')
        return TAG_OPEN;
    if (!is_letter(c))
        return TEXT;
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
    scanner->found |= scanner->in_body_tag;
    scanner->templates += name_is(scanner, "template");
    scanner->raw = NULL;
    for (size_t i = 0; i < sizeof raw_elements / sizeof *raw_elements; i++)
        if (name_is(scanner, raw_elements[i]))
            scanner->raw = raw_elements[i];
    scanner->matched = 0;
    return scanner->raw != NULL ? RAW : TEXT;
}

static unsigned tag_name(struct scanner *scanner, unsigned char c) {
    if (!ends_name(c)) {
        name_add(scanner, c);
        return TAG_NAME;
    }
    bool is_body = name_is(scanner, "body") && scanner->templates == 0;
    scanner->found = is_body && scanner->place == SCANNER_HEAD_END;
    scanner->in_body_tag = is_body && scanner->place == SCANNER_BODY_START;
    return c == '>' ? after_start_tag(scanner) : IN_TAG;
}

/* The end tag before which the place may be. */
static const char *wanted_end(const struct scanner *scanner) {
    static const char *const names[] = {"head", NULL, "body"};
    return names[scanner->place];
}

static unsigned end_tag_name(struct scanner *scanner, unsigned char c) {
    if (!ends_name(c)) {
        name_add(scanner, c);
        return END_TAG_NAME;
    }
    const char *wanted = wanted_end(scanner);
    if (name_is(scanner, "template") && scanner->templates > 0)
        scanner->templates--;
    scanner->found = wanted != NULL && name_is(scanner, wanted) && scanner->templates == 0;
    scanner->name_length = 0; /* an end tag opens no raw text */
    return c == '>' ? TEXT : IN_TAG;
}

static unsigned in_tag(struct scanner *scanner, unsigned char c) {
    if (c == '>')
        return after_start_tag(scanner);
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

static unsigned raw(struct scanner *scanner, unsigned char c) {
    scanner->matched = 1;
    return c == '<' ? RAW_END : RAW;
}

static unsigned raw_end(struct scanner *scanner, unsigned char c) {
    size_t length = 2 + strlen(scanner->raw);
    if (scanner->matched == length && ends_name(c)) {
        scanner->name_length = 0;
        scanner->in_attribute = false;
        return c == '>' ? TEXT : IN_TAG;
    }
    bool goes_on = scanner->matched < length &&
                   (scanner->matched == 1
                        ? c == '/'
                        : ascii_lower(c) == (unsigned char)scanner->raw[scanner->matched - 2]);
    if (goes_on) {
        scanner->matched++;
        return RAW_END;
    }
    return raw(scanner, c);
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
    case MARKUP: return c == '-' ? MARKUP_DASH : c == '>' ? TEXT : DECLARATION;
    case MARKUP_DASH: return markup_dash(scanner, c);
    case COMMENT_START: return comment_start(scanner, c);
    case COMMENT: return comment(scanner, c);
    case DECLARATION: return c == '>' ? TEXT : DECLARATION;
    case RAW: return raw(scanner, c);
    default: return raw_end(scanner, c);
    }
}

/* The byte that has to come before a state can be left, -1 when every byte counts. */
static int waiting_for(unsigned state) {
    switch (state) {
    case TEXT:
    case RAW: return '<';
    case IN_DOUBLE: return '"';
    case IN_SINGLE: return '\'';
    case DECLARATION: return '>';
    default: return -1;
    }
}

/* May the tag being read still turn out to be the one? */
static bool is_candidate(const struct scanner *scanner) {
    const char *end = wanted_end(scanner);
    switch (scanner->state) {
    case TAG_OPEN:
    case END_TAG_OPEN: return end != NULL;
    case TAG_NAME: return scanner->place == SCANNER_HEAD_END && name_begins(scanner, "body");
    case END_TAG_NAME: return end != NULL && name_begins(scanner, end);
    default: return false;
    }
}

size_t scanner_scan(struct scanner *scanner, struct slice piece) {
    size_t at = 0;
    while (at < piece.length && !scanner->found) {
        int wanted = waiting_for(scanner->state);
        if (wanted >= 0) {
            const char *next = memchr(piece.base + at, wanted, piece.length - at);
            if (next == NULL)
                return piece.length;
            at = (size_t)(next - piece.base);
        }
        scanner->state = step(scanner, (unsigned char)piece.base[at++]);
        scanner->pending++;
        if (scanner->state == TAG_OPEN)
            scanner->pending = 1;
        else if (!scanner->found && !is_candidate(scanner))
            scanner->pending = 0;
        if (scanner->place == SCANNER_BODY_START)
            scanner->pending = 0; /* it is behind what is read */
    }
    return at;
}
