/*
 * retort-helperd: supervises the helper processes that do the services' slow work.
 */
#include "base/log.h"
#include "base/signals.h"
#include "base/version.h"
#include "helperd/supervisor.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Noreturn void helperd_usage(FILE *to, int status) {
    fprintf(to,
            "usage: retort-helperd [-t|-T] [-d] [-f FILE]\n"
            "  -f FILE        the configuration, instead of " CONFIGURATION "\n"
            "  -t             check it and what it names on this machine, and exit\n"
            "  -T             check it alone, for another machine, and exit\n"
            "  -d             log more\n"
            "  -h, --help     print this\n"
            "  -V, --version  print the version\n"
            "Runs in the foreground. SIGTERM: finish and exit. SIGHUP: read FILE again. SIGUSR1:\n"
            "open the log again.\n");
    exit(status);
}

static int helperd_tell_of_check(const char *path, const struct helperd_settings *settings,
                                 bool alone) {
    struct findings findings = {0};
    if (!alone)
        helperd_settings_check(settings, &findings);
    for (unsigned i = 0; i < findings.count; i++)
        log_error("%s: %s", path, findings.text[i]);
    if (findings.count > 0)
        return 1;
    printf("%s is good\n", path);
    return 0;
}

int main(int argc, char **argv) {
    const char *path = CONFIGURATION;
    bool only_check = false, alone = false;
    enum log_level level = LOG_LEVEL_INFO;
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {"print-manual", no_argument, NULL, 'M'},
                                            {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "f:tTdhV", options, NULL)) != -1;) {
        switch (c) {
        case 'f': path = optarg; break;
        case 't': only_check = true; break;
        case 'T': only_check = alone = true; break;
        case 'd': level = LOG_LEVEL_DEBUG; break;
        case 'h': helperd_usage(stdout, 0);
        case 'M': helperd_settings_print_manual(stdout); return 0;
        case 'V': version_print("retort-helperd", NULL); return 0;
        default: helperd_usage(stderr, 2);
        }
    }
    signals_ignore_harmless();
    log_open(STDERR_FILENO, "retort-helperd", level);
    if (optind != argc)
        helperd_usage(stderr, 2);
    struct helperd_settings *settings = helperd_settings_read(path);
    if (settings == NULL)
        return 1;
    if (only_check) {
        int status = helperd_tell_of_check(path, settings, alone);
        helperd_settings_free(&settings);
        return status;
    }
    struct supervisor supervisor;
    bool started = supervisor_start(&supervisor, path, &settings);
    if (started)
        supervisor_run(&supervisor);
    supervisor_release(&supervisor);
    return started ? 0 : 1;
}
