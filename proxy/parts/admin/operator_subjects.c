#include "admin/operator_subjects.h"

#include "base/assert.h"
#include "base/failure.h"
#include "secrets/secret_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
