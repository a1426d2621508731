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

int settings_command(const char *where, const struct command_line *line);

#endif
