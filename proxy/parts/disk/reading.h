/*
 * The steps to read a record: which bytes are needed, and what is made of them. This file does no
 * input itself, so the same steps serve threads that may wait and threads that may not.
 *
 *     struct reading reading;
 *     if (reading_begin(&reading, volume, &place, key)) {
 *         while (reading_wants(&reading))                        bytes, length, offset
 *             reading_got(&reading, volume_read(volume, ...));
 *         object = reading_end(&reading, reads, purges, NULL);   NULL: of no use
 *     }
 *
 * A small record is read whole and verified. The body of its object is the memory that was read
 * (BODY_HELD in cache/body.h), or the page cache if it is less small. Of a large record only the
 * front is read, and the body stays on the volume (disk_body.h). An unusable record is reported and
 * removed from the index.
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
    bool cached; /* the bytes were in the page cache, so a body may be sent from it */
    bool whole;  /* the body was read too */
};

/* Larger bodies stay on disk and are sent from there. */
enum { DISK_SMALL = RECORD_CHUNK };
/* Limit for variants of a key that are read, and so may be on a volume. */
enum { DISK_VARIANTS = 32 };

/* Returns false when the segment is about to be overwritten. */
bool reading_begin(struct reading *reading, struct volume *volume, const struct disk_place *place,
                   uint64_t key);
/* Returns false when no more bytes are needed. */
bool reading_wants(struct reading *reading);
void reading_got(struct reading *reading, bool good);
/* `renewal` is the record that may contain a newer head; NULL: there is none. */
struct object *reading_end(struct reading *reading, struct reads *reads, struct purge_log *purges,
                           const struct record *renewal);
/* Returns true when the record can be used. */
bool reading_is_renewal(const struct reading *reading);
/* Returns true when the renewal belongs to the record. */
bool reading_is_renewed(const struct reading *reading, const struct record *renewal);

/* Returns the object of a record, or NULL when the record is unusable. */
struct object *reading_object(const struct record *record, struct body *body);

#endif
