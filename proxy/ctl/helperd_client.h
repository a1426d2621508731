/*
 * The commands of retortctl that go to retort-helperd, over its Unix socket:
 *
 *     helpers                    a table of pools and their processes
 *     helpers top [S [N]]        CPU and jobs of each pool, every S seconds, N times
 *     helpers renice POOL N
 *     helpers resize POOL N
 *     helpers reload
 *
 *     return helperd_client_command("/run/retort/helperd.sock", &line);
 *
 * Returns the exit status: 0, 1 when retort-helperd refused or can't be reached (stderr says why
 * and what to do), 2 on wrong usage. Blocks as helperd_call does.
 */
#ifndef RETORT_CTL_HELPERD_CLIENT_H
#define RETORT_CTL_HELPERD_CLIENT_H

#include "ctl/command.h"

int helperd_client_command(const char *socket_path, const struct command_line *line);

#endif
