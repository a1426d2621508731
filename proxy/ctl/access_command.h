/*
 * retortctl access: what the access sections have decided, and what they would decide.
 *
 *     return access_command(where, json, argc, argv);        argv[0] is "access"
 *
 * Threads: the program's only one.
 */
#ifndef RETORT_CTL_ACCESS_COMMAND_H
#define RETORT_CTL_ACCESS_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

/* Returns the exit status of the program. */
int access_command(const char *where, bool json, int argc, char **argv);

#endif
