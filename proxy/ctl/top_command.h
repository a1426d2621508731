/*
 * retortctl top, and retortctl logs top: who asks for how much, of the event stream or of a log.
 *
 *     return top_command(where, line);                  the exit status
 *     return logs_top_command(line);
 *
 * Threads: one at a time.
 */
#ifndef RETORT_CTL_TOP_COMMAND_H
#define RETORT_CTL_TOP_COMMAND_H

#include "ctl/command.h"

int top_command(const char *where, const struct command_line *line);
int logs_top_command(const struct command_line *line);

#endif
