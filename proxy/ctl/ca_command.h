/*
 * `retortctl ca ...`: makes, shows and exports the certificate authority for intercepted
 * connections (`authority { certificate key }` in retort.conf). It works on files and asks no
 * running proxy.
 *
 *     return ca_command(&line);        of the table: "ca ..."; returns the exit status
 */
#ifndef RETORT_CTL_CA_COMMAND_H
#define RETORT_CTL_CA_COMMAND_H

#include "ctl/command.h"

int ca_command(const struct command_line *line);

#endif
