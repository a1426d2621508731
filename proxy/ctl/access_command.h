/*
 * retortctl access: what the access sections have decided, and what they would decide.
 *
 *     return access_command(admin, &line);
 *
 * Threads: the program's only one.
 */
#ifndef RETORT_CTL_ACCESS_COMMAND_H
#define RETORT_CTL_ACCESS_COMMAND_H

#include "ctl/command.h"

/* Returns the exit status of the program. */
int access_command(const char *where, const struct command_line *line);

#endif
