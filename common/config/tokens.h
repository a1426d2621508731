/*
 * The words and marks of a configuration's text, each with its line.
 *
 *     struct tokens tokens = {.path = path, .faults = &faults};
 *     if (tokens_read(&tokens, slice_make(text, length)))
 *         for (const struct token *at = tokens.list; at->kind != TOKEN_END; at++)
 *             printf("line %d: %s\n", at->line, tokens_word(&tokens, at));
 *     tokens_release(&tokens);
 *
 * A word in "double quotes" knows the escapes \\ \" \' \$ and the variables of the environment
 * ${NAME} and ${NAME:-OTHERWISE}; one in 'single quotes' knows \\ and \'. Comments begin with # or
 * // and end with the line, or stand between the marks of C.
 *
 * What could be read in two ways is a fault: a lone backslash in double quotes (unless they are
 * `lenient`: then the escapes of C are known as well), a '*' outside quotes, a missing '}' at the
 * end. There is a fault for each line that is wrong.
 *
 * Threads: the tokens belong to their caller.
 */
#ifndef RETORT_CONFIG_TOKENS_H
#define RETORT_CONFIG_TOKENS_H

#include "base/slice.h"
#include "config/document.h"

enum token_kind {
    TOKEN_END, /* the last one */
    TOKEN_WORD,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_EQUALS,
    TOKEN_PLUS_EQUALS,
    TOKEN_COMMA,
};

struct token {
    enum token_kind kind;
    int line;
    size_t text, length; /* in tokens->text; a NUL stands behind it */
};

struct tokens {
    const char *path; /* of the file, for faults */
    int file;         /* the bits of a place (config/document.h) that stand for it */
    bool lenient;
    struct faults *faults;
    struct token *list;
    size_t count, capacity;
    char *text;
    size_t text_length, text_capacity;
};

/* False: there were faults, and only they count. The caller releases the tokens anyway. */
bool tokens_read(struct tokens *tokens, struct slice text);
void tokens_release(struct tokens *tokens);

static inline const char *tokens_word(const struct tokens *tokens, const struct token *token) {
    return tokens->text + token->text;
}

#endif
