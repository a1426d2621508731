#include "readiness.h"

#include "base/assert.h"
#include "base/log.h"
#include "net/egress.h"
#include "net/listener.h"
#include "net/privileges.h"
#include "part.h"
#include "settings/part_settings.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Without ICAP services no body is kept there. */
static void of_temporary_directory(const struct settings *settings, struct findings *findings) {
    if (settings->service_count > 0 && access(settings->temporary_directory, W_OK | X_OK) != 0)
        findings_add(findings,
                     "temporary_directory %s: %s; bodies larger than icap_service.keep can not be "
                     "kept there: create it, let this user write to it, or choose another one",
                     settings->temporary_directory, strerror(errno));
}

void readiness_of_privileges(const struct settings *settings, struct findings *findings) {
    const char *option = settings->sockets.foreign ? "tproxy" : "mark";
    int error = privileges_missing(settings->sockets.foreign, settings->sockets.mark);
    if (error != 0)
        findings_add(findings, "transparent.%s is not possible: %s%s", option, strerror(error),
                     privileges_advice(error));
}

/* Other places than files may come later. */
static void findings_of_logs(struct findings *findings, const char *kind,
                             const struct log_settings *logs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (logs[i].place.kind == LOG_PLACE_FILE)
            findings_of_log(findings, kind, logs[i].path);
}

void readiness_of_files(const struct settings *settings, struct findings *findings) {
    if (settings->error_log != NULL)
        findings_of_log(findings, "error_log", settings->error_log);
    findings_of_logs(findings, "access_log", settings->access_logs, settings->access_log_count);
    findings_of_logs(findings, "icap_log", settings->icap_logs, settings->icap_log_count);
    of_temporary_directory(settings, findings);
}

static bool has_forward_listener(const struct settings *settings) {
    for (size_t i = 0; i < settings->listen_count; i++)
        if (settings->listens[i].mode != LISTEN_REVERSE)
            return true;
    return false;
}

void readiness_of_start(const struct settings *settings, struct findings *findings) {
    char reason[LISTENER_ERROR];
    for (size_t i = 0; i < settings->listen_count; i++)
        if (!listener_possible(&settings->listens[i].address, reason))
            findings_add(findings, "%s", reason);
    readiness_of_privileges(settings, findings);
    PARTS_FOR_EACH (number, process.is_possible)
        part_table[number]->process.is_possible(settings, findings);
    if (has_forward_listener(settings) && !egress_possible())
        findings_add(findings,
                     "the machine's own addresses, which listen.local_destinations protects, can "
                     "not be read: %s; in a sandbox, allow AF_NETLINK sockets",
                     strerror(errno));
}

void readiness_of_services(struct settings *settings, struct findings *findings) {
    struct settings *used = settings_reference(settings);
    PARTS_FOR_EACH (number, process.prepare)
        part_table[number]->process.prepare(NULL, settings, findings);
    settings_end_use(&used);
    parts_await_end();
}

/* 0, or the error of a connection to a Unix socket. */
static int connection_error(const char *path, int type) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ASSERT(strlen(path) < sizeof address.sun_path); /* the settings were checked */
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error = fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return error == EAGAIN ? 0 : error; /* many others connect */
}

static const char *helpers_advice(int error) {
    switch (error) {
    case EACCES: return "make this user a member of socket_group of its configuration";
    case ENOENT:
    case ECONNREFUSED:
        return "start retort-helperd, or set helpers to the socket of its configuration";
    default: return "set helpers to the socket of retort-helperd";
    }
}

/* A check beside a retort that runs finds its addresses in use. So they are, with sockets of
 * systemd's. */
static void warn_of_used_addresses(const struct settings *settings) {
    const char *socket = part_socket_path(settings);
    char reason[LISTENER_ERROR];
    if (socket != NULL && connection_error(socket, SOCK_STREAM) == 0)
        return;
    for (size_t i = 0; i < settings->listen_count; i++) {
        reason[0] = '\0';
        if (listener_possible(&settings->listens[i].address, reason) && reason[0] != '\0')
            log_warn("%s; this is as it should be if retort runs already, or gets its sockets from "
                     "systemd",
                     reason);
    }
}

/* Services that share a socket are told of once. */
static bool service_is_told(const struct settings *settings, size_t end) {
    for (size_t i = 0; i < end; i++)
        if (settings->services[i].helpers != NULL &&
            strcmp(settings->services[i].helpers, settings->services[end].helpers) == 0)
            return true;
    return false;
}

static void warn_of_helpers(const struct settings *settings) {
    for (size_t i = 0; i < settings->service_count; i++) {
        const struct service_settings *service = &settings->services[i];
        if (service->helpers == NULL || service->disabled || service_is_told(settings, i))
            continue;
        int error = connection_error(service->helpers, SOCK_SEQPACKET);
        if (error != 0)
            log_warn("%s: service %s: helpers: %s: %s; what its helpers should do is left undone "
                     "until it answers: %s",
                     service->where, service->name, service->helpers, strerror(error),
                     helpers_advice(error));
    }
}

static void warn_of_user(void *arg, const struct helpers_user *user) {
    (void)arg;
    int error = connection_error(user->path, SOCK_SEQPACKET);
    if (error != 0)
        log_warn("%s %s: helpers: %s: %s; %s until it answers: %s", user->section, user->title,
                 user->path, strerror(error), user->loss, helpers_advice(error));
}

void readiness_warn(const struct settings *settings) {
    warn_of_used_addresses(settings);
    warn_of_helpers(settings);
    PARTS_FOR_EACH (number, settings)
        if (part_table[number]->settings->each_helpers != NULL)
            part_table[number]->settings->each_helpers(settings->parts[number], warn_of_user, NULL);
    if (geteuid() == 0)
        log_info("root has done this check: the user that retort runs as may read fewer files; "
                 "repeat it as that user, for example: setpriv --reuid=retort --regid=retort "
                 "--init-groups retort -t -f FILE");
}
