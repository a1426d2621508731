/*
 * The commands of retortctl about what is in the cache:
 *
 *     return cache_command("/run/retort/retort.sock", json, argc, argv);    argv[0] is "cache"
 *
 * All go to the admin plane but `fetch` and `revalidate`, which are requests to a listener, as
 * clients make them: so what they bring takes the way, services included, that clients' requests
 * take.
 *
 * Returns the exit status: 0, 1 when it did not work (stderr says why), 2 on wrong usage. Blocks.
 */
#ifndef RETORT_CTL_CACHE_COMMAND_H
#define RETORT_CTL_CACHE_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

int cache_command(const char *admin, bool json, int argc, char **argv);
void cache_command_help(FILE *out);

#endif
