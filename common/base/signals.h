/*
 * Signals: ignores those that would end a process although nobody wants it to end, and blocks those
 * that a program waits for.
 *
 *     signals_ignore_harmless();       at the start of main, before threads and children
 *     signals_take(&signals, (const int[]){SIGHUP, SIGTERM}, 2);
 *     sigwait(&signals, &number);
 *
 * SIGUSR1, SIGUSR2, SIGALRM and similar signals end a process by default. An operator may send them
 * by habit, because other programs use them. Here they do nothing, unless the program takes one of
 * them afterwards with signals_take. A child process ignores them too (execve(2)), so helpers need
 * no call of their own. Signals that report a bug (SIGSEGV, SIGQUIT) keep their effect.
 */
#ifndef RETORT_BASE_SIGNALS_H
#define RETORT_BASE_SIGNALS_H

#include <signal.h>

void signals_ignore_harmless(void);
/* Blocks the signals that the program waits for with sigwait(3) or a signalfd, and stores them in
 * *signals. They are blocked in this thread and in the threads and processes that it starts. The
 * process of a helper has to unblock them. */
void signals_take(sigset_t *signals, const int *numbers, unsigned count);

#endif
