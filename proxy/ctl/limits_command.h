/*
 * retortctl limits: what clients, users and classes have used of the limit sections.
 *
 *     return limits_command(where, json, argc, argv);       argv[0] is "limits"
 *
 * Threads: one.
 */
#ifndef RETORT_CTL_LIMITS_COMMAND_H
#define RETORT_CTL_LIMITS_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

/* Returns the exit status. */
int limits_command(const char *where, bool json, int argc, char **argv);

#endif
