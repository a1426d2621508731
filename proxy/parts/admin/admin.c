#include "admin/admin.h"

#include "admin/helper_numbers.h"
#include "admin/history.h"
#include "admin/part_pages.h"
#include "admin/request.h"
#include "admin/settings.h"
#include "admin/terminator.h"
#include "base/assert.h"
#include "base/clocks.h"
#include "base/log.h"
#include "net/listener.h"

#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ADMIN_CONNECTIONS = 2 * ADMIN_CONNECTIONS_MOST, /* includes connections that are closing */
    ADMIN_TIMEOUT_SECONDS = 15,
    ADMIN_MEMORY = 16 << 10, /* memory of a connection; it limits the head of a request */
    ADMIN_BACKLOG = 128,
    ADMIN_THREADS = 4,
    ADMIN_LAST_FEEDS = 500,     /* milliseconds for readers of feeds to read the end */
    ADMIN_FIRST_ANSWERS = 2000, /* for who has connected, and has no answer yet */
    ADMIN_LAST_ANSWERS = 500,   /* for who waits for a page made apart, or for the rest by TLS */
};

struct admin {
    unsigned magic;
#define ADMIN_MAGIC 0x41444d4eu
    struct admin_requests requests;
    struct MHD_Daemon *daemon;     /* NULL: there is no admin plane */
    struct terminator *terminator; /* NULL: clear text, or no admin plane */
    int socket;                    /* that listens; -1: none, or it was given away */
    struct sampler *sampler;       /* NULL: there is no admin plane */
    char *path;                    /* path of the Unix socket while it belongs to this process */
    dev_t device;
    ino_t inode;
};

/* libmicrohttpd's own messages, without their newline. */
static void on_complaint(void *arg, const char *format, va_list arguments) {
    char message[400];
    (void)arg;
    vsnprintf(message, sizeof message, format, arguments);
    message[strcspn(message, "\n")] = '\0';
    log_debug("admin: %s", message);
}

/* Checks what is at the path. Returns true for nothing, and for a socket without a server, which
 * is removed. Returns false for anything else, which must not be touched. */
static bool admin_make_room(const struct address *address, char *error) {
    struct stat status;
    const char *path = address->local.sun_path;
    if (lstat(path, &status) != 0)
        return true; /* bind reports any reason other than absence */
    if (!S_ISSOCK(status.st_mode)) {
        snprintf(error, SETTINGS_ERROR, "admin.listen: %s exists and is not a socket", path);
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool refused = fd >= 0 && connect(fd, &address->any, address->length) != 0;
    int reason = refused ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (reason != ECONNREFUSED) {
        snprintf(error, SETTINGS_ERROR, "admin.listen: %s %s, or choose another path", path,
                 reason == EACCES
                     ? "belongs to another user: remove it if no retort of that user is running"
                     : "is in use: another retort seems to be running; stop it");
        return false;
    }
    unlink(path);
    return true;
}

bool admin_possible(const struct settings *settings, char error[SETTINGS_ERROR]) {
    struct findings findings = {0};
    struct stat status;
    const char *path = admin_settings_of(settings)->listen;
    char reason[LISTENER_ERROR];
    if (path == NULL)
        return true;
    if (path[0] != '/') {
        bool possible = listener_possible(&admin_settings_of(settings)->address, reason);
        snprintf(error, SETTINGS_ERROR, "admin.listen: %s", reason);
        return possible;
    }
    if (lstat(path, &status) == 0 && !S_ISSOCK(status.st_mode))
        findings_add(&findings, "admin.listen: %s exists and is not a socket", path);
    else
        findings_of_directory(&findings, "admin.listen", path);
    if (findings.count > 0)
        snprintf(error, SETTINGS_ERROR, "%s", findings.text[0]);
    return findings.count == 0;
}

static int listen_at(const struct address *address, char *error) {
    char text[ADDRESS_TEXT];
    int one = 1, fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool local = address->any.sa_family == AF_UNIX;
    if (fd >= 0 && !local)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    mode_t mask = local ? umask(0177) : 0; /* mode 0600 from the first moment on */
    bool good = fd >= 0 && bind(fd, &address->any, address->length) == 0;
    int reason = errno;
    if (local)
        umask(mask);
    if (good && listen(fd, ADMIN_BACKLOG) == 0)
        return fd;
    reason = good ? errno : reason;
    address_format(address, text);
    snprintf(error, SETTINGS_ERROR, "admin.listen: %s can not be used: %s%s", text,
             strerror(reason),
             local ? "; create its directory, and let retort's user write to it" : "");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Remembers which file belongs to us, so that the file of a successor is not removed at the end. */
static void remember_path(struct admin *admin, const struct address *address) {
    struct stat status;
    if (stat(address->local.sun_path, &status) != 0)
        return;
    admin->path = xstrdup(address->local.sun_path);
    admin->device = status.st_dev;
    admin->inode = status.st_ino;
}

static void remove_path(struct admin *admin) {
    struct stat status;
    if (admin->path != NULL && lstat(admin->path, &status) == 0 && status.st_dev == admin->device &&
        status.st_ino == admin->inode)
        unlink(admin->path);
    free(admin->path);
}

/* With TLS the terminator listens. The threads inherit a mask that leaves all signals to the main
 * thread. */
static struct MHD_Daemon *start_daemon(struct admin *admin) {
    sigset_t all, before;
    const struct MHD_OptionItem listens[] = {
        {admin->requests.guard.secure ? MHD_OPTION_END : MHD_OPTION_LISTEN_SOCKET, admin->socket,
         NULL},
        {MHD_OPTION_END, 0, NULL}};
    const unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    struct MHD_Daemon *started = MHD_start_daemon(
        flags | (admin->requests.guard.secure ? MHD_USE_NO_LISTEN_SOCKET : 0), 0, NULL, NULL,
        admin_requests_on_data, &admin->requests, MHD_OPTION_EXTERNAL_LOGGER, on_complaint, NULL,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)ADMIN_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)ADMIN_TIMEOUT_SECONDS, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)ADMIN_THREADS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)ADMIN_MEMORY, MHD_OPTION_NOTIFY_COMPLETED,
        admin_requests_on_end, NULL, MHD_OPTION_NOTIFY_CONNECTION, admin_requests_on_connection,
        &admin->requests, MHD_OPTION_URI_LOG_CALLBACK, admin_requests_on_target, &admin->requests,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, listens, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static void admin_release(struct admin *admin) {
    sampler_stop(&admin->sampler);
    helper_numbers_free(&admin->requests.calls.helpers);
    admin_requests_release(&admin->requests);
    FREE_OBJ(admin);
}

