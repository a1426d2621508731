/*
 * Findings: the results of a check. Each finding is a sentence that tells the operator what to do.
 *
 *     struct findings findings = {0};
 *     findings_add(&findings, "access_log %s: its directory is not there: make it", path);
 *     for (unsigned i = 0; i < findings.count; i++)
 *         fprintf(stderr, "retort: %s\n", findings.text[i]);
 *
 * A finding is cut at FINDING bytes. At most FINDINGS_MAX findings are kept; `more` counts the
 * others. Threads: one at a time.
 */
#ifndef RETORT_BASE_FINDINGS_H
#define RETORT_BASE_FINDINGS_H

#include <stddef.h>

enum { FINDINGS_MAX = 16, FINDING = 512 };

struct findings {
    unsigned count, more;
    char text[FINDINGS_MAX][FINDING];
};

void findings_add(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Logs each as a warning, with `before` in front. */
void findings_warn(const struct findings *findings, const char *before);
/* All in one line, with "; " between. What is longer than `size` is cut. */
void findings_join(const struct findings *findings, char *text, size_t size);
/* Checks that a log can be written: the file exists and is writable, or its directory is. `what`
 * begins the sentence: "access_log". */
void findings_of_log(struct findings *findings, const char *what, const char *path);
/* Checks that files can be made in the directory of this path. */
void findings_of_directory(struct findings *findings, const char *what, const char *path);

#endif
