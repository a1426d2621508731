/*
 * retortctl dns: the names that the proxy remembers.
 *
 *     return dns_command(admin, &line);
 *
 * Threads: one.
 */
#ifndef RETORT_CTL_DNS_COMMAND_H
#define RETORT_CTL_DNS_COMMAND_H

#include "ctl/command.h"

/* Returns the exit status. */
int dns_command(const char *where, const struct command_line *line);

#endif
