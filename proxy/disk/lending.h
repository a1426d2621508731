/*
 * Lending: a volume passes to another process while this one goes on to serve from memory.
 *
 *     disk_lend(disk, &pins);                           the process that has the volumes
 *     if (!disk_take_back(disk, error)) ...             again later: the other one has the lock
 *
 *     disk = disk_take(settings, cache, &pins, error);  the process that gets them
 *     disk_release_pins(disk, &pins);                   when the first one has ended
 *     disk_pins_release(&pins);
 *
 * disk_lend writes what is queued, removes from memory what has its body on a volume, and unlocks
 * the volumes. Then nothing is found on disk, nothing is written, and removals count as lapses
 * (disk_lapses): the operator is told that they are not kept. Bodies that are being sent are still
 * read: the pins name their segments, which the other process does not overwrite before the first
 * one has ended.
 *
 * disk_take_back reads the volumes as a start would. What was removed meanwhile is removed there.
 *
 * Threads: one at a time for each disk.
 */
#ifndef RETORT_DISK_LENDING_H
#define RETORT_DISK_LENDING_H

#include "disk/disk.h"
#include "disk/queue.h"

/* A segment that must not be overwritten. */
struct disk_pin {
    uint64_t identity; /* of the volume */
    uint64_t segment;
};

struct disk_pins {
    struct disk_pin *all;
    size_t count;
};

/* A disk that is NULL, or lent already, adds no pins. */
void disk_lend(struct disk *disk, struct disk_pins *pins);
/* Returns false with a message when a volume can't be had yet; the others are back. */
bool disk_take_back(struct disk *disk, char error[SETTINGS_ERROR]);
void disk_release_pins(struct disk *disk, const struct disk_pins *pins);
void disk_pins_add(struct disk_pins *pins, const struct disk_pin *more, size_t count);
void disk_pins_release(struct disk_pins *pins);

/* Inside disk/. Before the writers start. */
void lending_pin(struct disk *disk, const struct disk_pins *pins);
/* What the writer of a volume does. */
void lending_lend(struct volume *volume);
void lending_return(struct volume *volume);
/* For each job while the volume is lent. */
void lending_skip(struct volume *volume, struct volume_job *job);

#endif
