/*
 * Readiness: checks that the directories, files and addresses of a configuration can be used on
 * this machine.
 *
 *     struct findings findings = {0};
 *     readiness_of_files(settings, &findings);       at a start, a reload and `retort -t`
 *     readiness_of_services(settings, &findings);    for `retort -t`: services inside the proxy
 *     readiness_of_start(settings, &findings);       for `retort -t`: what a start would refuse
 *
 *     readiness_warn(settings);                      for `retort -t`: what a start would only suffer from
 *
 * The checks make and change nothing. Addresses and disks that another retort uses now are no
 * findings: usually the retort that will read the configuration is running during the check.
 */
#ifndef RETORT_READINESS_H
#define RETORT_READINESS_H

#include "base/findings.h"
#include "settings/settings.h"

/* Checks the logs, the temporary directory, and the files for TLS. */
void readiness_of_files(const struct settings *settings, struct findings *findings);
/* Checks the privileges that the transparent section needs. A start or reload without them is
 * refused. */
void readiness_of_privileges(const struct settings *settings, struct findings *findings);
/* Starts the services inside the proxy and stops them: their modules check their settings. */
void readiness_of_services(struct settings *settings, struct findings *findings);
/* Checks the listeners, the disks, the admin plane and the socket for a takeover. */
void readiness_of_start(const struct settings *settings, struct findings *findings);
/* Says in the log what works at a start, but not for clients as it is now: sockets of retort-helperd
 * that do not answer, addresses that are in use while no retort answers, and a check by root, who
 * may read what the user of the service may not. */
void readiness_warn(const struct settings *settings);

#endif
