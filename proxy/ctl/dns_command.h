/*
 * retortctl dns: the names that the proxy remembers.
 *
 *     return dns_command(admin, json, argc, argv);           argv[0] is "dns"
 *
 * Threads: one.
 */
#ifndef RETORT_CTL_DNS_COMMAND_H
#define RETORT_CTL_DNS_COMMAND_H

#include <stdbool.h>
#include <stdio.h>

/* Returns the exit status. */
int dns_command(const char *where, bool json, int argc, char **argv);

#endif
