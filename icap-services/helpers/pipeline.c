#include "helpers/pipeline.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int null_fd = -1;

bool pipeline_prepare(void) {
    if (null_fd < 0)
        null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return null_fd >= 0;
}

static int pipeline_start(char *const *program, int input, int output, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, null_fd, STDERR_FILENO);
    int error = posix_spawnp(pid, program[0], &actions, NULL, program, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void close_unless(int fd, int keep) {
    if (fd >= 0 && fd != keep)
        close(fd);
}

static bool pipeline_wait_for(pid_t pid, const char *name, char *error, size_t error_size) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (error[0] == 0)
        snprintf(error, error_size, "%s ended with %s %d", name,
                 WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return false;
}

bool pipeline_run(char *const *const *programs, int input, int output, char *error,
                  size_t error_size) {
    pid_t pids[PIPELINE_MAX];
    int count = 0, from = input;
    bool good = true;
    error[0] = 0;
    if (!pipeline_prepare()) {
        snprintf(error, error_size, "/dev/null: %s", strerror(errno));
        return false;
    }
    for (; good && programs[count] != NULL && count < PIPELINE_MAX;) {
        int ends[2] = {-1, output};
        if (programs[count + 1] != NULL && pipe2(ends, O_CLOEXEC) != 0) {
            snprintf(error, error_size, "pipe: %s", strerror(errno));
            good = false;
            break;
        }
        int failure = pipeline_start(programs[count], from, ends[1], &pids[count]);
        close_unless(from, input);
        close_unless(ends[1], output);
        from = ends[0];
        if (failure != 0) {
            snprintf(error, error_size, "cannot run %s: %s; is netpbm installed?",
                     programs[count][0], strerror(failure));
            good = false;
        } else
            count++;
    }
    close_unless(from, input);
    for (int i = 0; i < count; i++)
        good &= pipeline_wait_for(pids[i], programs[i][0], error, error_size);
    return good;
}
