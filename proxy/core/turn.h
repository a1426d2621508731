/*
 * A turn: one change at a time. Who comes second is refused at once, and told what is under way.
 *
 *     struct turn turn = TURN_FREE;
 *     if (!turn_take(&turn, "a change of options", reason)) ... reason says who has it ...
 *     ... the change ...
 *     turn_end(&turn);
 *
 * Threads: any. `what` is a constant, with words that fit before "has been under way".
 */
#ifndef RETORT_TURN_H
#define RETORT_TURN_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { TURN_REASON = 300 };

struct turn {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    const char *what; /* NULL: nobody has it */
    uint64_t since;   /* milliseconds of the monotonic clock */
};

#define TURN_FREE                                                                                  \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0 }

/* False: somebody else has it. */
bool turn_take(struct turn *turn, const char *what, char reason[TURN_REASON]);
/* Waits until nobody else has it. */
void turn_await(struct turn *turn, const char *what);
void turn_end(struct turn *turn);
/* What is under way, and for how many milliseconds. NULL: nothing. */
const char *turn_under_way(struct turn *turn, uint64_t *milliseconds);

#endif
