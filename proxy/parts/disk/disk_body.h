/*
 * A body on a volume. It is sent chunk by chunk. Each chunk is verified once before its first byte
 * is sent, for as long as the body is in use.
 *
 *     struct body *body = disk_body_new(volume, reads, &place, &record, false);
 *
 * The body pins its segment while it exists. A damaged chunk spoils the body: its readers have to
 * stop, and the object is not found any more.
 *
 * Threads: any.
 */
#ifndef RETORT_DISK_DISK_BODY_H
#define RETORT_DISK_DISK_BODY_H

#include "disk/reads.h"
#include "disk/volume.h"

/* The body takes over the pin. `verified` is true when the whole body has just been read into
 * the page cache and was good. */
struct body *disk_body_new(struct volume *volume, struct reads *reads,
                           const struct disk_place *place, const struct record *record,
                           bool verified);
/* Returns true when the body is on this volume. */
bool disk_body_is_on(const struct body *body, const struct volume *volume);
/* See record_contents. */
uint64_t disk_body_contents(const struct body *body);
/* Returns true when the body is in this unit. */
bool disk_body_is_in(const struct body *body, const struct volume *volume, uint32_t segment);
/* Returns the keys of all objects with bodies in this unit. The caller frees them. */
struct cache_key *disk_body_keys(struct volume *volume, uint32_t segment, size_t *count);

#endif
