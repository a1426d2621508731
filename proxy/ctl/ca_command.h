/*
 * `retortctl ca ...`: makes, shows and exports the certificate authority for intercepted
 * connections (`authority { certificate key }` in retort.conf). It works on files and asks no
 * running proxy.
 *
 *     return ca_command(json, argc, argv);        argv[0] is "ca"; returns the exit status
 */
#ifndef RETORT_CTL_CA_COMMAND_H
#define RETORT_CTL_CA_COMMAND_H

#include <stdbool.h>

int ca_command(bool json, int argc, char **argv);

#endif
