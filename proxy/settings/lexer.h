/*
 * The words of a configuration file's text, once document_scan has found nothing wrong with it.
 *
 *     struct lexer lexer = {.at = text, .end = text + length, .line = 1};
 *     for (lexer_next(&lexer); lexer.token != LEXER_END; lexer_next(&lexer))
 *         printf("line %d: %s\n", lexer.line, lexer.word);
 *     lexer_release(&lexer);
 *
 * A word in "double quotes" knows the escapes \\ \" \' \$ and the variables of the environment
 * ${NAME} and ${NAME:-OTHERWISE}; one in 'single quotes' knows \\ and \'. Comments begin with # or
 * // and end with the line, or stand between the marks of C.
 *
 * document_scan refuses what could be read in two ways: a lone backslash in double quotes, a '*'
 * outside quotes, a missing '}' at the end.
 *
 * Threads: a lexer belongs to its caller.
 */
#ifndef RETORT_SETTINGS_LEXER_H
#define RETORT_SETTINGS_LEXER_H

#include "settings/faults.h"

#include <stddef.h>

enum lexer_token {
    LEXER_END,
    LEXER_WORD,
    LEXER_OPEN,
    LEXER_CLOSE,
    LEXER_EQUALS,
    LEXER_PLUS_EQUALS,
    LEXER_COMMA,
};

struct lexer {
    const char *at, *end;
    int line; /* of the last token */
    enum lexer_token token;
    char *word; /* its text; owned */
    size_t length, capacity;
};

void lexer_next(struct lexer *lexer);
void lexer_release(struct lexer *lexer);

/* Checks the raw text, and adds a fault for each line that is wrong. `file`: the bits of a place
 * (settings/document.h) that stand for the file. Returns whether the text is good. */
bool document_scan(const char *text, size_t length, const char *path, int file,
                   struct faults *faults);

#endif
