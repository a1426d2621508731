/*
 * Read locks: what a process still sends from a volume that it has lent (disk/lending.h). Whoever
 * writes the volume leaves these segments alone, also a process that knows nothing of a takeover.
 *
 *     if (!read_locks_set(volume)) ...                    errno; the process that lends, before it
 *                                                         unlocks the volume
 *     if (read_locks_of_others(volume, at, length)) ...   the process that writes
 *     read_locks_drop(volume);                            the volume is back
 *
 * They are locks of ranges of the file that belong to its open descriptor (F_OFD_SETLK of fcntl(2)).
 * So the kernel drops them when the process ends, however it ends. They are independent of the lock
 * of the whole volume (flock(2)), except on NFS, where a volume that somebody reads can't be locked.
 *
 * Threads: that of the lender, while the writer of the volume has nothing to do; the writer.
 */
#ifndef RETORT_DISK_READ_LOCKS_H
#define RETORT_DISK_READ_LOCKS_H

#include "disk/volume.h"

/* Locks each unit that is pinned. Nothing may be pinned later. */
bool read_locks_set(const struct volume *volume);
void read_locks_drop(const struct volume *volume);
/* Does another process read these bytes of the file? `length` 0: up to its end. */
bool read_locks_of_others(const struct volume *volume, uint64_t offset, uint64_t length);

#endif
