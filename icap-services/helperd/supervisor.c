#include "helperd/supervisor.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/signals.h"
#include "helperd/client.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BACKLOG = 256, LISTEN_PAUSE = 200 };

struct pool *supervisor_pool(struct supervisor *supervisor, const char *name) {
    LIST_FOR_EACH (link, &supervisor->pools) {
        struct pool *pool = CONTAINER_OF(link, struct pool, link);
        if (strcmp(pool->settings.name, name) == 0)
            return pool;
    }
    return NULL;
}

/* ---- the socket --------------------------------------------------------------------------- */

static void fill_address(struct sockaddr_un *address, const char *path) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    ASSERT(strlen(path) < sizeof address->sun_path); /* the settings were checked */
    strcpy(address->sun_path, path);
}

/* If nobody listens on a socket file, a predecessor that was killed has left it. */
static bool is_in_use(const struct sockaddr_un *address) {
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool used = fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
                            errno == EAGAIN); /* it does not get round to accepting */
    if (fd >= 0)
        close(fd);
    return used;
}

static bool set_access(const struct helperd_settings *settings) {
    if (settings->socket_group != NULL) {
        struct group *group = getgrnam(settings->socket_group);
        if (group == NULL) {
            log_error("socket_group %s: there is no such group", settings->socket_group);
            return false;
        }
        if (chown(settings->socket, (uid_t)-1, group->gr_gid) != 0) {
            log_error(
                "%s: can't give the socket to group %s: %s; the user of retort-helperd must be in "
                "that group, or root",
                settings->socket, settings->socket_group, strerror(errno));
            return false;
        }
    }
    if (chmod(settings->socket, (mode_t)settings->socket_mode) == 0)
        return true;
    log_error("%s: %s", settings->socket, strerror(errno));
    return false;
}

static bool supervisor_open_socket(struct supervisor *supervisor) {
    const struct helperd_settings *settings = supervisor->settings;
    struct sockaddr_un address;
    fill_address(&address, settings->socket);
    if (is_in_use(&address)) {
        log_error("%s is in use: another retort-helperd runs there; stop it or set another socket",
                  settings->socket);
        return false;
    }
    unlink(settings->socket);
    mode_t mask = umask(0177);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
                 listen(fd, BACKLOG) == 0;
    int error = errno;
    umask(mask);
    supervisor->listen_fd = fd;
    if (!bound)
        log_error("socket %s: %s; its directory must be there, and the user of retort-helperd may "
                  "write to it",
                  settings->socket, strerror(error));
    return bound && set_access(settings);
}

static bool listen_again(struct supervisor *supervisor);

static void on_listen_timer(struct timer *timer) {
    struct supervisor *supervisor = CONTAINER_OF(timer, struct supervisor, listen_timer);
    if (!supervisor->stopping)
        listen_again(supervisor);
}

static void supervisor_on_connection(struct event *event, uint32_t events) {
    struct supervisor *supervisor = CONTAINER_OF(event, struct supervisor, listen_event);
    (void)events;
    int fd = accept4(supervisor->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
        /* The connection stays in the backlog. Asking again at once would only cost CPU time. */
        log_warn("can't accept a connection: %s; trying again in %d ms", strerror(errno),
                 LISTEN_PAUSE);
        loop_remove(&supervisor->loop, &supervisor->listen_event);
        loop_timer_after(&supervisor->loop, &supervisor->listen_timer, LISTEN_PAUSE);
    }
    if (fd < 0)
        return;
    if (supervisor->client_count >= supervisor->settings->clients)
        close(fd);
    else
        client_create(supervisor, fd);
}

static bool listen_again(struct supervisor *supervisor) {
    return loop_add(&supervisor->loop, &supervisor->listen_event, supervisor->listen_fd, EPOLLIN,
                    supervisor_on_connection);
}

/* Each client may bring a body as a descriptor, so the soft limit is raised to what the system
 * allows. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* ---- signals ------------------------------------------------------------------------------ */

