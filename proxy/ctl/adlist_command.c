#include "ctl/adlist_command.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char installed[] = HELPER_DIR "/retort-adlist";
/* The path in a build tree, relative to the folder of retortctl. */
static const char built[] = "/../icap-services/retort-adlist";

static int adlist_command_failed(const char *path) {
    fprintf(stderr, "retortctl: %s: %s; it is installed with Retort's services\n", path,
            strerror(errno));
    return EXIT_FAILURE;
}

int adlist_command(char **argv) {
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof built);
    if (length > 0) {
        path[length] = 0;
        char *slash = strrchr(path, '/');
        if (slash != NULL) {
            strcpy(slash, built);
            execv(path, argv);
        }
    }
    execv(installed, argv);
    return adlist_command_failed(installed);
}
