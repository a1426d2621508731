#include "base/assert.h"
#include "base/log.h"
#include "base/reserve.h"
#include "base/signals.h"
#include "control.h"
#include "libraries.h"
#include "notify.h"
#include "readiness.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* retort: the command line, start-up and signals. */

enum { RESERVE = 16 << 20 };

static void main_usage(FILE *out) {
    fputs("usage: retort [-t|-T] [-f FILE]\n"
          "       retort --print-options markdown|man\n"
          "\n"
          "  -f FILE        the configuration, instead of " CONFIGURATION ";\n"
          "                 see retort.conf(5)\n"
          "  -t             check the configuration and the files and addresses in it, and exit\n"
          "  -T             check the configuration only, for another machine, and exit\n"
          "  -V, --version  print the version, and those of the libraries\n"
          "  -h, --help     print this help\n"
          "\n"
          "Runs in the foreground. SIGHUP reads the configuration again, SIGUSR1 opens the logs "
          "again,\n"
          "SIGTERM drains and exits.\n",
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
 * as all workers answer. */
static int main_wait(struct server *server, const sigset_t *signals) {
    unsigned interval = notify_watchdog();
    const struct timespec pause = {
        .tv_sec = interval / 1000,
        .tv_nsec = (long)(interval % 1000) * 1000000,
    };
    int number;
    do {
        if (interval > 0 && server_answers(server))
            notify_send("WATCHDOG=1");
        number = sigtimedwait(signals, NULL, interval > 0 ? &pause : NULL);
    } while (number < 0);
    return number;
}

static void main_serve(struct server *server, const sigset_t *signals) {
    char error[SETTINGS_ERROR];
    for (;;) {
        struct findings left = {0};
        int number = main_wait(server, signals);
        if (number == SIGHUP)
            server_reload(server, error, &left);
        else if (number == SIGUSR1)
            server_reopen_logs(server);
        else
            return;
    }
}

static void main_finish(struct server *server, struct admin **adminp) {
    pthread_t hurry;
    notify_send("STOPPING=1\nSTATUS=finishes what is under way");
    bool hurrying = pthread_create(&hurry, NULL, hurry_on_signal, server) == 0;
    server_drain(server);
    server_wait(server);
    if (hurrying) {
        pthread_cancel(hurry);
        pthread_join(hurry, NULL);
    }
    admin_stop(adminp);
}

/* Starts the server and the admin plane. Returns NULL and a message when that fails. */
static struct admin *main_start(struct server *server, char error[SETTINGS_ERROR]) {
    if (!server_start(server, error))
        return NULL;
    const struct admin_calls calls = control_calls(server);
    return admin_start(server->settings, &calls, error);
}

static int main_run(struct server *server) {
    char error[SETTINGS_ERROR];
    sigset_t signals;
    raise_file_limit();
    reserve_open(RESERVE);
    json_set_alloc_funcs(xmalloc, free);
    signals_take(&signals, (const int[]){SIGHUP, SIGUSR1, SIGTERM, SIGINT}, 4);
    struct admin *admin = main_start(server, error);
    if (admin == NULL) {
        main_tell(error);
        server_stop(server);
        return 1;
    }
    log_info("serving with %u workers, pid %d", server->worker_count, (int)getpid());
    notify_send("READY=1\nSTATUS=serves with %u workers", server->worker_count);
    main_serve(server, &signals);
    main_finish(server, &admin);
    log_info("done");
    return 0;
}

static int main_tell_of_check(const struct server *server, bool alone) {
    struct findings findings = {0};
    if (!alone) {
        readiness_of_start(server->settings, &findings);
        readiness_of_files(server->settings, &findings);
        readiness_warn(server->settings);
    }
    for (unsigned i = 0; i < findings.count; i++)
        fprintf(stderr, "retort: %s: %s\n", server->path, findings.text[i]);
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
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct server server = {.path = CONFIGURATION, .lock = PTHREAD_MUTEX_INITIALIZER};
    char error[SETTINGS_ERROR];
    bool check = false, alone = false;
    int option;
    while ((option = getopt_long(argc, argv, "f:tThV", options, NULL)) != -1) {
        switch (option) {
        case 'f': server.path = optarg; break;
        case 't': check = true; break;
        case 'T': check = alone = true; break;
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
    server.settings =
        alone ? settings_load_alone(server.path, error) : settings_load(server.path, error);
    if (server.settings == NULL) {
        main_tell(error);
        return 1;
    }
    int status = 0;
    if (check)
        status = main_tell_of_check(&server, alone);
    else
        status = main_run(&server);
    server_release(&server);
    return status;
}
