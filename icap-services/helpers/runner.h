/*
 * The runner is a process beside the helper that runs the programs of recipes. So the helper
 * itself, which reads pictures from strangers, can give up starting programs and opening files.
 *
 *     runner_start(&runner, &book, SANDBOX_PROGRAMS);     before sandbox_enter
 *     if (!runner_run(&runner, recipe, input, output, error, sizeof error)) ...
 *     runner_stop(&runner);
 *
 * The runner and its programs have a sandbox of their own. The runner ends with the helper.
 * runner_run blocks until the programs have ended. Threads: one.
 */
#ifndef RETORT_HELPERS_RUNNER_H
#define RETORT_HELPERS_RUNNER_H

#include "helpers/recipe.h"
#include "helpers/sandbox.h"

#include <sys/types.h>

struct runner {
    const struct recipe_book *book;
    int fd;
    pid_t pid;
};

/* False with errno when no process can be started. */
bool runner_start(struct runner *runner, const struct recipe_book *book, enum sandbox_kind sandbox);
bool runner_run(struct runner *runner, const struct recipe *recipe, int input, int output,
                char *error, size_t error_size);
void runner_stop(struct runner *runner);

#endif
