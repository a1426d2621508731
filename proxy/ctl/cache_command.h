/*
 * The commands of retortctl for the content of the cache:
 *
 *     return cache_command("/run/retort/retort.sock", json, argc, argv);    argv[0] is "cache"
 *
 * All commands go to the admin plane, except `fetch` and `revalidate`. These are requests to a
 * listener, like those of clients, so the responses pass through the same services as clients'
 * responses.
 *
 * Returns the exit status: 0, 1 after a failure (stderr says why), 2 after wrong usage. Blocks.
 */
#ifndef RETORT_CTL_CACHE_COMMAND_H
#define RETORT_CTL_CACHE_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

int cache_command(const char *admin, bool json, int argc, char **argv);

#endif
