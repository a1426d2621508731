#include "readiness.h"

#include "admin/admin.h"
#include "disk/volume.h"
#include "net/listener.h"
#include "net/privileges.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Without ICAP services no body is kept there. */
static void of_temporary_directory(const struct settings *settings, struct findings *findings) {
    if (settings->icap_service_count > 0 && access(settings->temporary_directory, W_OK | X_OK) != 0)
        findings_add(findings,
                     "temporary_directory %s: %s; bodies larger than icap_service.keep can not be "
                     "kept there: create it, let this user write to it, or choose another one",
                     settings->temporary_directory, strerror(errno));
}

void readiness_of_privileges(const struct settings *settings, struct findings *findings) {
    const char *option = settings->transparent.tproxy ? "tproxy" : "mark";
    int error = privileges_missing(settings->transparent.tproxy, settings->transparent.mark);
    if (error != 0)
        findings_add(findings, "transparent.%s is not possible: %s%s", option, strerror(error),
                     privileges_advice(error));
}

void readiness_of_files(const struct settings *settings, struct findings *findings) {
    if (settings->error_log != NULL)
        findings_of_log(findings, "error_log", settings->error_log);
    for (size_t i = 0; i < settings->access_log_count; i++)
        findings_of_log(findings, "access_log", settings->access_logs[i].path);
    of_temporary_directory(settings, findings);
}

void readiness_of_start(const struct settings *settings, struct findings *findings) {
    char error[SETTINGS_ERROR], reason[LISTENER_ERROR];
    for (size_t i = 0; i < settings->listen_count; i++)
        if (!listener_possible(&settings->listens[i].address, reason))
            findings_add(findings, "%s", reason);
    readiness_of_privileges(settings, findings);
    for (size_t i = 0; i < settings->cache.disk_count; i++)
        if (!volume_possible(&settings->cache.disks[i], error))
            findings_add(findings, "%s", error);
    if (!admin_possible(settings, error))
        findings_add(findings, "%s", error);
}
