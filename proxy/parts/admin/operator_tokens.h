/*
 * The tokens of operators: who may call the admin plane, and what each may do there. A file has a
 * line for each:
 *
 *     # NAME       ROLE     TOKEN
 *     prometheus   read     5f0c7a41e2...
 *     deploy       operate  c3d9b8...
 *     anna         admin    0e44f1...
 *
 *     struct operator_tokens *tokens = operator_tokens_read(path, error, sizeof error);
 *     const struct operator_token *token = operator_tokens_find(tokens, SLICE("5f0c7a41e2..."));
 *     if (token != NULL && token->role >= OPERATOR_READ) ...
 *     operator_tokens_free(&tokens);
 *
 * A file that other users of the machine can read or write is refused. Memory keeps digests only
 * (secrets/secret_digest.h), and a search takes the same time for all tokens.
 *
 * Threads: a value that does not change.
 */
#ifndef RETORT_ADMIN_OPERATOR_TOKENS_H
#define RETORT_ADMIN_OPERATOR_TOKENS_H

#include "admin/operator_line.h"
#include "base/slice.h"
#include "secrets/secret_digest.h"

enum { OPERATOR_TOKEN_LEAST = 32, OPERATOR_TOKEN_MOST = 256 };

struct operator_token {
    char name[OPERATOR_NAME + 1];
    enum operator_role role;
    unsigned char digest[SECRET_DIGEST];
};

struct operator_tokens;

/* Returns NULL and a sentence that begins with the path, and a line of it. */
struct operator_tokens *operator_tokens_read(const char *path, char *error, size_t error_size);
/* Returns NULL when nobody has this token. `tokens` may be NULL: there are none. */
const struct operator_token *operator_tokens_find(const struct operator_tokens *tokens,
                                                  struct slice token);
void operator_tokens_free(struct operator_tokens **tokensp);

#endif
