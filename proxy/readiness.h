/*
 * Readiness: does this machine have what a configuration names: directories, files, addresses?
 *
 *     struct findings findings = {0};
 *     readiness_of_files(settings, &findings);       what a reload can find out and would not apply
 *     readiness_of_start(settings, &findings);       what a start would refuse; of `retort -t`
 *
 * Nothing is made or changed. What another retort has now (its addresses, the lock on its disk)
 * is no finding: the check is mostly asked for while the one runs that is to read the file.
 */
#ifndef RETORT_READINESS_H
#define RETORT_READINESS_H

#include "base/findings.h"
#include "settings/settings.h"

/* Logs, the temporary directory, what TLS needs. */
void readiness_of_files(const struct settings *settings, struct findings *findings);
/* Listeners, disks, the admin plane. */
void readiness_of_start(const struct settings *settings, struct findings *findings);

#endif
