/*
 * The race of a host's addresses: of several, the one that connects first (RFC 8305, happy
 * eyeballs). It belongs to a dial (net/dial.h).
 *
 *     connect_race_init(&race, net, &terms, on_end);
 *     connect_race_add(&race, &query.result, true);        all addresses that there are
 *     connect_race_go(&race);
 *     ... on_end runs, maybe at once ...
 *     race.connection != NULL                               it is the caller's; race.address
 *     race.connection == NULL                               race.error, race.timed_out, race.denied
 *     connect_race_stop(&race);                             any time
 *
 * The addresses are tried in the order of net/address_order.h. When one has not answered after
 * origin.attempt_delay, or has failed, the next one is tried as well; each has terms.patience. The
 * first that connects wins, and the others are closed at once. What was closed may be tried again:
 * connect_race_go after a race that was won goes on with the addresses that have not failed.
 *
 * An address is judged by net/egress.h and terms.permit just before it is dialled.
 *
 * Threads: the loop's thread only.
 */
#ifndef RETORT_NET_CONNECT_RACE_H
#define RETORT_NET_CONNECT_RACE_H

#include "net/address_order.h"
#include "net/connection.h"
#include "net/egress.h"
#include "net/resolver.h"

/* May a connection be made to this address? */
typedef bool dial_permit_fn(void *arg, const struct address *address);

struct connect_race_terms {
    uint16_t port;
    enum egress egress;
    dial_permit_fn *permit; /* NULL: `reach` alone decides */
    void *permit_arg;
    const struct address *from; /* NULL: the system chooses it */
    uint64_t patience;          /* milliseconds, for each address */
};

enum connect_attempt_state { CONNECT_UNTRIED, CONNECT_TRYING, CONNECT_TRIED };

struct connect_attempt {
    enum connect_attempt_state state;
    struct connection *connection; /* owned, in CONNECT_TRYING */
    uint64_t started;              /* milliseconds of the loop's clock */
    struct address address;
};

struct connect_race {
    unsigned magic;
#define CONNECT_RACE_MAGIC 0x4ace4ace
    struct net_context *net;
    struct connect_race_terms terms;
    void (*on_end)(struct connect_race *race);
    struct timer timer;
    bool running;
    bool complete;                 /* no more addresses will come */
    bool tried;                    /* an address could be dialled */
    struct connection *connection; /* of the winner, until the caller takes it */
    struct address address;        /* of the winner, or tried last */
    const char *error;             /* static text */
    bool timed_out, denied;
    unsigned count, trying;
    uint64_t next_at; /* when another address is tried beside those under way */
    struct connect_attempt attempts[ADDRESS_ORDER_MAX];
};

extern const char connect_race_not_permitted[];

/* The terms are copied; what they point to lives as long as the race. */
void connect_race_init(struct connect_race *race, struct net_context *net,
                       const struct connect_race_terms *terms,
                       void (*on_end)(struct connect_race *race));
/* Adds the addresses that it does not have yet. A race that waits for addresses goes on. */
void connect_race_add(struct connect_race *race, const struct resolution *found, bool complete);
void connect_race_go(struct connect_race *race);
/* Changes terms.patience, also of attempts that are under way. */
void connect_race_set_patience(struct connect_race *race, uint64_t patience);
/* Closes what was not taken. */
void connect_race_stop(struct connect_race *race);

#endif
