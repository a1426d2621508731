#include "adapters.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/reserve.h"
#include "base/signals.h"
#include "control.h"
#include "libraries.h"
#include "readiness.h"
#include "reloader.h"
#include "takeover/notify.h"
#include "takeover/successor.h"
#include "takeover/takeover.h"
#include "transaction/told_removals.h"
#include "upgrade.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* retort: the command line, start-up and signals. */

enum { RESERVE = 16 << 20 };

static void main_usage(FILE *out) {
    fputs("usage: retort [-t|-T|--take-over] [-f FILE]\n"
          "       retort --print-options markdown|man\n"
          "\n"
          "  -f FILE        the configuration, instead of " CONFIGURATION ";\n"
          "                 see retort.conf(5)\n"
          "  -t             check the configuration and the files and addresses in it, and exit\n"
          "  -T             check the configuration only, for another machine, and exit\n"
          "  --take-over    take the place of the retort that runs with this configuration; no\n"
          "                 connection is refused or reset\n"
          "  -V, --version  print the version, and those of the libraries\n"
          "  -h, --help     print this help\n"
          "\n"
          "Runs in the foreground. SIGHUP reads the configuration again, SIGUSR1 opens the logs "
          "again,\n"
          "SIGUSR2 starts the program again to take over, SIGTERM drains and exits.\n",
          out);
}

/* Every connection needs a descriptor, and some need two. */
static void raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* A message may have several lines. */
static void main_tell(const char *message) {
    struct slice rest = slice_from(message), line;
    while (slice_next_line(&rest, &line))
        fprintf(stderr, "retort: %.*s\n", SLICE_PRINT(line));
}

/* While the workers drain, a second signal ends them at once. */
static void *hurry_on_signal(void *arg) {
    struct server *server = arg;
    sigset_t signals;
    int number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (sigwait(&signals, &number) == 0)
        server_stop(server);
    return NULL;
}

/* Waits for a signal, and gives signs of life meanwhile if the service manager wants some: as long
 * as all workers answer. The signal by which the process ends itself has no effect from others. */
static int main_wait(struct server *server, const sigset_t *signals) {
    unsigned interval = notify_watchdog();
    const struct timespec pause = {
        .tv_sec = interval / 1000,
        .tv_nsec = (long)(interval % 1000) * 1000000,
    };
    siginfo_t info;
    int number;
    do {
        if (interval > 0 && server_answers(server))
            notify_send("WATCHDOG=1");
        number = sigtimedwait(signals, &info, interval > 0 ? &pause : NULL);
    } while (number < 0 || (number == server_end_signal() && info.si_pid != getpid()));
    return number;
}

/* A retort that serves. */
struct running {
    struct server *server;
    struct admin *admin;
    struct takeover *takeover; /* of the process before; NULL: there was none */
    struct upgrade upgrade;
    struct handover *handover; /* NULL: nobody can take over */
    struct successor successor;
    struct reloader *reloader; /* NULL: it does not serve yet */
    bool takes_over;
};

/* Whoever ends it while it starts has got what he wants: status 0. */
static int main_tell_of_start(const char *error) {
    bool ended = adapters_starts_are_abandoned();
    if (ended)
        log_info("ended before it served: %s", error);
    else
        main_tell(error);
    return ended ? 0 : 1;
}

/* Returns the signal that ends it. */
static int main_serve(struct running *running, const sigset_t *signals) {
    struct server *server = running->server;
    for (;;) {
        int number = main_wait(server, signals);
        if (number == SIGHUP)
            reloader_ask(running->reloader);
        else if (number == SIGUSR1)
            server_reopen_logs(server);
        else if (number == SIGUSR2 && running->handover != NULL)
            successor_start(&running->successor);
        else if (number == SIGUSR2)
            log_warn("SIGUSR2 has no effect without take_over_socket");
        else if (number == SIGCHLD)
            successor_reap(&running->successor);
        else
            return number;
    }
}

