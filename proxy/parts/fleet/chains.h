/*
 * What has been read of the events of each node (event.h), and whether something is missing.
 *
 *     struct fleet_chains chains;
 *     fleet_chains_init(&chains);
 *     switch (fleet_chains_take(&chains, &event, &digest)) ...
 *
 * The stream of an engine can lose entries in its middle and at its beginning without saying so: when it is trimmed or emptied,
 * and when an engine takes over that did not have the last entries yet. So each event names the one before it, by number and
 * digest, and "alive" names the last one.
 *
 * A node that is not known yet is believed: whoever begins to read knows nothing of what came before.
 *
 * Threads: the owner's.
 */
#ifndef RETORT_FLEET_CHAINS_H
#define RETORT_FLEET_CHAINS_H

#include "base/list.h"
#include "fleet/event.h"

/* FLEET_PAST: epochs of a node that are known to be over. */
enum { FLEET_GENERATION = 64, FLEET_NODES_MOST = 10000, FLEET_PAST = 4 };

/* The events of one node. */
struct fleet_chain {
    struct list_link link;
    char node[FLEET_NAME_MAX];
    uint64_t epoch, number;
    struct fleet_digest digest; /* of the event with the number; zeros: of none */
    uint64_t past[FLEET_PAST];  /* 0: none */
    uint64_t lease;             /* milliseconds, as its last "alive" says; 0: it has not */
    uint64_t heard;             /* when its last event came, by the owner's clock; 0: none has */
    char generation[FLEET_GENERATION]; /* of the engine, as its last "alive" says; "": it has not */
    bool awaited;                      /* its owner waits for it to say a new one */
};

struct fleet_chains {
    struct list_link list;
    unsigned count;
};

enum fleet_chain_verdict {
    FLEET_CHAIN_NEXT, /* nothing is missing between the event and what was read before */
    FLEET_CHAIN_OLD,  /* it was read before, or says nothing new, or is of an epoch that is over */
    FLEET_CHAIN_GAP, /* events of the node are missing, or it has written another event with a number that was read */
};

void fleet_chains_init(struct fleet_chains *chains);
void fleet_chains_release(struct fleet_chains *chains);
/* Takes an event with its digest. The chain goes on from the event, also behind a gap. */
enum fleet_chain_verdict fleet_chains_take(struct fleet_chains *chains,
                                           const struct fleet_event *event,
                                           const struct fleet_digest *digest);
/* Forgets all nodes but that one. */
void fleet_chains_forget(struct fleet_chains *chains, const char *but);
/* Is the epoch that of the node, or was it? */
bool fleet_chain_has(const struct fleet_chain *chain, uint64_t epoch);
/* NULL: nothing has been read of that node. */
struct fleet_chain *fleet_chains_find(const struct fleet_chains *chains, const char *node);
/* Makes one if there is none, in place of the one that was not heard for longest if there are FLEET_NODES_MOST. */
struct fleet_chain *fleet_chains_of(struct fleet_chains *chains, const char *node);

/* The body of the first event of an epoch says where the one before has ended. */
struct fleet_end {
    bool known; /* false: the node has never written, as far as it knows */
    uint64_t epoch, number;
    struct fleet_digest digest;
};

enum { FLEET_END_TEXT = 160 };
struct slice fleet_end_write(const struct fleet_end *end, char text[FLEET_END_TEXT]);
bool fleet_end_read(struct fleet_end *end, struct slice body);

#endif