static uint64_t milliseconds_of(const struct rusage *usage) {
    int64_t microseconds = usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
    return (uint64_t)((usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
                      microseconds / 1000);
}

static void wait_for_children(struct supervisor *supervisor) {
    int status;
    struct rusage usage;
    for (pid_t pid; (pid = wait4(-1, &status, WNOHANG, &usage)) > 0;)
        LIST_FOR_EACH (link, &supervisor->pools) {
            struct worker *worker = pool_find(CONTAINER_OF(link, struct pool, link), pid);
            if (worker == NULL)
                continue;
            worker_exited(worker, status, milliseconds_of(&usage));
            break;
        }
}

static void supervisor_stop(struct supervisor *supervisor) {
    if (supervisor->stopping)
        return;
    log_info("stopping");
    supervisor->stopping = true;
    loop_remove(&supervisor->loop, &supervisor->listen_event);
    timer_cancel(&supervisor->loop.timers, &supervisor->listen_timer);
    unlink(supervisor->settings->socket);
    LIST_FOR_EACH (link, &supervisor->pools)
        pool_retire(CONTAINER_OF(link, struct pool, link));
}

static bool has_pool(const struct helperd_settings *settings, const char *name) {
    for (unsigned i = 0; i < settings->pool_count; i++)
        if (strcmp(settings->pools[i].name, name) == 0)
            return true;
    return false;
}

/* Descriptor 2 becomes the log too, for code that does not know of the log (a C library that gives
 * up, a sanitizer). */
static bool open_log(const char *path) {
    if (path == NULL)
        return true;
    if (!log_open_file(path) || freopen(path, "a", stderr) == NULL) {
        log_error(
            "log %s: %s; its directory must be there, and the user of retort-helperd may write "
            "to it",
            path, strerror(errno));
        return false;
    }
    return true;
}

/* Notes what a reload does not change. */
static void find_leftovers(const struct supervisor *supervisor,
                           const struct helperd_settings *settings, struct findings *left) {
    if (strcmp(settings->socket, supervisor->settings->socket) != 0)
        findings_add(left,
                     "socket stays %s and does not become %s: restart retort-helperd to apply it",
                     supervisor->settings->socket, settings->socket);
    LIST_FOR_EACH (link, &supervisor->pools) {
        const struct pool *pool = CONTAINER_OF(link, struct pool, link);
        if (!has_pool(settings, pool->settings.name))
            findings_add(left,
                         "pool %s stays although the configuration has it no longer: restart "
                         "retort-helperd to end it",
                         pool->settings.name);
    }
    helperd_settings_check(settings, left);
}

bool supervisor_reload(struct supervisor *supervisor, struct findings *left) {
    struct helperd_settings *settings = helperd_settings_read(supervisor->path);
    if (settings == NULL)
        return false;
    open_log(settings->log); /* else messages go on to where they went */
    find_leftovers(supervisor, settings, left);
    for (unsigned i = 0; i < left->count; i++)
        log_warn("not applied: %s", left->text[i]);
    for (unsigned i = 0; i < settings->pool_count; i++) {
        struct pool *pool = supervisor_pool(supervisor, settings->pools[i].name);
        if (pool != NULL)
            pool_reconfigure(pool, &settings->pools[i]);
        else {
            pool = pool_create(&supervisor->loop, &settings->pools[i]);
            list_append(&supervisor->pools, &pool->link);
        }
    }
    supervisor->settings->clients = settings->clients;
    helperd_settings_free(&settings);
    log_info("configuration read again");
    return true;
}

static void supervisor_on_signal(struct event *event, uint32_t events) {
    struct supervisor *supervisor = CONTAINER_OF(event, struct supervisor, signal_event);
    struct signalfd_siginfo info;
    struct findings left = {0};
    (void)events;
    while (read(supervisor->signal_fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            wait_for_children(supervisor);
        else if (info.ssi_signo == SIGHUP) {
            if (!supervisor_reload(supervisor, &left))
                log_error("the configuration is bad: the old one stays");
        } else if (info.ssi_signo == SIGUSR1) {
            if (open_log(supervisor->settings->log))
                log_info("log opened again");
        } else
            supervisor_stop(supervisor);
    }
}

static bool open_signals(struct supervisor *supervisor) {
    sigset_t set;
    signals_take(&set, (const int[]){SIGCHLD, SIGHUP, SIGUSR1, SIGTERM, SIGINT}, 5);
    supervisor->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return supervisor->signal_fd >= 0 &&
           loop_add(&supervisor->loop, &supervisor->signal_event, supervisor->signal_fd, EPOLLIN,
                    supervisor_on_signal);
}

/* ---- life --------------------------------------------------------------------------------- */

bool supervisor_start(struct supervisor *supervisor, const char *path,
                      struct helperd_settings **settingsp) {
    INIT_OBJ(supervisor, SUPERVISOR_MAGIC);
    supervisor->path = path;
    supervisor->settings = *settingsp;
    *settingsp = NULL;
    supervisor->listen_fd = supervisor->signal_fd = -1;
    list_init(&supervisor->pools);
    list_init(&supervisor->clients);
    event_init(&supervisor->listen_event);
    timer_init(&supervisor->listen_timer, on_listen_timer);
    event_init(&supervisor->signal_event);
    if (!loop_init(&supervisor->loop) || !open_signals(supervisor)) {
        log_error("can not start: %s", strerror(errno));
        return false;
    }
    if (!open_log(supervisor->settings->log))
        return false;
    supervisor->started = supervisor->loop.now;
    raise_descriptor_limit();
    if (!supervisor_open_socket(supervisor) || !listen_again(supervisor))
        return false;
    for (unsigned i = 0; i < supervisor->settings->pool_count; i++) {
        struct pool *pool = pool_create(&supervisor->loop, &supervisor->settings->pools[i]);
        list_append(&supervisor->pools, &pool->link);
    }
    log_info("ready at %s", supervisor->settings->socket);
    return true;
}

static bool all_quiet(const struct supervisor *supervisor) {
    LIST_FOR_EACH (link, &supervisor->pools)
        if (!pool_is_quiet(CONTAINER_OF(link, struct pool, link)))
            return false;
    return true;
}

void supervisor_run(struct supervisor *supervisor) {
    CHECK_OBJ(supervisor, SUPERVISOR_MAGIC);
    while (!supervisor->stopping || !all_quiet(supervisor))
        loop_run_once(&supervisor->loop);
}

void supervisor_release(struct supervisor *supervisor) {
    client_close_all(supervisor);
    LIST_FOR_EACH_SAFE (link, next, &supervisor->pools) {
        struct pool *pool = CONTAINER_OF(link, struct pool, link);
        pool_free(&pool);
    }
    if (supervisor->listen_fd >= 0)
        close(supervisor->listen_fd);
    if (supervisor->signal_fd >= 0)
        close(supervisor->signal_fd);
    loop_release(&supervisor->loop);
    helperd_settings_free(&supervisor->settings);
}
