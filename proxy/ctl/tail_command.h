/*
 * retortctl tail: shows transactions as they end.
 *
 *     return tail_command(where, line);                 the exit status
 *
 * Threads: one at a time.
 */
#ifndef RETORT_CTL_TAIL_COMMAND_H
#define RETORT_CTL_TAIL_COMMAND_H

#include "ctl/command.h"

int tail_command(const char *where, const struct command_line *line);
/* Are they all NAME=VALUE? False: after a message. */
bool tail_filters_are_good(const struct command_line *line);
/* The number of an option, from 1 to `most`; `otherwise` if it is not given; 0: after a message. */
unsigned long tail_number(const struct command_line *line, const char *name,
                          unsigned long otherwise, unsigned long most);

#endif