static bool start_threads(struct admin *admin, const struct settings *settings) {
    const struct admin_settings *mine = admin_settings_of(settings);
    uint64_t step = mine->history_step;
    admin->sampler = sampler_start(&admin->requests.calls, &admin->requests.lock, step);
    if (admin->sampler == NULL)
        return false;
    admin->requests.calls.history = sampler_history(admin->sampler);
    admin->requests.calls.history_step = step;
    admin->daemon = start_daemon(admin);
    if (admin->daemon == NULL || !admin->requests.guard.secure)
        return admin->daemon != NULL;
    admin->terminator =
        terminator_start(admin->daemon, &admin->requests.calls, &mine->address, admin->socket);
    return admin->terminator != NULL;
}

struct admin *admin_start(const struct settings *settings, const struct admin_calls *calls,
                          int inherited, char error[SETTINGS_ERROR]) {
    struct admin *admin;
    const struct address *address = &admin_settings_of(settings)->address;
    ALLOC_OBJ(admin, ADMIN_MAGIC);
    admin_requests_init(&admin->requests, settings, calls);
    admin->requests.calls.helpers = helper_numbers_new();
    admin->socket = -1;
    if (admin_settings_of(settings)->listen == NULL)
        return admin;
    int fd = inherited;
    if (fd < 0 && (!admin->requests.guard.local || admin_make_room(address, error)))
        fd = listen_at(address, error);
    if (fd < 0) {
        admin_release(admin);
        return NULL;
    }
    admin->socket = fd;
    if (admin->requests.guard.local && inherited < 0)
        remember_path(admin, address);
    if (!start_threads(admin, settings)) {
        snprintf(error, SETTINGS_ERROR, "admin.listen: its threads can not be started: %s",
                 strerror(errno));
        if (admin->daemon != NULL)
            MHD_stop_daemon(admin->daemon);
        close(fd);
        remove_path(admin);
        admin_release(admin);
        return NULL;
    }
    return admin;
}

int admin_socket(const struct admin *admin) {
    CHECK_OBJ(admin, ADMIN_MAGIC);
    return admin->socket;
}

