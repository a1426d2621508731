#include "base/assert.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/reserve.h"
#include "base/signals.h"
#include "base/threads.h"
#include "libraries.h"
#include "net/memory_share.h"
#include "net/notify.h"
#include "part.h"
#include "readiness.h"
#include "reload.h"

#include <getopt.h>
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

static void main_tell_of_missing(const char *option, const char *part) {
    fprintf(stderr,
            "retort: %s: this retort was built without the part %s; build it with configure "
            "--with-parts=all, or with a list that names %s\n",
            option, part, part);
}

/* While the workers drain, a second signal ends them at once. */
struct hurry {
    struct thread thread;
    struct server *server;
    _Atomic bool over; /* nobody waits for the workers any more */
};

static void hurry_on_signal(void *arg) {
    struct hurry *hurry = arg;
    sigset_t signals;
    int number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (sigwait(&signals, &number) == 0 && !atomic_load(&hurry->over))
        server_stop(hurry->server);
}

static void hurry_end(struct hurry *hurry) {
    atomic_store(&hurry->over, true);
    if (hurry->thread.started)
        pthread_kill(hurry->thread.id, SIGTERM);
    thread_join(&hurry->thread);
}

/* Waits for a signal. Meanwhile it gives memory back, which may take milliseconds that workers do not
 * have, and signs of life if the service manager wants some: as long as all workers answer. The signal
 * by which the process ends itself has no effect from others. */
static int main_wait(struct server *server, const sigset_t *signals) {
    enum { STEP = 5000 };
    unsigned interval = notify_watchdog(), step = interval > 0 && interval < STEP ? interval : STEP;
    const struct timespec pause = {
        .tv_sec = step / 1000,
        .tv_nsec = (long)(step % 1000) * 1000000,
    };
    siginfo_t info;
    int number;
    do {
        if (interval > 0 && server_answers(server))
            notify_send("WATCHDOG=1");
        memory_shares_give_back(server->memory);
        number = sigtimedwait(signals, &info, &pause);
    } while (number < 0 || (number == server_end_signal() && info.si_pid != getpid()));
    return number;
}

/* A retort that serves. */
struct running {
    struct server *server;
    const struct part *takeover; /* NULL: this retort neither takes over nor hands over */
    struct reloader *reloader;   /* NULL: it does not serve yet */
    bool takes_over;
};

/* Whoever ends it while it starts has got what he wants: status 0. */
static int main_tell_of_start(const char *error) {
    bool ended = false;
    PARTS_FOR_EACH (number, process.starts_are_abandoned)
        ended |= part_table[number]->process.starts_are_abandoned();
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
        else if (number != SIGUSR2 && number != SIGCHLD)
            return number;
        else if (running->takeover != NULL)
            running->takeover->takeover.take_signal(server, number);
    }
}

/* After a handover the connections have been told already, and the other process speaks to the
 * service manager. The signal alone may be the service manager's, which starts another process then;
 * an order to drain (control.h) is the operator's. A signal that came before the main thread had heard
 * of that order is the second one. Returns false when workers are left behind. */
static bool main_finish(struct running *running, int signal) {
    struct server *server = running->server;
    struct hurry hurry = {.server = server};
    bool ordered = atomic_exchange(&server->draining, true);
    PARTS_FOR_EACH (number, process.abandon_starts)
        part_table[number]->process.abandon_starts();
    thread_start(&hurry.thread, hurry_on_signal, &hurry, "rt-hurry");
    if (running->takeover == NULL || !running->takeover->takeover.is_done(server)) {
        if (ordered)
            server_forget_sockets(server);
        server_drain(server);
    }
    if (ordered && signal != server_end_signal())
        server_stop(server);
    bool all = server_wait(server);
    hurry_end(&hurry);
    return all;
}

