/*
 * retortctl services load|unload|order: services at work while the proxy runs
 * (admin/service_control_page.h).
 *
 *     return services_command(admin, &line);      line.command is one of them
 *
 * Threads: any.
 */
#ifndef RETORT_CTL_SERVICES_COMMAND_H
#define RETORT_CTL_SERVICES_COMMAND_H

#include "ctl/command.h"

/* Returns the exit status of retortctl. */
int services_command(const char *where, const struct command_line *line);

#endif
