#include "base/reserve.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

enum { PIECES_MOST = 64 };

static struct {
    pthread_mutex_t lock;
    void *pieces[PIECES_MOST];
    unsigned count;
    _Atomic unsigned left;
    _Atomic bool noticed;
} the_reserve = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Nobody writes to the piece, so the system gives it no pages of memory. */
static void *map_piece(void) {
    void *at =
        mmap(NULL, RESERVE_PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void reserve_open(size_t bytes) {
    size_t count = bytes / RESERVE_PIECE;
    the_reserve.count = count < PIECES_MOST ? (unsigned)count : PIECES_MOST;
    reserve_refill();
}

static bool give_piece(void) {
    void *piece = NULL;
    pthread_mutex_lock(&the_reserve.lock);
    if (the_reserve.left > 0)
        piece = the_reserve.pieces[--the_reserve.left];
    pthread_mutex_unlock(&the_reserve.lock);
    if (piece != NULL)
        munmap(piece, RESERVE_PIECE);
    return piece != NULL;
}

void reserve_spend(size_t wanted) {
    static _Thread_local unsigned waited;
    struct timespec moment = {.tv_nsec = 1000000};
    reserve_note();
    if (give_piece()) {
        waited = 0;
        return;
    }
    if (the_reserve.count == 0 || waited++ > RESERVE_PATIENCE) {
        fprintf(stderr,
                "retort: out of memory allocating %zu bytes: give the process more, or "
                "lower cache.memory\n",
                wanted);
        abort();
    }
    nanosleep(&moment, NULL);
}

void reserve_note(void) {
    atomic_store_explicit(&the_reserve.noticed, true, memory_order_relaxed);
}

bool reserve_is_low(void) {
    return atomic_load_explicit(&the_reserve.left, memory_order_relaxed) < the_reserve.count / 2;
}

bool reserve_take_notice(void) {
    return atomic_load_explicit(&the_reserve.noticed, memory_order_relaxed) &&
           atomic_exchange_explicit(&the_reserve.noticed, false, memory_order_relaxed);
}

void reserve_refill(void) {
    pthread_mutex_lock(&the_reserve.lock);
    while (the_reserve.left < the_reserve.count) {
        void *piece = map_piece();
        if (piece == NULL)
            break;
        the_reserve.pieces[the_reserve.left++] = piece;
    }
    pthread_mutex_unlock(&the_reserve.lock);
}
