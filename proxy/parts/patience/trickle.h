/*
 * A trickle sends the client a little of a body now and then, while a service that must see all of
 * the body has not decided yet. Without it the client could time out.
 *
 *     trickle_start(&trickle, call, settings, url, net);
 *     struct source *body = trickle_body(&trickle);      what has been sent to the service, slowly
 *     ... the verdict: `rest` is the whole body, which must begin with what the client has of it
 *     trickle_go_on(&trickle, &rest);
 *     trickle_cut(&trickle, reason);                     or there is nothing to go on with
 *     trickle_close(&trickle);                           before the call is closed
 *
 * At most half of what has come is given out, so that no client gets the whole of a body that turns
 * out to be infected. Only a hash of what was given out is kept. It is made with a secret
 * (cache/name.h), so that nobody can make two bodies with the same hash.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_PATIENCE_TRICKLE_H
#define RETORT_PATIENCE_TRICKLE_H

#include "adapt/chain.h"

struct trickle {
    unsigned magic;
#define TRICKLE_MAGIC 0x721c41e0u
    struct source source;
    struct adapter_call *call;
    const struct service_settings *settings;
    struct net_context *net;
    struct slice url;                /* for the log */
    struct timer timer;              /* of the next portion */
    size_t portion;                  /* what is left of this one */
    struct spill_file_cursor cursor; /* in what the call keeps */
    uint64_t given;
    uint64_t hash; /* of the bytes given */
    bool decided;  /* there is a verdict */
    bool failed, closed;
    struct source *rest; /* after the verdict; owned; NULL: no body */
    uint64_t compared;   /* bytes of it that have been compared with what was given */
    struct XXH3_state_s *state;
};

void trickle_start(struct trickle *trickle, struct adapter_call *call,
                   const struct service_settings *settings, struct slice url,
                   struct net_context *net);
struct source *trickle_body(struct trickle *trickle);
/* Takes the body over; NULL: it is empty. */
void trickle_go_on(struct trickle *trickle, struct source **rest);
void trickle_cut(struct trickle *trickle, const char *reason);
void trickle_close(struct trickle *trickle);

/* Of chains: chain_trickle.c. */
extern const struct trickle_class trickle_class;

#endif
