/*
 * What services behind the cache make of a stored response, remembered beside it: a variant, which
 * goes to every client whose request passes the same services, until the tag of one of them changes
 * (adapt/mark.h). Then it is made again, from what is stored.
 *
 *     if (remembered_begin(transaction))                             LOOKUP
 *         transaction->object = remembered_look_up(transaction);
 *     ... VARIANT: makes the variant, if there is none ...
 *     object = transaction_shown(transaction);                       DELIVER
 *     remembered_settle(transaction);      until all is stored, or will not be
 *     remembered_end(transaction->remembered);
 *
 * The stored response stays transaction->object: it says how fresh the variant is, and is asked
 * about at the origin. Of several requests for a variant one has it made, and others wait.
 *
 * Threads: the worker's. Memory: the transaction's arena.
 */
#ifndef RETORT_TRANSACTION_REMEMBERED_H
#define RETORT_TRANSACTION_REMEMBERED_H

#include "adapt/mark.h"
#include "cache/flight.h"
#include "cache/store.h"
#include "transaction/late.h"

enum remembered_state {
    REMEMBERED_NOTHING,
    REMEMBERED_FOLLOWS, /* another one's making of it */
    REMEMBERED_ASKS,    /* the services */
    REMEMBERED_KEEPS,   /* waits for what will be stored */
    REMEMBERED_OVER,
};

struct remembered {
    enum remembered_state state;
    struct icap_service *services[ADAPT_CHAIN_MAX]; /* that may want it, whatever it is */
    unsigned count;
    uint32_t chain;      /* these services; see struct object_making */
    struct object *made; /* the variant; referenced */
    bool only;           /* transaction->object is the variant, there is nothing else */
    bool old;            /* there was one, under other tags */
    bool applied;        /* the response has been through the services */
    bool others;         /* services may want it that are not remembered */
    struct adapt_mark mark;
    struct cache_moment since;
    struct late *late; /* NULL: nobody was asked */
    bool keep;         /* what is made may be stored */
    struct object *of; /* what it is made of; referenced */
    struct flight *flight;
    bool leads;
    struct waiter *waiter; /* while it follows */
    unsigned rounds;
};

/* False: no service that is remembered may want the response. */
bool remembered_begin(struct transaction *transaction);
struct object *remembered_look_up(struct transaction *transaction);
/* What was found has been replaced, or is no more good. */
void remembered_forget(struct remembered *remembered);
/* Is it one of the services that are remembered? */
bool remembered_includes(const struct remembered *remembered, const struct icap_service *service);
/* Takes the services that have seen the response out of those that are to see it. */
unsigned remembered_leave_out(const struct remembered *remembered, struct icap_service **chosen,
                              unsigned count);
void remembered_settle(struct transaction *transaction);
/* What will be stored is made without the client, all else ends. */
void remembered_let_client_go(struct transaction *transaction);
bool remembered_is_at_work(const struct remembered *remembered);
/* Ends what is under way; those who wait for it ask for themselves. Harmless when repeated. */
void remembered_end(struct transaction *transaction);

#endif
