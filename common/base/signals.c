#include "base/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static void do_nothing(int number) {
    (void)number;
}

void signals_ignore_harmless(void) {
    /* SIGXFSZ: a file that may grow no further fails to be written, which is seen where that
     * happens. */
    static const int harmless[] = {SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM,   SIGVTALRM,
                                   SIGPROF, SIGIO,   SIGPWR,  SIGSTKFLT, SIGXFSZ};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        signal(harmless[i], SIG_IGN);
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
}

/* One that is ignored would not even be kept for who waits. */
void signals_take(sigset_t *signals, const int *numbers, unsigned count) {
    sigemptyset(signals);
    for (unsigned i = 0; i < count; i++) {
        sigaddset(signals, numbers[i]);
        signal(numbers[i], do_nothing);
    }
    pthread_sigmask(SIG_BLOCK, signals, NULL);
}