/* After a handover the connections have been told already, and the other process speaks to the
 * service manager. The signal alone may be the service manager's, which starts another process then;
 * an order to drain (control.h) is the operator's. A signal that came before the main thread had heard
 * of that order is the second one. */
static void main_finish(struct running *running, int signal) {
    struct server *server = running->server;
    pthread_t hurry;
    bool ordered = atomic_exchange(&server->draining, true);
    adapters_abandon_starts();
    bool hurrying = pthread_create(&hurry, NULL, hurry_on_signal, server) == 0;
    if (!handover_is_done(running->handover)) {
        if (ordered)
            server_forget_sockets(server);
        server_drain(server);
    }
    if (ordered && signal != server_end_signal())
        server_stop(server);
    server_wait(server);
    if (hurrying) {
        pthread_cancel(hurry);
        pthread_join(hurry, NULL);
    }
}

/* Also after a start that failed. */
static void main_leave(struct running *running) {
    handover_stop(&running->handover);
    reloader_stop(&running->reloader);
    admin_stop(&running->admin);
    takeover_free(&running->takeover);
}

/* Starts the admin plane, and the socket for a takeover. */
static bool start_control(struct running *running, struct inherited *inherited,
                          char error[SETTINGS_ERROR]) {
    struct server *server = running->server;
    const struct settings *settings = server->settings;
    const struct admin_calls calls = control_calls(server);
    int fd = -1;
    if (settings->admin.listen != NULL)
        inherited_take(inherited, &settings->admin.address, &fd, 1);
    running->admin = admin_start(settings, &calls, fd, error);
    if (running->admin == NULL)
        return false;
    running->upgrade = (struct upgrade){server, running->admin};
    const struct handover_calls handover_calls = upgrade_calls(&running->upgrade);
    running->handover = handover_open(&handover_calls, settings, inherited, error);
    return running->handover != NULL || error[0] == '\0';
}

static bool main_may_serve(struct running *running, char error[SETTINGS_ERROR]) {
    int removals = server_hear_removals(running->server);
    bool may = takeover_may_serve(running->takeover, removals, error);
    if (removals >= 0)
        close(removals);
    return may;
}

static void main_look_again(void *context) {
    server_look_again(context);
}

static void hear_older_ones(struct running *running) {
    int fd;
    while (running->takeover != NULL && (fd = takeover_take_removals(running->takeover)) >= 0)
        told_removals_add(running->server->told_removals, fd);
}

/* Up to takeover_finish another process, if there is one, goes on to serve. */
static bool main_start_with(struct running *running, struct inherited *inherited,
                            char error[SETTINGS_ERROR]) {
    struct server *server = running->server;
    struct takeover *takeover = running->takeover;
    return server_prepare(server, inherited, error) &&
           (takeover == NULL || takeover_get_disks(takeover, error)) &&
           server_open(server, takeover != NULL, error) &&
           (takeover == NULL || main_may_serve(running, error)) &&
           start_control(running, inherited, error) && server_run(server, error) &&
           (takeover == NULL || takeover_finish(takeover, main_look_again, server, error));
}

/* Returns false with a message when something fails; then another process is not disturbed. */
static bool main_start(struct running *running, char error[SETTINGS_ERROR]) {
    struct server *server = running->server;
    struct inherited *inherited = inherited_new();
    inherited_read_environment(inherited);
    if (running->takes_over)
        running->takeover = takeover_begin(server->settings, inherited, error);
    bool started = (!running->takes_over || running->takeover != NULL) &&
                   main_start_with(running, inherited, error);
    if (started)
        inherited_discard(inherited);
    hear_older_ones(running);
    if (started && running->takes_over) {
        admin_own_file(running->admin, server->settings);
        inherited_drop(inherited);
    }
    if (started)
        handover_start(running->handover);
    inherited_free(&inherited);
    return started;
}

