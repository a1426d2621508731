/*
 * Findings: what a check has to say, a sentence each, for an operator to act on.
 *
 *     struct findings findings = {0};
 *     findings_add(&findings, "access_log %s: its directory is not there: make it", path);
 *     for (unsigned i = 0; i < findings.count; i++)
 *         fprintf(stderr, "retort: %s\n", findings.text[i]);
 *
 * A finding is cut at FINDING bytes; of those behind the last place only the number is kept, in
 * `more`. Threads: one at a time.
 */
#ifndef RETORT_BASE_FINDINGS_H
#define RETORT_BASE_FINDINGS_H

enum { FINDINGS_MAX = 16, FINDING = 512 };

struct findings {
    unsigned count, more;
    char text[FINDINGS_MAX][FINDING];
};

void findings_add(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* For what a program writes to: a file that it may append to, or a directory where it can make one.
 * `what` begins the sentence: "access_log". */
void findings_of_log(struct findings *findings, const char *what, const char *path);
/* Can files be made beside this path? The finding ends with what to do about it. */
void findings_of_directory(struct findings *findings, const char *what, const char *path);

#endif
