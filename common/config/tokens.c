#include "config/tokens.h"

#include "base/assert.h"
#include "base/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the text has been read to. */
struct lexer {
    struct tokens *tokens;
    const char *at, *end;
    int line;
    int open_lines[8]; /* lines of the open braces */
    size_t depth;
    bool broken; /* there was a fault */
};

static bool lex_fail(struct lexer *lexer, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool lex_fail(struct lexer *lexer, int line, const char *format, ...) {
    const struct tokens *tokens = lexer->tokens;
    va_list arguments;
    va_start(arguments, format);
    faults_add_list(tokens->faults, tokens->file + line, tokens->path, line, format, arguments);
    va_end(arguments);
    lexer->broken = true;
    return false;
}

/* Tokens in the making: the last one grows until the next one begins. */

static void begin_token(struct lexer *lexer, enum token_kind kind) {
    struct tokens *tokens = lexer->tokens;
    if (tokens->count == tokens->capacity) {
        tokens->capacity = 2 * tokens->capacity + 64;
        tokens->list = xrealloc(tokens->list, tokens->capacity * sizeof *tokens->list);
    }
    tokens->list[tokens->count++] =
        (struct token){.kind = kind, .line = lexer->line, .text = tokens->text_length};
}

static void put_bytes(struct lexer *lexer, const char *bytes, size_t length) {
    struct tokens *tokens = lexer->tokens;
    if (tokens->text_capacity - tokens->text_length < length) {
        tokens->text_capacity = 2 * (tokens->text_length + length) + 256;
        tokens->text = xrealloc(tokens->text, tokens->text_capacity);
    }
    memcpy(tokens->text + tokens->text_length, bytes, length);
    tokens->text_length += length;
}

static bool end_token(struct lexer *lexer) {
    struct token *token = &lexer->tokens->list[lexer->tokens->count - 1];
    token->length = lexer->tokens->text_length - token->text;
    put_bytes(lexer, "", 1);
    return true;
}

static bool lex_mark(struct lexer *lexer, enum token_kind kind, size_t length) {
    begin_token(lexer, kind);
    put_bytes(lexer, lexer->at, length);
    lexer->at += length;
    return end_token(lexer);
}

/* One character of a word. */
static bool lex_character(struct lexer *lexer) {
    uint32_t character;
    unsigned char c = (unsigned char)*lexer->at;
    if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
        return lex_fail(lexer, lexer->line, "there is a control character (0x%02x) here", c);
    size_t length =
        text_decode(slice_make(lexer->at, (size_t)(lexer->end - lexer->at)), &character);
    if (length == 0)
        return lex_fail(lexer, lexer->line, "there is a byte (0x%02x) here that is not UTF-8", c);
    put_bytes(lexer, lexer->at, length);
    lexer->at += length;
    return true;
}

/* An escape of C: "\n", "\033", "\x1b". Behind another backslash a character stands for itself. */
static void lex_escape_of_c(struct lexer *lexer) {
    static const char names[] = "abefnrtv", meant[] = "\a\b\033\f\n\r\t\v";
    const char *at = lexer->at + 1;
    const char *name = *at != '\0' ? strchr(names, *at) : NULL;
    bool hex = *at == 'x';
    char digits[4] = "", *end = digits;
    for (size_t i = 0; i < 3 - (size_t)hex && lexer->end - at > (ptrdiff_t)(i + hex); i++)
        digits[i] = at[i + hex];
    char byte = name != NULL ? meant[name - names] : '\0';
    if (name == NULL && (hex ? isxdigit((unsigned char)digits[0]) : isdigit((unsigned char)*at)))
        byte = (char)strtoul(digits, &end, hex ? 16 : 8);
    if (name != NULL || end > digits)
        put_bytes(lexer, &byte, 1);
    lexer->at = name != NULL ? at + 1 : end > digits ? at + hex + (end - digits) : at;
}

/* In double quotes a backslash makes the character behind it stand for itself, so "\.jpg" would
 * silently mean ".jpg", and "\n" would mean "n". */
static bool lex_escape(struct lexer *lexer) {
    char next = lexer->at + 1 < lexer->end ? lexer->at[1] : '\n';
    bool plain = next != '\0' && strchr("\\\"'$", next) != NULL;
    if (!plain && lexer->tokens->lenient && next != '\n') {
        lex_escape_of_c(lexer);
        return true;
    }
    if (!plain)
        return lex_fail(lexer, lexer->line,
                        "a lone backslash in \"double quotes\": write it twice, or put the value "
                        "in 'single quotes', where it stands for itself");
    put_bytes(lexer, &next, 1);
    lexer->at += 2;
    return true;
}

/* Replaces "${NAME}" and "${NAME:-OTHERWISE}". A variable that is not set would mean nothing. */
static bool lex_variable(struct lexer *lexer) {
    char name[100];
    const char *begin = lexer->at + 2, *end = begin;
    while (end < lexer->end && strchr("}\"'\\\n", *end) == NULL)
        end++;
    size_t length = (size_t)(end - begin), name_length = 0;
    if (end == lexer->end || *end != '}')
        return lex_fail(lexer, lexer->line, "a ${ has no }; write \\$ for a dollar sign");
    while (name_length < length && begin[name_length] != ':')
        name_length++;
    snprintf(name, sizeof name, "%.*s", (int)name_length, begin);
    const char *value = getenv(name), *otherwise = begin + name_length + strlen(":-");
    bool has_otherwise = strncmp(begin + name_length, ":-", 2) == 0;
    if (value == NULL && !has_otherwise)
        return lex_fail(lexer, lexer->line,
                        "the environment variable %s is not set; ${%s:-VALUE} gives a value for "
                        "that case",
                        name, name);
    if (value != NULL)
        put_bytes(lexer, value, strlen(value));
    else
        put_bytes(lexer, otherwise, (size_t)(end - otherwise));
    lexer->at = end + 1;
    return true;
}

/* A character, an escape or a variable in quotes. */
static bool lex_quoted(struct lexer *lexer, char quote) {
    char next = lexer->end - lexer->at >= 2 ? lexer->at[1] : '\n';
    if (quote == '"' && *lexer->at == '\\')
        return lex_escape(lexer);
    if (quote == '"' && *lexer->at == '$' && next == '{')
        return lex_variable(lexer);
    lexer->at += *lexer->at == '\\' && (next == quote || next == '\\');
    return lex_character(lexer);
}

static bool lex_string(struct lexer *lexer) {
    char quote = *lexer->at++;
    begin_token(lexer, TOKEN_WORD);
    while (lexer->at < lexer->end && *lexer->at != quote && *lexer->at != '\n')
        if (!lex_quoted(lexer, quote))
            return false;
    if (lexer->at == lexer->end || *lexer->at == '\n')
        return lex_fail(lexer, lexer->line,
                        "a quote (%c) is opened here and not closed on the line", quote);
    lexer->at++;
    return end_token(lexer);
}

static void skip_line(struct lexer *lexer) {
    const char *newline = memchr(lexer->at, '\n', (size_t)(lexer->end - lexer->at));
    lexer->at = newline != NULL ? newline : lexer->end;
}

static bool skip_block_comment(struct lexer *lexer) {
    int opened = lexer->line;
    for (lexer->at += 2; lexer->at + 1 < lexer->end; lexer->at++) {
        if (lexer->at[0] == '*' && lexer->at[1] == '/') {
            lexer->at += 2;
            return true;
        }
        lexer->line += *lexer->at == '\n';
    }
    return lex_fail(lexer, opened, "a comment is opened here with /* and never closed");
}

static bool lex_open(struct lexer *lexer) {
    if (lexer->depth == sizeof lexer->open_lines / sizeof *lexer->open_lines)
        return lex_fail(lexer, lexer->line,
                        "there is one '{' too many: sections do not nest this deep");
    lexer->open_lines[lexer->depth++] = lexer->line;
    return lex_mark(lexer, TOKEN_OPEN, 1);
}

static bool lex_close(struct lexer *lexer) {
    if (lexer->depth == 0 && !lexer->broken)
        return lex_fail(lexer, lexer->line, "there is a '}' without a '{'");
    lexer->depth -= lexer->depth > 0; /* its '{' may stand in a line that was not judged */
    return lex_mark(lexer, TOKEN_CLOSE, 1);
}

/* A run of bytes that is one word. */
static bool lex_word(struct lexer *lexer) {
    begin_token(lexer, TOKEN_WORD);
    while (lexer->at < lexer->end && strchr(" #\"'\t\n\r={}()+,", *lexer->at) == NULL) {
        if (strchr("*|\\$", *lexer->at) != NULL)
            return lex_fail(lexer, lexer->line, "a value with '%c' must be in quotes", *lexer->at);
        if (!lex_character(lexer))
            return false;
    }
    return end_token(lexer);
}

/* A comment, or a word that begins with a slash. */
static bool lex_slash(struct lexer *lexer, char next) {
    if (next == '*')
        return skip_block_comment(lexer);
    if (lexer->at + 1 < lexer->end && strchr(" \t\r\n{}", next) != NULL)
        return lex_fail(lexer, lexer->line, "a lone '/' must be in quotes");
    if (next != '/')
        return lex_word(lexer);
    skip_line(lexer);
    return true;
}

static bool lex_token(struct lexer *lexer) {
    char next = lexer->at + 1 < lexer->end ? lexer->at[1] : '\0';
    switch (*lexer->at) {
    case '\0': return lex_character(lexer);
    case '\n': lexer->line++; /* fall through */
    case ' ':
    case '\t':
    case '\r': lexer->at++; return true;
    case '=': return lex_mark(lexer, TOKEN_EQUALS, 1);
    case ',': return lex_mark(lexer, TOKEN_COMMA, 1);
    case '"':
    case '\'': return lex_string(lexer);
    case '{': return lex_open(lexer);
    case '}': return lex_close(lexer);
    case '#': skip_line(lexer); return true;
    case '+':
        return next == '=' ? lex_mark(lexer, TOKEN_PLUS_EQUALS, 2)
                           : lex_fail(lexer, lexer->line, "a value with '+' must be in quotes");
    case '(':
    case ')':
        return lex_fail(lexer, lexer->line, "a value with '%c' must be in quotes", *lexer->at);
    case '/': return lex_slash(lexer, next);
    }
    return lex_word(lexer);
}

bool tokens_read(struct tokens *tokens, struct slice text) {
    struct lexer lexer = {
        .tokens = tokens, .at = text.base, .end = text.base + text.length, .line = 1};
    while (lexer.at < lexer.end)
        if (!lex_token(&lexer))
            skip_line(&lexer); /* the rest of the line is not judged */
    if (!lexer.broken && lexer.depth > 0)
        lex_fail(&lexer, lexer.open_lines[lexer.depth - 1],
                 "the '{' of this line is never closed with a '}'");
    begin_token(&lexer, TOKEN_END);
    end_token(&lexer);
    return !lexer.broken;
}

void tokens_release(struct tokens *tokens) {
    free(tokens->list);
    free(tokens->text);
    tokens->list = NULL;
    tokens->text = NULL;
}
