/*
 * retortctl intercept: connections that are spliced because a client refused the certificate, or
 * because the server asks for client certificates.
 *
 *     return intercept_command(where, json, argc, argv);       argv[0] is "intercept"
 *
 * Threads: one.
 */
#ifndef RETORT_CTL_INTERCEPT_COMMAND_H
#define RETORT_CTL_INTERCEPT_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

/* Returns the exit status. */
int intercept_command(const char *where, bool json, int argc, char **argv);

#endif
