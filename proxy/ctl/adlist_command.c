#include "ctl/adlist_command.h"

#include "base/assert.h"

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

/* The words for retort-adlist, which gets --json as an option. The caller frees the list. */
static char **adlist_command_words(const struct command_line *line) {
    static char json[] = "--json", end_of_options[] = "--";
    char **words = xcalloc((size_t)line->argc + 3, sizeof *words), **to = words;
    for (char **word = line->argv; *word != NULL; word++) {
        if (word == line->words)
            *to++ = end_of_options;
        *to++ = *word;
        if (word == line->argv && line->json)
            *to++ = json;
    }
    return words;
}

int adlist_command(const struct command_line *line) {
    char path[PATH_MAX], **words = adlist_command_words(line);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof built);
    if (length > 0) {
        path[length] = 0;
        char *slash = strrchr(path, '/');
        if (slash != NULL) {
            strcpy(slash, built);
            execv(path, words);
        }
    }
    execv(installed, words);
    free(words);
    return adlist_command_failed(installed);
}
