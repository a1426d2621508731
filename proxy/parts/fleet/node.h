/*
 * A node of a fleet: it tells the other nodes what is purged here, and does here what they tell. Two threads do that, each with
 * a connection of its own to the engine: one reads the stream ("rt-fleet-read"), one appends to it ("rt-fleet-tell").
 *
 *     struct fleet_node *node = fleet_node_new(&demand);
 *     if (!fleet_node_start(node, error)) ...
 *     if (!fleet_node_tell(node, FLEET_PURGE, body, patience, &answer, error)) ...     it is in force here alone
 *     fleet_node_free(&node);
 *
 * What is promised, and how it is kept:
 *
 *   - An event is in force on this node, and in the outbox on disk, before fleet_node_tell returns. It stays in the outbox until
 *     it was read back from the stream, so that an engine that is away costs time alone.
 *
 *   - A node vouches for what it has stored only until `lease` after its last proof. Proof: the node has appended an event of its
 *     own at the moment T, and has read it back, with all that stood in front of it. So it knows all that was appended before T.
 *     Two more questions close the holes that an engine leaves. Was the event of the last proof (the newest mark, place.h) still in
 *     the stream when this one was appended, and is it there still when this one has been read? Then nothing between them was
 *     trimmed away, and nobody has emptied the stream. And has the engine's generation stayed the same?
 *
 *   - So what is appended at T is in force everywhere at T + lease: each node has read it, or vouches for nothing that it had
 *     before. That moment is `all_by`. A node gives none in its first lease in the fleet: others might not know it yet.
 *
 *   - When the generation of the engine changes, entries that it has acknowledged may be gone. Each node appends again what is
 *     missing of its own, and then says the new generation in its "alive". Nobody has a proof in another generation until all nodes
 *     that were alive at its last proof have said so; who has no proof at that moment doubts all that is stored. Where one is missing for a lease, all that is stored is doubted: whatever that
 *     node has told before concerns nothing that is stored later.
 *
 *   - Whoever finds that events are missing which nobody can bring back doubts all that is stored. It costs questions to the
 *     origin, and nothing that is stale is served.
 *
 * Order: the place in the stream decides, never a clock. Clocks measure the lease (CLOCK_MONOTONIC), from before the event is
 * appended.
 *
 * Threads: any for those functions; the callbacks of the world come from the node's threads. Units: milliseconds, but nanoseconds
 * of CLOCK_MONOTONIC where it says so. Errors: a sentence.
 */
#ifndef RETORT_FLEET_NODE_H
#define RETORT_FLEET_NODE_H

#include "fleet/engine.h"
#include "fleet/outbox.h"

struct fleet_node;

/* What a node does to the cache. */
struct fleet_world {
    void *arg;
    /* Does what another node has told. False: a restart would undo it. */
    bool (*apply)(void *arg, const struct fleet_event *event);
    /* Nothing that is stored now is used again before the origin has been asked. False: likewise. */
    bool (*doubt)(void *arg);
    /* What is stored is vouched for until that moment, in nanoseconds. */
    void (*vouch)(void *arg, uint64_t until);
    /* Keeps a number with what is stored on disk. */
    bool (*keep)(void *arg, uint64_t token);
    /* Which one was kept, 0: none? False: nothing that is stored outlives the process. */
    bool (*kept)(void *arg, uint64_t *token);
};

struct fleet_demand {
    const char *node, *directory;
    const struct fleet_key *key;
    struct engine_place engine; /* `stop` is the node's own */
    uint64_t lease;
    const char *version; /* of the program */
    struct fleet_world world;
};

enum { FLEET_MISSING_MOST = 20 };

/* How far an event has come. */
struct fleet_answer {
    char position[FLEET_ID]; /* in the stream; "": the engine does not have it yet */
    unsigned nodes, in_force;
    unsigned missing_count; /* names in `missing` */
    char missing[FLEET_MISSING_MOST][FLEET_NAME_MAX];
    uint64_t all_by; /* milliseconds since 1970; 0: not known */
};

struct fleet_numbers {
    uint64_t told, applied, rejected, gaps, conflicts, proofs;
    uint64_t waiting; /* events that the engine does not have yet */
};

/* A node of the fleet, as it has said itself. */
struct fleet_member {
    char node[FLEET_NAME_MAX], position[FLEET_ID], generation[FLEET_GENERATION], version[64];
    bool proven;
    uint64_t at; /* when it said so: milliseconds since 1970, by its clock */
};

struct fleet_report {
    bool connected, proven, conflict;
    uint64_t proven_for; /* milliseconds that are left of it */
    char generation[FLEET_GENERATION], position[FLEET_ID];
    char trouble[FLEET_ERROR]; /* the last one; "": there is none now */
    struct fleet_numbers numbers;
};

struct fleet_node *fleet_node_new(const struct fleet_demand *demand);
/* False: there is no thread, or, with a sentence, the state directory can't be used. */
bool fleet_node_start(struct fleet_node *node, char error[FLEET_ERROR]);
/* The process drains: this one tells nothing any more, and another process of the node may. It goes on to read. Again does no
 * harm. */
void fleet_node_retire(struct fleet_node *node);
/* Waits for the threads. */
void fleet_node_stop(struct fleet_node *node);
void fleet_node_free(struct fleet_node **nodep);

/* With an answer: waits until the engine has it, and with `patience` until it is in force on all nodes, at most so long; what is known then stands
 * in the answer. False: it is not in the outbox either, so that no other node will hear of it. */
bool fleet_node_tell(struct fleet_node *node, enum fleet_event_kind kind, struct slice body,
                     uint64_t patience, struct fleet_answer *answer, char error[FLEET_ERROR]);
void fleet_node_report(struct fleet_node *node, struct fleet_report *report);
/* All nodes of the table, as the engine has it now; the caller frees the array. False: the engine is away. */
bool fleet_node_members(struct fleet_node *node, struct fleet_member **members, size_t *count,
                        char error[FLEET_ERROR]);
/* Removes a node from the table. */
bool fleet_node_forget(struct fleet_node *node, const char *name, char error[FLEET_ERROR]);

#endif
