/*
 * A parcel: a response that was made while its client looked at a page that asks for patience, kept
 * until the client collects it.
 *
 *     struct parcel *parcel = parcels_open(parcels, &client, now, length, most, directory);
 *     ... NULL: there is no room
 *     ... parcel->token is in the page's URL
 *     if (parcel_append(parcel, bytes, count)) ...  false: all bodies take too much, or the disk
 *     parcel_ready(parcel, head, now + keep);       or parcel_failed(parcel, reason, now + keep)
 *     parcel_release(&parcel);                      whoever made it lets go; it stays in the table
 *
 *     struct parcel *parcel = parcels_find(parcels, token, &client, now);   another worker
 *     if (parcel_state(parcel) == PARCEL_READY)
 *         body = parcel_body(&parcel, arena, loop);                  the reference passes over
 *
 * A token can't be guessed, and is good for the address that it was made for only. Bodies stand in
 * memory up to PARCEL_MEMORY bytes, beyond that in a file without a name, all together within a
 * limit of bytes. A parcel leaves the table when its time is over; who reads it then reads on.
 *
 * Threads: any; a mutex for the table. A parcel is written by the worker that opened it, and its
 * head, body and error are read by others when its state says so.
 */
#ifndef RETORT_TRANSACTION_PARCEL_H
#define RETORT_TRANSACTION_PARCEL_H

#include "base/arena.h"
#include "base/list.h"
#include "base/spill_file.h"
#include "event/source.h"
#include "http/head.h"
#include "net/address.h"

#include <stdatomic.h>

enum { PARCEL_TOKEN = 32, PARCEL_MEMORY = 64 * 1024, PARCELS_MAX = 1000 };

enum parcel_state { PARCEL_COMING, PARCEL_READY, PARCEL_FAILED };

struct parcels;

struct parcel {
    unsigned magic;
#define PARCEL_MAGIC 0x9a4ce100u
    _Atomic unsigned references;
    struct list_link link; /* in the table, whose mutex guards this and `expires` */
    struct parcels *parcels;
    uint64_t expires; /* of the loops' clock; TIMER_NEVER: while it is coming */
    char token[PARCEL_TOKEN + 1];
    struct address client;
    _Atomic int state;
    _Atomic uint64_t received; /* bytes that have come from the origin */
    int64_t expected;          /* -1: not known */
    _Atomic uint64_t asked;    /* when the client last asked for it */
    const char *error;
    char *head; /* status line, fields and the empty line; owned */
    size_t head_length;
    struct spill_file body;
    uint64_t counted; /* bytes of it, among those of all bodies */
    size_t most;      /* bytes of all bodies */
};

struct parcels *parcels_new(void);
void parcels_free(struct parcels **parcelsp);

/* `most`: bytes of all bodies; `directory`: for files, in use until the parcel is ready. */
struct parcel *parcels_open(struct parcels *parcels, const struct address *client, uint64_t now,
                            int64_t expected, size_t most, const char *directory);
struct parcel *parcels_find(struct parcels *parcels, struct slice token,
                            const struct address *client, uint64_t now);
/* Those whose time is over go. When the next one's is; TIMER_NEVER: there is none. */
uint64_t parcels_expire(struct parcels *parcels, uint64_t now);
void parcel_release(struct parcel **parcelp);

static inline enum parcel_state parcel_state(const struct parcel *parcel) {
    return (enum parcel_state)atomic_load_explicit(&parcel->state, memory_order_acquire);
}

bool parcel_append(struct parcel *parcel, const char *bytes, size_t count);
void parcel_ready(struct parcel *parcel, const struct http_head *head, uint64_t expires);
void parcel_failed(struct parcel *parcel, const char *error, uint64_t expires);
struct source *parcel_body(struct parcel **parcelp, struct arena *arena, struct loop *loop);

#endif
