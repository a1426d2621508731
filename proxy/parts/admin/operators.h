/*
 * Operators: who may call the admin plane, and what each may do there. Files have a line for each, NAME
 * ROLE and how the caller is known: by a token, or by a certificate. Empty lines, and lines that begin with
 * #, say nothing.
 *
 *     # NAME       ROLE     TOKEN
 *     prometheus   read     5f0c7a41e2...
 *     anna         admin    0e44f1...
 *
 *     struct operator_tokens *tokens = operator_tokens_read(path, error, sizeof error);
 *     const struct operator_token *token = operator_tokens_find(tokens, SLICE("5f0c7a41e2..."));
 *     if (token != NULL && token->role >= OPERATOR_READ) ...
 *     operator_tokens_free(&tokens);
 *
 * A file of tokens that other users of the machine can read or write is refused. Memory keeps digests only
 * (secrets/secret_digest.h), and a search takes the same time for all tokens.
 *
 * Threads: values that do not change.
 */
#ifndef RETORT_ADMIN_OPERATORS_H
#define RETORT_ADMIN_OPERATORS_H

#include "base/slice.h"
#include "secrets/secret_digest.h"

enum { OPERATOR_NAME = 64 };

/* Each may do what those before it may. */
enum operator_role { OPERATOR_NOBODY, OPERATOR_READ, OPERATOR_OPERATE, OPERATOR_ADMIN };

/* "read", "operate", "admin" */
const char *operator_role_name(enum operator_role role);

struct operator_line {
    char name[OPERATOR_NAME + 1]; /* empty: it is too long, or has other signs than . _ - */
    enum operator_role role;      /* OPERATOR_NOBODY: the word is no role */
    struct slice rest;            /* without blanks around it; may be empty */
};

typedef const char *operator_line_see(void *arg, const struct operator_line *line);

/* False: `error` is a sentence that begins with the path, and a line of it. */
bool operator_lines_each(struct slice text, const char *path, operator_line_see *see, void *arg,
                         char *error, size_t error_size);
/* Takes the next word off the front of the text; empty: there is none. */
struct slice operator_line_take_word(struct slice *text);
/* Does the text have nothing but letters, digits and these signs? */
bool operator_line_consists_of(struct slice text, const char *signs);

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

/*
 * Certificates of operators, with SUBJECT as tls/certificate_text.h writes it (RFC 4514), compared byte by
 * byte. Other users of the machine must not be able to write the file. It may be empty: then no
 * certificate says who calls.
 *
 *     const struct operator_subject *subject =
 *         operator_subjects_find(subjects, "CN=prometheus,O=Example");
 */

struct operator_subject {
    char name[OPERATOR_NAME + 1];
    enum operator_role role;
    char *subject;
};

struct operator_subjects;

/* Returns NULL and a sentence that begins with the path, and a line of it. */
struct operator_subjects *operator_subjects_read(const char *path, char *error, size_t error_size);
/* Returns NULL when no line has this subject. `subjects` may be NULL: there are none. */
const struct operator_subject *operator_subjects_find(const struct operator_subjects *subjects,
                                                      const char *subject);
void operator_subjects_free(struct operator_subjects **subjectsp);

#endif
