/*
 * Runs programs one behind another, as a shell does with "|". The first one reads a file and the
 * last one writes a file.
 *
 *     char *const decode[] = {"pngtopnm", NULL}, *const gray[] = {"ppmtopgm", NULL};
 *     char *const *const programs[] = {decode, gray, NULL};
 *     if (!pipeline_run(programs, input, output, error, sizeof error)) ...
 *
 * Programs are found through PATH. Their descriptor 2 is /dev/null. They inherit descriptors
 * without close-on-exec. pipeline_run blocks until all programs have ended, and returns true when
 * each one has ended with 0. Threads: one.
 */
#ifndef RETORT_HELPERS_PIPELINE_H
#define RETORT_HELPERS_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

enum { PIPELINE_MAX = 8 };

/* Opens what pipeline_run needs. A process that can't open files later calls this first. False with
 * errno. */
bool pipeline_prepare(void);

bool pipeline_run(char *const *const *programs, int input, int output, char *error,
                  size_t error_size);

#endif
