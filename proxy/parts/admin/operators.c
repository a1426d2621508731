#include "admin/operators.h"

#include "base/assert.h"
#include "base/failure.h"
#include "secrets/secret_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const role_names[] = {"nobody", "read", "operate", "admin"};

const char *operator_role_name(enum operator_role role) {
    return role_names[role];
}

static enum operator_role operator_role_of(struct slice name) {
    for (int role = OPERATOR_READ; role <= OPERATOR_ADMIN; role++)
        if (slice_equal(name, slice_from(role_names[role])))
            return (enum operator_role)role;
    return OPERATOR_NOBODY;
}

struct slice operator_line_take_word(struct slice *text) {
    struct slice rest = slice_trim(*text);
    size_t length = 0;
    while (length < rest.length && rest.base[length] != ' ' && rest.base[length] != '\t')
        length++;
    *text = slice_make(rest.base + length, rest.length - length);
    return slice_make(rest.base, length);
}

bool operator_line_consists_of(struct slice text, const char *signs) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    for (size_t i = 0; i < text.length; i++)
        if (text.base[i] == '\0' ||
            (strchr(letters, text.base[i]) == NULL && strchr(signs, text.base[i]) == NULL))
            return false;
    return true;
}

/* NULL: the line is good, or says nothing. */
static const char *see_line(struct slice text, operator_line_see *see, void *arg) {
    struct operator_line line = {.role = OPERATOR_NOBODY};
    struct slice name = operator_line_take_word(&text);
    if (name.length == 0 || name.base[0] == '#')
        return NULL;
    if (name.length <= OPERATOR_NAME && operator_line_consists_of(name, "._-"))
        memcpy(line.name, name.base, name.length);
    line.role = operator_role_of(operator_line_take_word(&text));
    line.rest = slice_trim(text);
    return see(arg, &line);
}

bool operator_lines_each(struct slice text, const char *path, operator_line_see *see, void *arg,
                         char *error, size_t error_size) {
    struct slice line;
    for (unsigned number = 1; slice_next_line(&text, &line); number++) {
        if (line.length > 0 && line.base[line.length - 1] == '\r')
            line.length--;
        const char *fault = see_line(line, see, arg);
        if (fault == NULL)
            continue;
        return failure(error, error_size, "%s:%u: %s", path, number, fault);
    }
    return true;
}

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

struct operator_subjects {
    unsigned magic;
#define OPERATOR_SUBJECTS_MAGIC 0x4f505355u
    struct operator_subject *list;
    size_t count;
};

static const char *add_subject_line(void *arg, const struct operator_line *line) {
    struct operator_subjects *subjects = arg;
    struct operator_subject new = {.role = line->role};
    if (line->name[0] == '\0')
        return "the name in front of a subject has up to 64 letters, digits and . _ -";
    if (line->role == OPERATOR_NOBODY || memchr(line->rest.base, '=', line->rest.length) == NULL)
        return "write NAME ROLE SUBJECT, where the role is read, operate or admin, and the subject "
               "is as openssl x509 -noout -subject -nameopt RFC2253 prints it";
    for (size_t i = 0; i < subjects->count; i++) {
        if (strcmp(subjects->list[i].name, line->name) == 0)
            return "an earlier line has the same name";
        if (slice_equal(line->rest, slice_from(subjects->list[i].subject)))
            return "an earlier line has the same subject: each certificate has one role";
    }
    snprintf(new.name, sizeof new.name, "%s", line->name);
    new.subject = slice_dup(line->rest);
    subjects->list = xrealloc(subjects->list, (subjects->count + 1) * sizeof *subjects->list);
    subjects->list[subjects->count++] = new;
    return NULL;
}

static bool only_owner_writes(const struct secret_file *file, const char *path, char *error,
                              size_t error_size) {
    if ((file->mode & (S_IWGRP | S_IWOTH)) == 0)
        return true;
    return failure(
        error, error_size,
        "%s: other users of this machine can write it (mode %03o), and give themselves a "
        "role: run chmod go-w %s",
        path, (unsigned)file->mode & 0777, path);
}

struct operator_subjects *operator_subjects_read(const char *path, char *error, size_t error_size) {
    struct secret_file file;
    struct operator_subjects *subjects;
    if (!secret_file_read(&file, path, error, error_size))
        return NULL;
    ALLOC_OBJ(subjects, OPERATOR_SUBJECTS_MAGIC);
    if (!only_owner_writes(&file, path, error, error_size) ||
        !operator_lines_each(file.text, path, add_subject_line, subjects, error, error_size))
        operator_subjects_free(&subjects);
    secret_file_release(&file);
    return subjects;
}

const struct operator_subject *operator_subjects_find(const struct operator_subjects *subjects,
                                                      const char *subject) {
    for (size_t i = 0; subjects != NULL && i < subjects->count; i++)
        if (strcmp(subjects->list[i].subject, subject) == 0)
            return &subjects->list[i];
    return NULL;
}

void operator_subjects_free(struct operator_subjects **subjectsp) {
    struct operator_subjects *subjects = *subjectsp;
    *subjectsp = NULL;
    if (subjects == NULL)
        return;
    CHECK_OBJ(subjects, OPERATOR_SUBJECTS_MAGIC);
    for (size_t i = 0; i < subjects->count; i++)
        free(subjects->list[i].subject);
    free(subjects->list);
    FREE_OBJ(subjects);
}
