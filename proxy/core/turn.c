#include "turn.h"

#include "base/clocks.h"

#include <stdio.h>

/* Under the lock. */
static void turn_begin(struct turn *turn, const char *what) {
    turn->what = what;
    turn->since = clocks_milliseconds(CLOCK_MONOTONIC);
}

bool turn_take(struct turn *turn, const char *what, char reason[TURN_REASON]) {
    pthread_mutex_lock(&turn->lock);
    bool taken = turn->what == NULL;
    if (taken)
        turn_begin(turn, what);
    else
        snprintf(reason, TURN_REASON,
                 "nothing was changed: %s has been under way for %.1f s; repeat this when it is "
                 "over, as retortctl status shows",
                 turn->what, (double)(clocks_milliseconds(CLOCK_MONOTONIC) - turn->since) / 1000);
    pthread_mutex_unlock(&turn->lock);
    return taken;
}

void turn_await(struct turn *turn, const char *what) {
    pthread_mutex_lock(&turn->lock);
    while (turn->what != NULL)
        pthread_cond_wait(&turn->ended, &turn->lock);
    turn_begin(turn, what);
    pthread_mutex_unlock(&turn->lock);
}

void turn_end(struct turn *turn) {
    pthread_mutex_lock(&turn->lock);
    turn->what = NULL;
    pthread_cond_signal(&turn->ended);
    pthread_mutex_unlock(&turn->lock);
}

const char *turn_under_way(struct turn *turn, uint64_t *milliseconds) {
    pthread_mutex_lock(&turn->lock);
    const char *what = turn->what;
    *milliseconds = what == NULL ? 0 : clocks_milliseconds(CLOCK_MONOTONIC) - turn->since;
    pthread_mutex_unlock(&turn->lock);
    return what;
}
