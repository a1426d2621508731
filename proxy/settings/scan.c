/* The check of a configuration file's raw text, before the lexer reads it. */
#include "settings/lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scan {
    const char *at, *end;
    int line;
    int open_lines[8]; /* lines of the open braces */
    size_t depth;
    bool broken; /* there was a fault */
    const char *path;
    int file;
    struct faults *faults;
};

static bool scan_fail(struct scan *scan, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool scan_fail(struct scan *scan, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    faults_add_list(scan->faults, scan->file + line, scan->path, line, format, arguments);
    va_end(arguments);
    scan->broken = true;
    return false;
}

/* The length of the UTF-8 character at `at`; 0 when there is none. */
static size_t character_length(const char *at, const char *end) {
    unsigned char first = (unsigned char)*at;
    size_t length = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
    if (length > (size_t)(end - at))
        return 0;
    for (size_t i = 1; i < length; i++)
        if (((unsigned char)at[i] & 0xc0) != 0x80)
            return 0;
    if (length >= 3) { /* not an overlong form, not a surrogate, and not beyond U+10FFFF */
        unsigned char second = (unsigned char)at[1];
        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
            return 0;
    }
    return length;
}

/* One character that does not belong to the grammar. */
static bool scan_character(struct scan *scan) {
    unsigned char c = (unsigned char)*scan->at;
    size_t length = character_length(scan->at, scan->end);
    if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
        return scan_fail(scan, scan->line, "there is a control character (0x%02x) here", c);
    if (length == 0)
        return scan_fail(scan, scan->line, "there is a byte (0x%02x) here that is not UTF-8", c);
    scan->at += length;
    return true;
}

/* In double quotes a backslash makes the character behind it stand for itself, so "\.jpg" would
 * silently mean ".jpg", and "\n" would mean "n". */
static bool scan_escape(struct scan *scan) {
    char next = scan->at + 1 < scan->end ? scan->at[1] : '\n';
    if (strchr("\\\"'$", next) == NULL || next == '\0')
        return scan_fail(scan, scan->line,
                         "a lone backslash in \"double quotes\": write it twice, or put the value "
                         "in 'single quotes', where it stands for itself");
    scan->at += 2;
    return true;
}

/* Checks "${NAME}" or "${NAME:-otherwise}". A variable that is not set would mean nothing. */
static bool scan_variable(struct scan *scan) {
    char name[100];
    const char *begin = scan->at + 2, *end = begin;
    while (end < scan->end && strchr("}\"'\\\n", *end) == NULL)
        end++;
    size_t length = (size_t)(end - begin), name_length = 0;
    if (end == scan->end || *end != '}')
        return scan_fail(scan, scan->line, "a ${ has no }; write \\$ for a dollar sign");
    while (name_length < length && begin[name_length] != ':')
        name_length++;
    snprintf(name, sizeof name, "%.*s", (int)name_length, begin);
    if (strncmp(begin + name_length, ":-", 2) != 0 && getenv(name) == NULL)
        return scan_fail(scan, scan->line,
                         "the environment variable %s is not set; ${%s:-VALUE} gives a value for "
                         "that case",
                         name, name);
    scan->at = end + 1;
    return true;
}

static bool scan_string(struct scan *scan) {
    char quote = *scan->at++;
    while (scan->at < scan->end && *scan->at != quote) {
        if (*scan->at == '\n')
            break;
        if (*scan->at == '\\' && quote == '"') {
            if (!scan_escape(scan))
                return false;
        } else if (quote == '"' && scan->at + 1 < scan->end && scan->at[0] == '$' &&
                   scan->at[1] == '{') {
            if (!scan_variable(scan))
                return false;
        } else if (*scan->at == '\\' && scan->at + 1 < scan->end &&
                   (scan->at[1] == quote || scan->at[1] == '\\')) {
            scan->at += 2;
        } else if (!scan_character(scan)) {
            return false;
        }
    }
    if (scan->at == scan->end || *scan->at == '\n')
        return scan_fail(scan, scan->line, "a quote (%c) is opened here and not closed on the line",
                         quote);
    scan->at++;
    return true;
}

static void scan_line_comment(struct scan *scan) {
    const char *newline = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
    scan->at = newline != NULL ? newline : scan->end;
}

static bool scan_block_comment(struct scan *scan) {
    int opened = scan->line;
    for (scan->at += 2; scan->at + 1 < scan->end; scan->at++) {
        if (scan->at[0] == '*' && scan->at[1] == '/') {
            scan->at += 2;
            return true;
        }
        scan->line += *scan->at == '\n';
    }
    return scan_fail(scan, opened, "a comment is opened here with /* and never closed");
}

static bool scan_brace(struct scan *scan) {
    if (*scan->at++ == '{') {
        if (scan->depth == sizeof scan->open_lines / sizeof *scan->open_lines)
            return scan_fail(scan, scan->line,
                             "there is one '{' too many: sections do not nest this deep");
        scan->open_lines[scan->depth++] = scan->line;
        return true;
    }
    if (scan->depth == 0 && scan->broken)
        return true; /* its '{' may stand in a line that was not judged */
    if (scan->depth == 0)
        return scan_fail(scan, scan->line, "there is a '}' without a '{'");
    scan->depth--;
    return true;
}

/* A run of bytes that is one word. */
static bool scan_word(struct scan *scan) {
    while (scan->at < scan->end && strchr(" #\"'\t\n\r={}()+,", *scan->at) == NULL) {
        if (strchr("*|\\$", *scan->at) != NULL)
            return scan_fail(scan, scan->line, "a value with '%c' must be in quotes", *scan->at);
        if (!scan_character(scan))
            return false;
    }
    return true;
}

static bool scan_token(struct scan *scan) {
    bool more = scan->at + 1 < scan->end;
    switch (*scan->at) {
    case '\0': return scan_character(scan);
    case '\n': scan->line++; /* fall through */
    case ' ':
    case '\t':
    case '\r':
    case '=':
    case ',': scan->at++; return true;
    case '"':
    case '\'': return scan_string(scan);
    case '{':
    case '}': return scan_brace(scan);
    case '#': scan_line_comment(scan); return true;
    case '+':
        if (!more || scan->at[1] != '=')
            return scan_fail(scan, scan->line, "a value with '+' must be in quotes");
        scan->at += 2;
        return true;
    case '(':
    case ')': return scan_fail(scan, scan->line, "a value with '%c' must be in quotes", *scan->at);
    case '/':
        if (more && scan->at[1] == '/') {
            scan_line_comment(scan);
            return true;
        }
        if (more && scan->at[1] == '*')
            return scan_block_comment(scan);
        if (more && strchr(" \t\r\n{}", scan->at[1]) != NULL)
            return scan_fail(scan, scan->line, "a lone '/' must be in quotes");
    }
    return scan_word(scan);
}

bool document_scan(const char *text, size_t length, const char *path, int file,
                   struct faults *faults) {
    struct scan scan = {
        .at = text, .end = text + length, .line = 1, .path = path, .file = file, .faults = faults};
    while (scan.at < scan.end)
        if (!scan_token(&scan))
            scan_line_comment(&scan); /* the rest of the line is not judged */
    if (!scan.broken && scan.depth > 0)
        scan_fail(&scan, scan.open_lines[scan.depth - 1],
                  "the '{' of this line is never closed with a '}'");
    return !scan.broken;
}
