/*
 * What passes an ICAP service unadapted: how much of it there is, since when, and that the log says
 * so: with the first message, and then each minute, with their number, for as long as there are
 * more.
 *
 *     struct icap_unadapted *unadapted = icap_unadapted_new("gray");           for all workers
 *     struct icap_teller teller;
 *     icap_teller_init(&teller, unadapted, loop);                                   one each
 *     icap_teller_note(&teller, "it closed the connection");
 *     icap_teller_release(&teller);
 *
 * The worker that has the first message has the timer; whatever it has not told yet when it goes is
 * told then.
 *
 * Threads: icap_unadapted any, without a lock but to tell; a teller is its worker's. Ownership of
 * icap_unadapted: references.
 */
#ifndef RETORT_ICAP_UNADAPTED_H
#define RETORT_ICAP_UNADAPTED_H

#include "event/loop.h"

#include <stdatomic.h>

enum { ICAP_UNADAPTED_TELL = 60000, ICAP_UNADAPTED_REASON = 200 };

struct icap_unadapted {
    unsigned magic;
#define ICAP_UNADAPTED_MAGIC 0x1ca90adau
    _Atomic unsigned references;
    char *service;
    _Atomic uint64_t count;  /* since the start */
    _Atomic uint64_t before; /* `since` */
    _Atomic int64_t since;   /* seconds since 1970; 0: nothing passes unadapted now */
    _Atomic bool told_of;    /* some teller has the timer */
};

struct icap_unadapted *icap_unadapted_new(const char *service);
struct icap_unadapted *icap_unadapted_reference(struct icap_unadapted *unadapted);
void icap_unadapted_release(struct icap_unadapted **unadaptedp);

/* Since `since`. */
static inline uint64_t icap_unadapted_count(const struct icap_unadapted *unadapted) {
    return atomic_load(&unadapted->count) - atomic_load(&unadapted->before);
}

struct icap_teller {
    struct icap_unadapted *unadapted; /* referenced */
    struct loop *loop;
    struct timer timer;
    bool telling;
    uint64_t told;                      /* of `count` */
    char reason[ICAP_UNADAPTED_REASON]; /* of the latest here */
};

void icap_teller_init(struct icap_teller *teller, struct icap_unadapted *unadapted,
                      struct loop *loop);
/* One more message has passed unadapted, for that reason. */
void icap_teller_note(struct icap_teller *teller, const char *reason);
void icap_teller_release(struct icap_teller *teller);

#endif
