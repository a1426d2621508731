/*
 * A body on a volume: sent from there chunk by chunk, each of them verified before its first byte
 * goes out, and then as often as the body is in use without being verified again.
 *
 *     struct body *body = disk_body_new(volume, reads, &place, &record, false);
 *
 * It pins its segment while it lives. A chunk that is damaged spoils the body: who reads it has to
 * break off, and nobody finds the object any more.
 *
 * Threads: any.
 */
#ifndef RETORT_DISK_DISK_BODY_H
#define RETORT_DISK_DISK_BODY_H

#include "disk/reads.h"
#include "disk/volume.h"

/* The pin passes over. verified: all of it has just been read, into the page cache too, and was
 * good.
 */
struct body *disk_body_new(struct volume *volume, struct reads *reads,
                           const struct disk_place *place, const struct record *record,
                           bool verified);
/* Does the body stand on this volume? */
bool disk_body_is_on(const struct body *body, const struct volume *volume);
/* See record_contents. */
uint64_t disk_body_contents(const struct body *body);
/* Does the body stand in this unit? */
bool disk_body_is_in(const struct body *body, const struct volume *volume, uint32_t segment);
/* The keys of all objects with bodies there, which the caller frees. */
struct cache_key *disk_body_keys(struct volume *volume, uint32_t segment, size_t *count);

#endif
