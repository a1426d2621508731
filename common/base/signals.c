#include "base/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static void do_nothing(int number) {
    (void)number;
}

void signals_ignore_harmless(void) {
    /* SIGXFSZ: a write beyond the limit of a file's size fails; the writer handles that error. */
    static const int harmless[] = {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM,   SIGVTALRM,
                                   SIGPROF, SIGIO,   SIGPWR,  SIGSTKFLT, SIGXFSZ};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        signal(harmless[i], SIG_IGN);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
}

/* An ignored signal would not reach sigwait, so each signal gets a handler that does nothing. */
void signals_take(sigset_t *signals, const int *numbers, unsigned count) {
    sigemptyset(signals);
    for (unsigned i = 0; i < count; i++) {
        sigaddset(signals, numbers[i]);
        signal(numbers[i], do_nothing);
    }
    pthread_sigmask(SIG_BLOCK, signals, NULL);
}
