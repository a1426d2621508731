#include "settings/lexer.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static void put_bytes(struct lexer *lexer, const char *bytes, size_t length) {
    if (lexer->capacity - lexer->length < length + 1) {
        lexer->capacity = 2 * (lexer->length + length) + 64;
        lexer->word = xrealloc(lexer->word, lexer->capacity);
    }
    memcpy(lexer->word + lexer->length, bytes, length);
    lexer->length += length;
    lexer->word[lexer->length] = '\0';
}

static void skip_line(struct lexer *lexer) {
    while (lexer->at < lexer->end && *lexer->at != '\n')
        lexer->at++;
}

static void skip_block_comment(struct lexer *lexer) {
    for (lexer->at += 2; lexer->end - lexer->at >= 2; lexer->at++) {
        if (lexer->at[0] == '*' && lexer->at[1] == '/')
            break;
        lexer->line += *lexer->at == '\n';
    }
    lexer->at = lexer->end - lexer->at >= 2 ? lexer->at + 2 : lexer->end;
}

static void lexer_skip_blanks(struct lexer *lexer) {
    while (lexer->at < lexer->end) {
        bool slash = *lexer->at == '/' && lexer->end - lexer->at >= 2;
        if (*lexer->at == '#' || (slash && lexer->at[1] == '/')) {
            skip_line(lexer);
        } else if (slash && lexer->at[1] == '*') {
            skip_block_comment(lexer);
        } else if (strchr(" \t\r\n", *lexer->at) != NULL && *lexer->at != '\0') {
            lexer->line += *lexer->at++ == '\n';
        } else {
            return;
        }
    }
}

/* Replaces "${NAME}" and "${NAME:-OTHERWISE}". */
static void put_variable(struct lexer *lexer) {
    char name[100];
    const char *begin = lexer->at + 2;
    const char *close = memchr(begin, '}', (size_t)(lexer->end - begin));
    ASSERT(close != NULL); /* document_scan has seen it */
    const char *colon = memchr(begin, ':', (size_t)(close - begin));
    size_t length = (size_t)((colon != NULL ? colon : close) - begin);
    const char *value = NULL;
    if (length < sizeof name) {
        memcpy(name, begin, length);
        name[length] = '\0';
        value = getenv(name);
    }
    if (value != NULL)
        put_bytes(lexer, value, strlen(value));
    else if (colon != NULL && close - colon >= 2)
        put_bytes(lexer, colon + 2, (size_t)(close - colon) - 2);
    lexer->at = close + 1;
}

static void put_quoted(struct lexer *lexer) {
    char quote = *lexer->at++;
    while (lexer->at < lexer->end && *lexer->at != quote) {
        bool pair = lexer->end - lexer->at >= 2;
        bool escape = pair && lexer->at[0] == '\\' &&
                      (quote == '"' || lexer->at[1] == quote || lexer->at[1] == '\\');
        if (pair && quote == '"' && lexer->at[0] == '$' && lexer->at[1] == '{') {
            put_variable(lexer);
            continue;
        }
        lexer->at += escape;
        put_bytes(lexer, lexer->at++, 1);
    }
    lexer->at += lexer->at < lexer->end;
}

static void put_word(struct lexer *lexer) {
    const char *begin = lexer->at;
    while (lexer->at < lexer->end && strchr(" #\"'\t\n\r={}()+,", *lexer->at) == NULL)
        lexer->at++;
    lexer->at += lexer->at == begin; /* document_scan lets no such byte pass */
    put_bytes(lexer, begin, (size_t)(lexer->at - begin));
}

static void take_mark(struct lexer *lexer, enum lexer_token token, size_t length) {
    lexer->token = token;
    put_bytes(lexer, lexer->at, length);
    lexer->at += length;
}

void lexer_next(struct lexer *lexer) {
    lexer_skip_blanks(lexer);
    lexer->length = 0;
    put_bytes(lexer, "", 0);
    lexer->token = LEXER_WORD;
    if (lexer->at == lexer->end) {
        lexer->token = LEXER_END;
        return;
    }
    switch (*lexer->at) {
    case '{': take_mark(lexer, LEXER_OPEN, 1); return;
    case '}': take_mark(lexer, LEXER_CLOSE, 1); return;
    case '=': take_mark(lexer, LEXER_EQUALS, 1); return;
    case ',': take_mark(lexer, LEXER_COMMA, 1); return;
    case '+': take_mark(lexer, LEXER_PLUS_EQUALS, lexer->end - lexer->at >= 2 ? 2 : 1); return;
    case '"':
    case '\'': put_quoted(lexer); return;
    default: put_word(lexer);
    }
}

void lexer_release(struct lexer *lexer) {
    free(lexer->word);
    lexer->word = NULL;
}
