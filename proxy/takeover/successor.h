/*
 * The successor: a new process that this one starts to be taken over by it, as after SIGUSR2. It
 * runs the program that has the name of this one now, with the same arguments and --take-over.
 *
 *     struct successor successor = {.arguments = argv};
 *     successor_start(&successor);                  SIGUSR2
 *     successor_reap(&successor);                   SIGCHLD: says how it ended
 *
 * It gets neither the descriptors of this process nor what the service manager said to this process
 * alone (WATCHDOG_PID).
 *
 * Threads: the main thread.
 */
#ifndef RETORT_TAKEOVER_SUCCESSOR_H
#define RETORT_TAKEOVER_SUCCESSOR_H

#include <sys/types.h>

struct successor {
    char **arguments; /* of main; ends with NULL */
    pid_t pid;        /* 0: none runs that this process started */
};

/* Logs an error when it can't be started. Does nothing while one runs. */
void successor_start(struct successor *successor);
void successor_reap(struct successor *successor);

#endif
