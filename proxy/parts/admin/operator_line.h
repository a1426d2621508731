/*
 * Files that say who may call the admin plane have a line NAME ROLE and then how the caller is
 * known: by a token (admin/operator_tokens.h), or by a certificate
 * (admin/operator_subjects.h). Empty lines, and lines that begin with #, say nothing.
 *
 *     static const char *add(void *arg, const struct operator_line *line) {
 *         ... line->name, line->role, line->rest; NULL, or what is wrong with the line ...
 *     }
 *     if (!operator_lines_each(text, path, add, arg, error, sizeof error)) ...
 *
 * Threads: pure.
 */
#ifndef RETORT_ADMIN_OPERATOR_LINE_H
#define RETORT_ADMIN_OPERATOR_LINE_H

#include "base/slice.h"

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

#endif
