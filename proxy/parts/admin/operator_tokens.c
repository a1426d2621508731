#include "admin/operator_tokens.h"

#include "admin/operator_line.h"
#include "base/assert.h"
#include "base/failure.h"
#include "secrets/secret_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct operator_tokens {
    unsigned magic;
#define OPERATOR_TOKENS_MAGIC 0x4f50544bu
    struct operator_token *list;
    size_t count;
};

/* What is wrong with a line of the file; NULL: nothing. Says nothing of the token itself. */
static const char *find_token_fault(const struct operator_tokens *tokens,
                                    const struct operator_token *new, struct slice token,
                                    struct slice rest) {
    if (token.length < OPERATOR_TOKEN_LEAST || token.length > OPERATOR_TOKEN_MOST)
        return "a token has 32 to 256 characters, so that nobody can guess it: openssl rand -hex "
               "32";
    if (!operator_line_consists_of(token, "-._~+/="))
        return "a token consists of letters, digits and - . _ ~ + / =";
    if (slice_trim(rest).length > 0)
        return "something follows the token: write NAME ROLE TOKEN and nothing else";
    for (size_t i = 0; i < tokens->count; i++) {
        if (strcmp(tokens->list[i].name, new->name) == 0)
            return "an earlier line has the same name";
        if (secret_digest_equal(tokens->list[i].digest, new->digest))
            return "an earlier line has the same token: each name needs its own";
    }
    return NULL;
}

static const char *add_token_line(void *arg, const struct operator_line *line) {
    struct operator_tokens *tokens = arg;
    struct operator_token new = {.role = line->role};
    struct slice rest = line->rest, token = operator_line_take_word(&rest);
    if (line->name[0] == '\0')
        return "the name of a token has up to 64 letters, digits and . _ -";
    if (line->role == OPERATOR_NOBODY)
        return "write NAME ROLE TOKEN, where the role is read, operate or admin";
    secret_digest(&token, 1, new.digest);
    snprintf(new.name, sizeof new.name, "%s", line->name);
    const char *fault = find_token_fault(tokens, &new, token, rest);
    if (fault != NULL)
        return fault;
    tokens->list = xrealloc(tokens->list, (tokens->count + 1) * sizeof *tokens->list);
    tokens->list[tokens->count++] = new;
    return NULL;
}

static bool add_token_lines(struct operator_tokens *tokens, struct slice text, const char *path,
                            char *error, size_t error_size) {
    if (!operator_lines_each(text, path, add_token_line, tokens, error, error_size))
        return false;
    if (tokens->count == 0)
        snprintf(error, error_size, "%s: has no token: write a line NAME ROLE TOKEN", path);
    return tokens->count > 0;
}

static bool operator_tokens_are_private(const struct secret_file *file, const char *path,
                                        char *error, size_t error_size) {
    if ((file->mode & (S_IRWXO | S_IWGRP)) == 0)
        return true;
    return failure(
        error, error_size,
        "%s: other users of this machine can read or write it (mode %03o): change its group "
        "to retort's (chgrp) and run chmod 640 %s",
        path, (unsigned)file->mode & 0777, path);
}

struct operator_tokens *operator_tokens_read(const char *path, char *error, size_t error_size) {
    struct secret_file file;
    struct operator_tokens *tokens;
    if (!secret_file_read(&file, path, error, error_size))
        return NULL;
    ALLOC_OBJ(tokens, OPERATOR_TOKENS_MAGIC);
    if (!operator_tokens_are_private(&file, path, error, error_size) ||
        !add_token_lines(tokens, file.text, path, error, error_size))
        operator_tokens_free(&tokens);
    secret_file_release(&file);
    return tokens;
}

const struct operator_token *operator_tokens_find(const struct operator_tokens *tokens,
                                                  struct slice token) {
    unsigned char digest[SECRET_DIGEST];
    const struct operator_token *found = NULL;
    secret_digest(&token, 1, digest);
    for (size_t i = 0; tokens != NULL && i < tokens->count; i++)
        if (secret_digest_equal(digest, tokens->list[i].digest))
            found = &tokens->list[i];
    return found;
}

void operator_tokens_free(struct operator_tokens **tokensp) {
    struct operator_tokens *tokens = *tokensp;
    *tokensp = NULL;
    if (tokens == NULL)
        return;
    CHECK_OBJ(tokens, OPERATOR_TOKENS_MAGIC);
    free(tokens->list);
    FREE_OBJ(tokens);
}
