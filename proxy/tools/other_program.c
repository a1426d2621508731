#include "tools/other_program.h"

#include "base/assert.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct other_program {
    const char *command;      /* its name, or the first word */
    const char *name, *built; /* in the folder of retortctl, in a build tree */
    const char *with;         /* what it is installed with */
} programs[] = {
    {"adlist", "retort-adlist", "../icap-services/retort-adlist", "Retort's services"},
    {"icap replay", "retort-icap-replay", "retort-icap-replay", "retortctl"},
    {"logs top", "retort-logs", "retort-logs", "retortctl"},
};

static const struct other_program *program_of(const struct command_line *line) {
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (strcmp(programs[i].command, line->command->name) == 0 ||
            strcmp(programs[i].command, line->argv[0]) == 0)
            return &programs[i];
    return NULL;
}

bool other_program_has(const struct command_line *line) {
    return program_of(line) != NULL;
}

/* The words for the program, which gets --json as an option. The caller frees the list. */
static char **program_words(const struct other_program *program, const struct command_line *line) {
    static char json[] = "--json", end_of_options[] = "--";
    char **words = xcalloc((size_t)line->argc + 4, sizeof *words), **to = words;
    *to++ = (char *)(uintptr_t)program->name;
    if (line->json)
        *to++ = json;
    for (char **word = line->argv + 1 + (strchr(program->command, ' ') != NULL); *word != NULL;
         word++) {
        if (word == line->words)
            *to++ = end_of_options;
        *to++ = *word;
    }
    return words;
}

int other_program_run(const struct command_line *line) {
    const struct other_program *program = program_of(line);
    char path[PATH_MAX], **words = program_words(program, line);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *slash = length > 0 ? memrchr(path, '/', (size_t)length) : NULL;
    if (slash != NULL) {
        snprintf(slash + 1, (size_t)(path + sizeof path - slash - 1), "%s", program->built);
        execv(path, words);
    }
    snprintf(path, sizeof path, HELPER_DIR "/%s", program->name);
    execv(path, words);
    free(words);
    fprintf(stderr, "retortctl: %s: %s; it is installed with %s\n", path, strerror(errno),
            program->with);
    return EXIT_FAILURE;
}