/* Also after a start that failed. */
static void main_leave(struct running *running) {
    if (running->takeover != NULL)
        running->takeover->takeover.stop(running->server);
    reloader_stop(&running->reloader);
    PARTS_FOR_EACH_BACK (number, socket.close)
        part_table[number]->socket.close(running->server);
    if (running->takeover != NULL)
        running->takeover->takeover.leave(running->server);
}

/* The last one is that for a takeover. */
static bool open_own_sockets(struct running *running, struct inherited *inherited,
                             char error[SETTINGS_ERROR]) {
    struct server *server = running->server;
    PARTS_FOR_EACH (number, socket.open)
        if (!part_table[number]->socket.open(server, inherited, error))
            return false;
    return running->takeover == NULL || running->takeover->takeover.offer(server, inherited, error);
}

/* Up to takeover.finish another process, if there is one, goes on to serve. */
static bool main_start_with(struct running *running, struct inherited *inherited,
                            char error[SETTINGS_ERROR]) {
    struct server *server = running->server;
    const struct part *part = running->takeover;
    return server_prepare(server, inherited, error) &&
           (part == NULL || part->takeover.may_open(server, error)) &&
           server_open(server, running->takes_over, error) &&
           (part == NULL || part->takeover.may_serve(server, error)) &&
           open_own_sockets(running, inherited, error) && server_run(server, error) &&
           (part == NULL || part->takeover.finish(server, error));
}

/* Returns false with a message when something fails; then another process is not disturbed. */
static bool main_start(struct running *running, char **arguments, char error[SETTINGS_ERROR]) {
    struct server *server = running->server;
    const struct part *part = running->takeover;
    struct inherited *inherited = inherited_new();
    inherited_read_environment(inherited);
    bool started = (part == NULL || part->takeover.begin(server, arguments, running->takes_over,
                                                         inherited, error)) &&
                   main_start_with(running, inherited, error);
    if (started)
        inherited_discard(inherited);
    if (part != NULL)
        part->takeover.started(server, started);
    if (started && running->takes_over) {
        PARTS_FOR_EACH (number, socket.own)
            part_table[number]->socket.own(server);
        inherited_drop(inherited);
    }
    inherited_free(&inherited);
    return started;
}

static int main_run(struct server *server, char **arguments, bool takes_over) {
    const int numbers[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGTERM, SIGINT, server_end_signal()};
    struct running running = {
        .server = server,
        .takes_over = takes_over,
    };
    PARTS_FOR_EACH (number, takeover.begin)
        running.takeover = part_table[number];
    if (takes_over && running.takeover == NULL) {
        main_tell_of_missing("--take-over", "takeover");
        return 1;
    }
    char error[SETTINGS_ERROR];
    sigset_t signals;
    raise_file_limit();
    reserve_open(RESERVE);
    signals_take(&signals, numbers, sizeof numbers / sizeof numbers[0]);
    if (!main_start(&running, arguments, error)) {
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
    bool all = main_finish(&running, signal);
    bool failed = running.takeover != NULL && running.takeover->takeover.has_failed(server);
    int status = failed ? 1 : 0;
    main_leave(&running);
    if (!all)
        server_write_out(server);
    log_info("done");
    if (!all)
        _exit(status);
    return status;
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

static int print_options(const char *form) {
    PARTS_FOR_EACH (number, print_options)
        return part_table[number]->print_options(form) ? 0 : 2;
    main_tell_of_missing("--print-options", "admin");
    return 1;
}

static void main_print_version(void) {
    char built[PART_LIST], missing[PART_LIST];
    version_print("retort", libraries_list());
    printf("parts: %s; left out: %s\n", part_list(true, built), part_list(false, missing));
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"print-options", required_argument, NULL, 'p'},
        {"take-over", no_argument, NULL, 'o'},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct server server = SERVER_AT(CONFIGURATION);
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
        case 'V': main_print_version(); return 0;
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
    bool all = server_release(&server);
    fflush(stdout);
    if (!all)
        _exit(status);
    return status;
}
