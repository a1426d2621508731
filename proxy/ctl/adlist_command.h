/*
 * `retortctl adlist ...` runs retort-adlist, which knows the rules of the ad remover.
 *
 *     return adlist_command(&line);        of the table: "adlist ..."
 *
 * Returns only when that program cannot be run: the exit status, after a message on stderr.
 */
#ifndef RETORT_CTL_ADLIST_COMMAND_H
#define RETORT_CTL_ADLIST_COMMAND_H

#include "ctl/command.h"

int adlist_command(const struct command_line *line);

#endif
