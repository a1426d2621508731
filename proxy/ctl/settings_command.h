/*
 * retortctl set, unset, get, diff, config and reload: the settings of the running proxy.
 *
 *     if (strcmp(line.argv[0], "set") == 0)
 *         return settings_command(admin, &line);
 *
 * Threads: the one of retortctl.
 */
#ifndef RETORT_CTL_SETTINGS_COMMAND_H
#define RETORT_CTL_SETTINGS_COMMAND_H

#include "ctl/command.h"

#include <jansson.h>

int settings_command(const char *where, const struct command_line *line);
/* Shows what came of a change, of whichever page. Returns the exit status. */
int settings_command_outcome(const json_t *answer);

#endif
