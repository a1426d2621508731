/*
 * `retortctl ca ...`: makes, shows and exports the certificate authority for intercepted
 * connections (`authority { certificate key }` in retort.conf). It works on files and asks no
 * running proxy.
 *
 *     return ca_command(argc, argv);        argv[0] is "ca"; returns the exit status
 */
#ifndef RETORT_CTL_CA_COMMAND_H
#define RETORT_CTL_CA_COMMAND_H

#include <stdio.h>

int ca_command(int argc, char **argv);
/* Writes the lines about it in the help of retortctl. */

#endif
