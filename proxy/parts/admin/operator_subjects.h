/*
 * The certificates of operators: who may call the admin plane by which client certificate. A file
 * has a line for each:
 *
 *     # NAME       ROLE     SUBJECT
 *     prometheus   read     CN=prometheus,O=Example
 *     anna         admin    CN=Anna Meier,O=Example
 *
 *     struct operator_subjects *subjects = operator_subjects_read(path, error, sizeof error);
 *     const struct operator_subject *subject =
 *         operator_subjects_find(subjects, "CN=prometheus,O=Example");
 *     if (subject != NULL && subject->role >= OPERATOR_READ) ...
 *     operator_subjects_free(&subjects);
 *
 * Subjects are compared byte by byte with what tls/certificate_text.h makes of a certificate (RFC
 * 4514). A file that other users of the machine can write is refused. A file may be empty: then no
 * certificate says who calls.
 *
 * Threads: a value that does not change.
 */
#ifndef RETORT_ADMIN_OPERATOR_SUBJECTS_H
#define RETORT_ADMIN_OPERATOR_SUBJECTS_H

#include "admin/operator_line.h"

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
