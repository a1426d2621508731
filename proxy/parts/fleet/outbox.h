/*
 * What a node tells its fleet, on disk until the engine has it, and a while longer: an engine that takes over may lack the last
 * events, and gets them again.
 *
 *     switch (fleet_outbox_open(&outbox, &place, error)) ...
 *     if (!fleet_outbox_add(outbox, FLEET_PURGE, body, &number, error)) ...        it is on disk when this returns
 *     while (fleet_outbox_next(outbox, sent, &entry)) ...                           what the engine gets next
 *     fleet_outbox_confirm(outbox, &event, &digest);                                it was read back from the stream
 *     fleet_outbox_close(&outbox);
 *
 * Several threads that add at the same time share one write to the disk.
 *
 * A process holds a lock on the file. While another process of the node has it, which is about to end, nothing can be added.
 *
 * Threads: any. Errors: a sentence, and nothing has been added.
 */
#ifndef RETORT_FLEET_OUTBOX_H
#define RETORT_FLEET_OUTBOX_H

#include "fleet/place.h"

/* FLEET_OUTBOX_KEPT: events that are kept behind their confirmation. */
enum { FLEET_OUTBOX_KEPT = 4096, FLEET_OUTBOX_BYTES = 256 << 20 };

struct fleet_outbox;

struct fleet_outbox_entry {
    uint64_t number;
    struct slice text; /* on the heap; the caller frees text.base */
};

struct fleet_outbox_place {
    const char *directory, *node;
    const struct fleet_key *key; /* lives as long as the outbox */
    size_t most;                 /* bytes of the file; FLEET_OUTBOX_BYTES */
};

enum fleet_outbox_found {
    FLEET_OUTBOX_FAILED,
    FLEET_OUTBOX_BUSY,
    FLEET_OUTBOX_NEW,
    FLEET_OUTBOX_KNOWN
};

/* BUSY: another process of the node has it. FAILED: a sentence says why. NEW: it has no epoch yet: fleet_outbox_begin comes
 * first. */
enum fleet_outbox_found fleet_outbox_open(struct fleet_outbox **outboxp,
                                          const struct fleet_outbox_place *place,
                                          char error[FLEET_ERROR]);
void fleet_outbox_close(struct fleet_outbox **outboxp);
/* Begins another epoch: its first event says where the one before has ended. Events that are not confirmed get numbers of it. */
bool fleet_outbox_begin(struct fleet_outbox *outbox, const struct fleet_end *end,
                        char error[FLEET_ERROR]);
bool fleet_outbox_add(struct fleet_outbox *outbox, enum fleet_event_kind kind, struct slice body,
                      uint64_t *number, char error[FLEET_ERROR]);
/* The first event with a number above `after`. False: there is none. */
bool fleet_outbox_next(struct fleet_outbox *outbox, uint64_t after,
                       struct fleet_outbox_entry *entry);
/* Where the epoch ends, as far as that number. */
struct fleet_end fleet_outbox_end(struct fleet_outbox *outbox, uint64_t number);
/* An event with the node's name was read. Nothing when the outbox has another one. */
void fleet_outbox_confirm(struct fleet_outbox *outbox, const struct fleet_event *event,
                          const struct fleet_digest *digest);

/* Whose an event with the node's name is. */
enum fleet_outbox_owner {
    FLEET_OUTBOX_MINE,    /* this process has added it: it is in force here */
    FLEET_OUTBOX_EARLIER, /* a process before has, or its number is not kept any more */
    FLEET_OUTBOX_OTHER,   /* of another epoch */
    FLEET_OUTBOX_FORKED,  /* of this epoch, but nobody with this outbox has added it */
};
enum fleet_outbox_owner fleet_outbox_owner(struct fleet_outbox *outbox,
                                           const struct fleet_event *event,
                                           const struct fleet_digest *digest);
/* Does its epoch begin right behind that end? */
bool fleet_outbox_follows(struct fleet_outbox *outbox, const struct fleet_end *end);

/* Of one moment. */
struct fleet_outbox_state {
    uint64_t epoch, number, confirmed;
    struct fleet_digest digest; /* of the last event */
    size_t bytes;               /* of the file */
};
struct fleet_outbox_state fleet_outbox_state(struct fleet_outbox *outbox);

#endif
