/*
 * A record being read: what has to be read for it, and what becomes of that. It does no reading
 * itself, so that the same steps serve those who may wait and those who may not.
 *
 *     struct reading reading;
 *     if (reading_begin(&reading, volume, &place, key)) {
 *         while (reading_wants(&reading))                        bytes, length, offset
 *             reading_got(&reading, volume_read(volume, ...));
 *         object = reading_end(&reading, reads, purges, NULL);   NULL: of no use
 *     }
 *
 * A small record is read whole and verified, and the object's body is what was read (BODY_HELD in
 * cache/body.h), or, if it is not so small, what stands in the page cache; of a large one the front
 * is read, and its body stays on the volume (disk_body.h). What can't be used is reported and not
 * found again.
 *
 * Threads: one at a time.
 */
#ifndef RETORT_DISK_READING_H
#define RETORT_DISK_READING_H

#include "disk/disk_body.h"
#include "disk/purge_log.h"

struct reading {
    struct volume *volume;
    struct disk_place place;
    uint64_t sequence, key; /* the key's low half */
    uint64_t offset;        /* of what is wanted */
    struct body_held *held; /* owned */
    char *bytes;            /* where to: held's */
    size_t length;
    enum { READING_WANTS, READING_DONE, READING_FAILED } state;
    struct record record; /* READING_DONE */
    bool pinned;
    bool cached; /* what was read was in the page cache: a body may be sent from there */
    bool whole;  /* the body was read too */
};

/* Larger bodies stay on disk and are sent from there. */
enum { DISK_SMALL = RECORD_CHUNK };
/* That are read of a key, and so may be on a volume. */
enum { DISK_VARIANTS = 32 };

/* False: its segment is about to be used again. */
bool reading_begin(struct reading *reading, struct volume *volume, const struct disk_place *place,
                   uint64_t key);
/* False: there is nothing more to read. */
bool reading_wants(struct reading *reading);
void reading_got(struct reading *reading, bool good);
/* renewal: the record that may have a newer head for it; NULL: there is none. */
struct object *reading_end(struct reading *reading, struct reads *reads, struct purge_log *purges,
                           const struct record *renewal);
/* Is that what the record is good for? */
bool reading_is_renewal(const struct reading *reading);
/* Does the renewal go with what was read? */
bool reading_is_renewed(const struct reading *reading, const struct record *renewal);

/* The object that a record stands for; NULL: it makes none. */
struct object *reading_object(const struct record *record, struct body *body);

#endif
