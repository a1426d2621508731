/*
 * Lending: a volume passes to another process while this one goes on to serve from memory.
 *
 *     if (!second_level_lend(level, error)) ...         the process that has the volumes
 *     if (!second_level_take_back(level, error)) ...    again later: the other one has the lock
 *
 *     level = disk_open(settings, cache, true, error);  the process that gets them
 *
 * disk_lend writes what is queued, removes from memory what has its body on a volume, and unlocks
 * the volumes. Then nothing is found on disk, nothing is written, and removals count as lapses
 * (second_level_lapses): the operator is told that they are not kept. Bodies that are being sent are still
 * read: nobody overwrites their segments before this process has ended (disk/lending.h).
 *
 * disk_take_back reads the volumes as a start would. What was removed meanwhile is removed there.
 *
 * Threads: one at a time for each disk.
 */
#ifndef RETORT_DISK_LENDING_H
#define RETORT_DISK_LENDING_H

#include "disk/disk.h"
#include "disk/queue.h"
#include "disk/volume.h"

bool disk_lend(struct second_level *level, char *error);
bool disk_take_back(struct second_level *level, char *error);

/* Inside disk/. */
/* What the writer of a volume does. */
void lending_lend(struct volume *volume);
void lending_return(struct volume *volume);
/* For each job while the volume is lent. */
void lending_skip(struct volume *volume, struct volume_job *job);

/*
 * Read locks: what a process still sends from a volume that it has lent. Whoever writes the volume leaves
 * these segments alone, also a process that knows nothing of a takeover. They are locks of ranges of the
 * file that belong to its open descriptor (F_OFD_SETLK of fcntl(2)), so the kernel drops them when the
 * process ends, however it ends. They are independent of the lock of the whole volume (flock(2)), except
 * on NFS, where a volume that somebody reads can't be locked.
 *
 * Threads: that of the lender, while the writer of the volume has nothing to do; the writer.
 */

/* Locks each unit that is pinned. Nothing may be pinned later. */
bool read_locks_set(const struct volume *volume);
void read_locks_drop(const struct volume *volume);
/* Does another process read these bytes of the file? `length` 0: up to its end. */
bool read_locks_of_others(const struct volume *volume, uint64_t offset, uint64_t length);

#endif
