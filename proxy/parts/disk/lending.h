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
 * read: nobody overwrites their segments before this process has ended (disk/read_locks.h).
 *
 * disk_take_back reads the volumes as a start would. What was removed meanwhile is removed there.
 *
 * Threads: one at a time for each disk.
 */
#ifndef RETORT_DISK_LENDING_H
#define RETORT_DISK_LENDING_H

#include "disk/disk.h"
#include "disk/queue.h"

bool disk_lend(struct second_level *level, char *error);
bool disk_take_back(struct second_level *level, char *error);

/* Inside disk/. */
/* What the writer of a volume does. */
void lending_lend(struct volume *volume);
void lending_return(struct volume *volume);
/* For each job while the volume is lent. */
void lending_skip(struct volume *volume, struct volume_job *job);

#endif
