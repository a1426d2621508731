/*
 * Commands of retortctl that other programs carry out: what needs the code of services, of the ICAP client or of logs, and no proxy.
 *
 *     if (other_program_has(line))
 *         return other_program_run(line);              returns only when the program is not there
 *
 * The program gets the options and arguments as they were checked, and no word of the command.
 */
#ifndef RETORT_TOOLS_OTHER_PROGRAM_H
#define RETORT_TOOLS_OTHER_PROGRAM_H

#include "tools/command.h"

bool other_program_has(const struct command_line *line);
/* Its exit status after a failure. */
int other_program_run(const struct command_line *line);

#endif
