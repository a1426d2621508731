/*
 * Signals that would end a process though nobody means it to end.
 *
 *     signals_ignore_harmless();       at the start of main, before threads and children
 *     signals_take(&signals, (const int[]){SIGHUP, SIGTERM}, 2);
 *     sigwait(&signals, &number);
 *
 * SIGUSR1, SIGUSR2, SIGALRM and their like end a process by default. An operator sends them by
 * habit, to a program that knows what to do with them; here they do nothing, unless a program
 * takes one of them for itself afterwards. A child goes on ignoring them (execve(2)), so helpers
 * need no call of their own. Signals that tell of a bug (SIGSEGV, SIGQUIT) stay as they are.
 */
#ifndef RETORT_BASE_SIGNALS_H
#define RETORT_BASE_SIGNALS_H

#include <signal.h>

void signals_ignore_harmless(void);
/* Those that the program waits for, by sigwait(3) or a signalfd: blocked in this thread and in what
 * it starts. Of a helper's process they have to be let through again. */
void signals_take(sigset_t *signals, const int *numbers, unsigned count);

#endif
