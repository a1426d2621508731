/*
 * retort-helperd: supervises the helper processes that do the services' slow work.
 */
#include "base/log.h"
#include "base/signals.h"
#include "config.h"
#include "helperd/supervisor.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Noreturn void usage(FILE *to, int status) {
    fprintf(to,
            "usage: retort-helperd [-t] [-d] -f FILE\n"
            "  -f FILE  the configuration\n"
            "  -t       check it and exit\n"
            "  -d       log more\n"
            "  -h, --help; --version\n"
            "Runs in the foreground. SIGTERM: finish and exit. SIGHUP: read FILE again. SIGUSR1:\n"
            "open the log again.\n");
    exit(status);
}

int main(int argc, char **argv) {
    const char *path = NULL;
    bool only_check = false;
    enum log_level level = LOG_LEVEL_INFO;
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "f:tdh", options, NULL)) != -1;) {
        switch (c) {
        case 'f': path = optarg; break;
        case 't': only_check = true; break;
        case 'd': level = LOG_LEVEL_DEBUG; break;
        case 'h': usage(stdout, 0);
        case 'V': puts("retort-helperd " PACKAGE_VERSION); return 0;
        default: usage(stderr, 2);
        }
    }
    signals_ignore_harmless();
    log_open(STDERR_FILENO, "retort-helperd", level);
    if (path == NULL || optind != argc)
        usage(stderr, 2);
    struct helperd_settings *settings = helperd_settings_read(path);
    if (settings == NULL)
        return 1;
    if (only_check) {
        printf("%s is good\n", path);
        helperd_settings_free(&settings);
        return 0;
    }
    struct supervisor supervisor;
    bool started = supervisor_start(&supervisor, path, &settings);
    if (started)
        supervisor_run(&supervisor);
    supervisor_release(&supervisor);
    return started ? 0 : 1;
}