void admin_own_file(struct admin *admin, const struct settings *settings) {
    CHECK_OBJ(admin, ADMIN_MAGIC);
    if (admin->requests.guard.local && admin->path == NULL)
        remember_path(admin, &admin_settings_of(settings)->address);
}

/* MHD_stop_daemon would shut the socket down, also for other processes that have it. Returns the
 * socket, which is the caller's from now on, or -1. */
static int stop_accepting(struct admin *admin) {
    int fd = admin->socket;
    admin->socket = -1;
    if (fd >= 0 && admin->terminator != NULL)
        terminator_quiet(admin->terminator);
    else if (fd >= 0)
        MHD_quiesce_daemon(admin->daemon);
    return fd;
}

static void admin_close_socket(int fd) {
    if (fd >= 0)
        close(fd);
}

static void admin_end_feeds(struct admin *admin, unsigned patience) {
    PAGES_FOR_EACH (number, end_feeds)
        if (admin->requests.calls.parts != NULL)
            part_pages_table[number]->end_feeds(admin->requests.calls.parts[number], patience);
}

void admin_give_away(struct admin *admin) {
    CHECK_OBJ(admin, ADMIN_MAGIC);
    free(admin->path);
    admin->path = NULL;
    admin_close_socket(stop_accepting(admin));
    admin_end_feeds(admin, 0);
}

/* A request that was sent to this process is answered before the process ends. */
static void await_answers(struct admin *admin) {
    enum { LOOK = 5000 }; /* microseconds */
    const uint64_t until = clocks_milliseconds(CLOCK_MONOTONIC) + ADMIN_FIRST_ANSWERS;
    atomic_store(&admin->requests.ending, true);
    while (clocks_milliseconds(CLOCK_MONOTONIC) < until &&
           ((admin->terminator != NULL && !terminator_is_quiet(admin->terminator)) ||
            !admin_connections_have_answers(&admin->requests.connections)))
        usleep(LOOK);
}

void admin_stop(struct admin **adminp, bool hurried) {
    struct admin *admin = *adminp;
    *adminp = NULL;
    if (admin == NULL)
        return;
    CHECK_OBJ(admin, ADMIN_MAGIC);
    /* The path is removed first, because a successor may use it from now on. */
    remove_path(admin);
    int fd = stop_accepting(admin);
    if (!hurried)
        await_answers(admin);
    apart_stop(&admin->requests.apart, ADMIN_LAST_ANSWERS);
    /* Also because no connection may be suspended below. */
    admin_end_feeds(admin, ADMIN_LAST_FEEDS);
    if (admin->terminator != NULL)
        terminator_detach(admin->terminator);
    if (admin->daemon != NULL)
        MHD_stop_daemon(admin->daemon);
    terminator_stop(&admin->terminator, ADMIN_LAST_ANSWERS);
    admin_close_socket(fd); /* its threads may have been using the number until they ended */
    admin_release(admin);
}

void admin_report_begin(struct admin_report *report, struct settings *settings) {
    *report = (struct admin_report){
        .settings = settings_use(settings),
        .now = clocks_milliseconds(CLOCK_MONOTONIC),
    };
    PAGES_FOR_EACH (number, begin_report)
        part_pages_table[number]->begin_report(report);
}

void admin_report_add(struct admin_report *report, const struct worker_report *worker) {
    counters_add(&report->counters, &worker->counters);
    durations_sum(&report->durations, &worker->durations);
    request_counts_sum(&report->requests, &worker->requests);
    if (worker->settings != report->settings)
        return;
    PAGES_FOR_EACH (number, add_report)
        part_pages_table[number]->add_report(report, worker);
}

void admin_report_add_shared(struct admin_report *report, struct cache *cache,
                             struct second_level *second_level) {
    struct cache_statistics statistics;
    cache_statistics(cache, &statistics);
    report->cache_bytes = statistics.bytes;
    report->cache_objects = statistics.objects;
    report->cache_limit = statistics.limit;
    report->cache_evictions = statistics.evictions;
    report->cache_variants_dropped = statistics.variants_dropped;
    if (second_level != NULL) {
        report->second_level_numbers = second_level->class->numbers;
        second_level->class->report(second_level, report->second_level);
    }
}

void admin_report_release(struct admin_report *report) {
    request_counts_release(&report->requests);
    free(report->services);
    report->services = NULL;
    settings_end_use(&report->settings);
}
