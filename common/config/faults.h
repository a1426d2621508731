/*
 * Faults: what is wrong in a configuration, each with its file and line, so that an operator sees
 * all of it at once.
 *
 *     struct faults faults = {0};
 *     faults_add(&faults, section->line, "/etc/retort/retort.conf", 12, "there is no \"%s\"", name);
 *     if (faults.count > 0)
 *         faults_join(&faults, error, sizeof error);        one line each, in the order of the files
 *     faults_release(&faults);
 *
 * At most FAULTS_MAX faults are kept; `more` counts the others. Threads: one at a time.
 */
#ifndef RETORT_CONFIG_FAULTS_H
#define RETORT_CONFIG_FAULTS_H

#include <stdarg.h>
#include <stddef.h>

enum { FAULTS_MAX = 20 };

struct faults {
    unsigned count, more;
    struct fault {
        int place; /* see document.h; the order */
        char *text;
    } kept[FAULTS_MAX];
};

/* Line 0: the fault is one of the whole file. */
void faults_add(struct faults *faults, int place, const char *file, int line, const char *format,
                ...) __attribute__((format(printf, 5, 6)));
void faults_add_list(struct faults *faults, int place, const char *file, int line,
                     const char *format, va_list arguments) __attribute__((format(printf, 5, 0)));
/* Writes what is kept, as lines without a newline behind the last; faults that do not fit are
 * counted. */
void faults_join(struct faults *faults, char *error, size_t size);
void faults_release(struct faults *faults);

#endif
