/*
 * retortctl intercept: connections that are spliced because a client refused the certificate, or
 * because the server asks for client certificates.
 *
 *     return intercept_command(admin, &line);
 *
 * Threads: one.
 */
#ifndef RETORT_CTL_INTERCEPT_COMMAND_H
#define RETORT_CTL_INTERCEPT_COMMAND_H

#include "ctl/command.h"

/* Returns the exit status. */
int intercept_command(const char *where, const struct command_line *line);

#endif
