/*
 * retortctl limits: what clients, users and classes have used of the limit sections.
 *
 *     return limits_command(admin, &line);
 *
 * Threads: one.
 */
#ifndef RETORT_CTL_LIMITS_COMMAND_H
#define RETORT_CTL_LIMITS_COMMAND_H

#include "ctl/command.h"

/* Returns the exit status. */
int limits_command(const char *where, const struct command_line *line);

#endif
