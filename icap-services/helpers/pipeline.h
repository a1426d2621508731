/*
 * Runs programs one behind another, as a shell would with "|", from a file to a file.
 *
 *     char *const decode[] = {"pngtopnm", NULL}, *const gray[] = {"ppmtopgm", NULL};
 *     char *const *const programs[] = {decode, gray, NULL};
 *     if (!pipeline_run(programs, input, output, error, sizeof error)) ...
 *
 * Programs are found through PATH; their descriptor 2 is /dev/null; descriptors without
 * close-on-exec are inherited. Blocks until all have ended; true when each ended with 0.
 */
#ifndef RETORT_HELPERS_PIPELINE_H
#define RETORT_HELPERS_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>

enum { PIPELINE_MAX = 8 };

/* Opens what pipeline_run needs, for a process that will not be able to later. False with errno. */
bool pipeline_prepare(void);

bool pipeline_run(char *const *const *programs, int input, int output, char *error,
                  size_t error_size);

#endif
