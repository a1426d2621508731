/*
 * The commands of retortctl for the content of the cache:
 *
 *     return cache_command("/run/retort/retort.sock", &line);      of the table: "cache ..."
 *
 * All commands go to the admin plane, except `fetch` and `revalidate`. These are requests to a
 * listener, like those of clients, so the responses pass through the same services as clients'
 * responses.
 *
 * Returns the exit status: 0, 1 after a failure (stderr says why), 2 after wrong usage. Blocks.
 */
#ifndef RETORT_CTL_CACHE_COMMAND_H
#define RETORT_CTL_CACHE_COMMAND_H

#include "ctl/command.h"

int cache_command(const char *admin, const struct command_line *line);

#endif
