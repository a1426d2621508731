/*
 * A pace: how fast the bytes of one message may flow, and how many there may be. A protocol asks it before it sends bytes
 * of a reply or reads bytes of a request's body, and a tunnel for both ways. Who limits clients gives an exchange its
 * paces (exchange.paces); most have none.
 *
 *     struct pace *pace = exchange->paces[PACE_DOWN];      NULL: as fast as it goes
 *     pace->on_ready = http1_reply_sender_on_pace, pace->arg = exchange;
 *     size_t now = pace_ask(pace, wanted);                 0: on_ready is called when it is time
 *     pace_used(pace, written);                            at most `now`
 *
 * Threads: the loop's. Units: bytes.
 */
#ifndef RETORT_CLIENT_PACE_H
#define RETORT_CLIENT_PACE_H

#include <stddef.h>
#include <stdint.h>

/* Ways of bytes: to the client, and from it. */
enum pace_way { PACE_DOWN, PACE_UP, PACE_WAYS };

struct pace;

struct pace_class {
    size_t (*ask)(struct pace *pace, size_t wanted);
    void (*used)(struct pace *pace, size_t bytes);
    void (*end)(struct pace *pace);
};

struct pace {
    const struct pace_class *class;
    uint64_t most;               /* bytes of the body; 0: any number */
    void (*on_ready)(void *arg); /* bytes may flow again */
    void *arg;
};

/* How many of the wanted bytes may flow now. */
static inline size_t pace_ask(struct pace *pace, size_t wanted) {
    return pace->class->ask(pace, wanted);
}
static inline void pace_used(struct pace *pace, size_t bytes) {
    pace->class->used(pace, bytes);
}
/* Gives back what was reserved; on_ready is not called any more. It may be called again. */
static inline void pace_end(struct pace *pace) {
    pace->class->end(pace);
}

#endif