static int main_run(struct server *server, char **arguments, bool takes_over) {
    const int numbers[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGTERM, SIGINT, server_end_signal()};
    struct running running = {
        .server = server,
        .successor = {.arguments = arguments},
        .takes_over = takes_over,
    };
    char error[SETTINGS_ERROR];
    sigset_t signals;
    raise_file_limit();
    reserve_open(RESERVE);
    json_set_alloc_funcs(xmalloc, free);
    signals_take(&signals, numbers, sizeof numbers / sizeof numbers[0]);
    if (!main_start(&running, error)) {
        int status = main_tell_of_start(error);
        server_stop(server);
        main_leave(&running);
        return status;
    }
    const char *workers = plural(server->worker_count, "worker", "workers");
    log_info("serving with %u %s, pid %d", server->worker_count, workers, (int)getpid());
    notify_send("READY=1\nSTATUS=serves with %u %s", server->worker_count, workers);
    server_keep_sockets(server);
    running.reloader = reloader_start(server);
    int signal = main_serve(&running, &signals);
    main_finish(&running, signal);
    bool nobody = handover_has_failed(running.handover);
    main_leave(&running);
    log_info("done");
    return nobody ? 1 : 0;
}

/* Those of sections begin with their file already. */
static void main_tell_finding(const char *path, const char *text) {
    size_t length = strlen(path);
    bool has_file = strncmp(text, path, length) == 0 && text[length] == ':';
    fprintf(stderr, has_file ? "retort: %s%s\n" : "retort: %s: %s\n", has_file ? "" : path, text);
}

static int main_tell_of_check(const struct server *server, bool alone) {
    struct findings findings = {0};
    if (!alone) {
        readiness_of_start(server->settings, &findings);
        readiness_of_files(server->settings, &findings);
        readiness_of_services(server->settings, &findings);
        if (findings.count == 0) /* what has to be changed first is not hidden among them */
            readiness_warn(server->settings);
    }
    for (unsigned i = 0; i < findings.count; i++)
        main_tell_finding(server->path, findings.text[i]);
    if (findings.more > 0)
        fprintf(stderr, "retort: %s: and %u more\n", server->path, findings.more);
    if (findings.count > 0)
        return 1;
    printf("%s: the configuration is good\n", server->path);
    return 0;
}

static int print_options(const char *format) {
    if (strcmp(format, "markdown") == 0)
        settings_print_markdown(stdout);
    else if (strcmp(format, "man") == 0)
        settings_print_man(stdout);
    else
        return 2;
    return 0;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"print-options", required_argument, NULL, 'p'},
        {"take-over", no_argument, NULL, 'o'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct server server = {.path = CONFIGURATION,
                            .changing = PTHREAD_MUTEX_INITIALIZER,
                            .lock = PTHREAD_MUTEX_INITIALIZER};
    char error[SETTINGS_ERROR];
    bool check = false, alone = false, takes_over = false;
    int option;
    while ((option = getopt_long(argc, argv, "f:tThV", options, NULL)) != -1) {
        switch (option) {
        case 'f': server.path = optarg; break;
        case 't': check = true; break;
        case 'T': check = alone = true; break;
        case 'o': takes_over = true; break;
        case 'p': return print_options(optarg);
        case 'V': version_print("retort", libraries_list()); return 0;
        case 'h': main_usage(stdout); return 0;
        default: main_usage(stderr); return 2;
        }
    }
    if (optind < argc) {
        main_usage(stderr);
        return 2;
    }
    signals_ignore_harmless();
    log_open(STDERR_FILENO, "retort", LOG_LEVEL_INFO);
    enum settings_purpose purpose = alone   ? SETTINGS_FOR_ELSEWHERE
                                    : check ? SETTINGS_TO_CHECK
                                            : SETTINGS_TO_USE;
    server.settings = settings_load_for(purpose, server.path, error);
    if (server.settings == NULL) {
        main_tell(error);
        return 1;
    }
    int status = 0;
    if (check)
        status = main_tell_of_check(&server, alone);
    else
        status = main_run(&server, argv, takes_over);
    server_release(&server);
    return status;
}
