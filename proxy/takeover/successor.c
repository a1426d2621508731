#include "takeover/successor.h"

#include "base/assert.h"
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char take_over[] = "--take-over";

static size_t successor_count(char **list) {
    size_t count = 0;
    while (list[count] != NULL)
        count++;
    return count;
}

/* The caller frees the array. */
static char **arguments_for(char **own) {
    size_t count = successor_count(own);
    bool there = false;
    char **arguments = xcalloc(count + 2, sizeof *arguments);
    for (size_t i = 0; i < count; i++) {
        arguments[i] = own[i];
        there = there || strcmp(own[i], take_over) == 0;
    }
    if (!there)
        arguments[count] = take_over;
    return arguments;
}

static char **environment_for(void) {
    static const char own[] = "WATCHDOG_PID=";
    char **environment = xcalloc(successor_count(environ) + 1, sizeof *environment);
    size_t count = 0;
    for (char **entry = environ; *entry != NULL; entry++)
        if (strncmp(*entry, own, sizeof own - 1) != 0)
            environment[count++] = *entry;
    return environment;
}

void successor_start(struct successor *successor) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    if (successor->pid != 0) {
        log_warn("process %d is about to take over already: SIGUSR2 has no effect",
                 (int)successor->pid);
        return;
    }
    char **arguments = arguments_for(successor->arguments), **environment = environment_for();
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    /* It asks for the sockets. Libraries leave descriptors open that it must not hold. */
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    int error =
        posix_spawnp(&successor->pid, arguments[0], &actions, &attributes, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(arguments);
    free(environment);
    if (error == 0) {
        log_info("process %d is started to take over", (int)successor->pid);
        return;
    }
    successor->pid = 0;
    log_error("cannot start %s to take over: %s; this process goes on", successor->arguments[0],
              strerror(error));
}

void successor_reap(struct successor *successor) {
    int status;
    if (successor->pid == 0 || waitpid(successor->pid, &status, WNOHANG) != successor->pid)
        return;
    if (WIFEXITED(status))
        log_error("process %d ended with status %d instead of taking over: its messages say why",
                  (int)successor->pid, WEXITSTATUS(status));
    else
        log_error("process %d was ended by signal %d before it took over", (int)successor->pid,
                  WTERMSIG(status));
    successor->pid = 0;
}
