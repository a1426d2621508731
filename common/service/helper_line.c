#include "service/helper_line.h"

static const char hex_digits[] = "0123456789ABCDEF";

static bool helper_line_is_control(char c) {
    return (unsigned char)c < 0x20 || c == 0x7f;
}

/* ---- questions ---------------------------------------------------------------------------- */

/* Takes the next field. False: there is none. */
static bool helper_line_take_field(struct slice *rest, struct slice *field) {
    if (rest->base == NULL)
        return false;
    const char *end = memchr(rest->base, 0, rest->length);
    size_t length = end == NULL ? rest->length : (size_t)(end - rest->base);
    *field = slice_make(rest->base, length);
    *rest = end == NULL ? slice_make(NULL, 0) : slice_make(end + 1, rest->length - length - 1);
    return true;
}

static bool helper_line_field_valid(struct slice field) {
    for (size_t i = 0; i < field.length; i++)
        if (helper_line_is_control(field.base[i]))
            return false;
    return field.length > 0 && field.length <= HELPER_LINE_FIELD;
}

bool helper_line_fields_valid(struct slice fields, unsigned least, unsigned most) {
    struct slice field;
    unsigned count = 0;
    while (helper_line_take_field(&fields, &field))
        if (!helper_line_field_valid(field) || ++count > most)
            return false;
    return count >= least;
}

/* RFC 3986 §2.3; all else is escaped, so that no helper takes it for something. */
static bool helper_line_is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static char *put_escaped(char *at, struct slice field) {
    for (size_t i = 0; i < field.length; i++) {
        unsigned char c = (unsigned char)field.base[i];
        if (helper_line_is_plain((char)c)) {
            *at++ = (char)c;
            continue;
        }
        *at++ = '%';
        *at++ = hex_digits[c >> 4];
        *at++ = hex_digits[c & 15];
    }
    return at;
}

size_t helper_line_write(char *line, size_t size, struct slice fields, const uint64_t *channel) {
    struct slice field;
    char *at = line;
    if (!helper_line_fields_valid(fields, 1, HELPER_LINE_FIELDS))
        return 0;
    if (channel != NULL && size > SLICE_DIGITS) {
        at = slice_put_number(at, (int64_t)*channel);
        *at++ = ' ';
    }
    while (helper_line_take_field(&fields, &field)) {
        if (size - (size_t)(at - line) < 3 * field.length + 1)
            return 0;
        at = put_escaped(at, field);
        *at++ = ' ';
    }
    at[-1] = '\n'; /* in the place of the last blank */
    return (size_t)(at - line);
}

/* ---- answers ------------------------------------------------------------------------------ */

static struct slice helper_line_skip(struct slice text, size_t count) {
    return slice_make(text.base + count, text.length - count);
}

static struct slice skip_blanks(struct slice text) {
    while (text.length > 0 && (text.base[0] == ' ' || text.base[0] == '\t'))
        text = helper_line_skip(text, 1);
    return text;
}

/* The length up to a blank or to the end. */
static size_t word_length(struct slice text) {
    size_t length = 0;
    while (length < text.length && text.base[length] != ' ' && text.base[length] != '\t')
        length++;
    return length;
}

bool helper_line_take_channel(struct slice *line, uint64_t *channel) {
    size_t length = word_length(*line);
    if (!slice_to_uint64(slice_make(line->base, length), channel))
        return false;
    *line = skip_blanks(helper_line_skip(*line, length));
    return true;
}

bool helper_line_read(struct slice line, struct helper_line_answer *answer) {
    static const struct {
        struct slice word;
        enum helper_line_result result;
    } results[] = {{{"OK", 2}, HELPER_LINE_OK},
                   {{"ERR", 3}, HELPER_LINE_ERR},
                   {{"BH", 2}, HELPER_LINE_BROKEN}};
    struct slice word = slice_make(line.base, word_length(line));
    for (size_t i = 0; i < line.length; i++)
        if (helper_line_is_control(line.base[i]) && line.base[i] != '\t')
            return false;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (!slice_equal(word, results[i].word))
            continue;
        answer->result = results[i].result;
        answer->rest = helper_line_skip(line, word.length);
        return true;
    }
    return false;
}

static bool helper_line_is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* The length of the name in front of "="; 0: the word is no pair. */
static size_t helper_line_name_length(struct slice word) {
    size_t length = 0;
    while (length < word.length && helper_line_is_name(word.base[length]))
        length++;
    return length < word.length && word.base[length] == '=' ? length : 0;
}

static bool helper_line_put(struct helper_line_pair *pair, char c) {
    if (pair->length == sizeof pair->value || helper_line_is_control(c))
        return false;
    pair->value[pair->length++] = c;
    return true;
}

/* Takes a value in quotes, behind the first of them. */
static bool take_quoted(struct slice *rest, struct helper_line_pair *pair) {
    while (rest->length > 0) {
        char c = rest->base[0];
        *rest = helper_line_skip(*rest, 1);
        if (c == '"')
            return rest->length == 0 || word_length(*rest) == 0;
        if (c == '\\') {
            if (rest->length == 0)
                return false;
            c = rest->base[0];
            *rest = helper_line_skip(*rest, 1);
        }
        if (!helper_line_put(pair, c))
            return false;
    }
    return false; /* the quotes are left open */
}

static int helper_line_hex(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)ascii_lower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that "%xx" at the front means; -1: it is no escape. */
static int escaped_byte(struct slice text) {
    if (text.length < 3 || text.base[0] != '%')
        return -1;
    int high = helper_line_hex(text.base[1]), low = helper_line_hex(text.base[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Takes a value without quotes. A "%" that escapes nothing is itself, as Squid has it. */
static bool take_plain(struct slice *rest, struct helper_line_pair *pair) {
    size_t length = word_length(*rest);
    struct slice word = slice_make(rest->base, length);
    *rest = helper_line_skip(*rest, length);
    while (word.length > 0) {
        int byte = escaped_byte(word);
        if (!helper_line_put(pair, byte < 0 ? word.base[0] : (char)byte))
            return false;
        word = helper_line_skip(word, byte < 0 ? 1 : 3);
    }
    return true;
}

enum helper_line_next helper_line_next(struct helper_line_answer *answer,
                                       struct helper_line_pair *pair) {
    struct slice *rest = &answer->rest;
    for (;;) {
        *rest = skip_blanks(*rest);
        if (rest->length == 0)
            return HELPER_LINE_END;
        size_t length = helper_line_name_length(*rest);
        if (length > 0) {
            pair->name = slice_make(rest->base, length);
            pair->length = 0;
            *rest = helper_line_skip(*rest, length + 1);
            break;
        }
        *rest = helper_line_skip(*rest, word_length(*rest)); /* text that means nothing */
    }
    bool quoted = rest->length > 0 && rest->base[0] == '"';
    if (quoted)
        *rest = helper_line_skip(*rest, 1);
    return (quoted ? take_quoted(rest, pair) : take_plain(rest, pair)) ? HELPER_LINE_PAIR
                                                                       : HELPER_LINE_BAD;
}

bool helper_line_valid(struct slice line) {
    struct helper_line_answer answer;
    struct helper_line_pair pair;
    enum helper_line_next next = HELPER_LINE_BAD;
    if (!helper_line_read(line, &answer))
        return false;
    do
        next = helper_line_next(&answer, &pair);
    while (next == HELPER_LINE_PAIR);
    return next == HELPER_LINE_END;
}
