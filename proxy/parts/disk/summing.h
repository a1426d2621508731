/*
 * Sums of a body that comes in pieces of any size: one for each RECORD_CHUNK of it.
 *
 *     uint64_t *sums = xcalloc(record_chunks(length) + 1, sizeof *sums);
 *     struct summing summing;
 *     summing_begin(&summing, sums);
 *     summing_add(&summing, bytes, count);
 *     summing_end(&summing);                        or summing_release, without the last
 *
 * Threads: one at a time.
 */
#ifndef RETORT_DISK_SUMMING_H
#define RETORT_DISK_SUMMING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct XXH3_state_s;

struct summing {
    struct XXH3_state_s *state;
    size_t in_chunk;
    uint64_t *sums;
    size_t chunk;
};

void summing_begin(struct summing *summing, uint64_t *sums);
void summing_add(struct summing *summing, const char *bytes, size_t length);
void summing_end(struct summing *summing);
/* May also be called for a zeroed struct that was never begun. */
void summing_release(struct summing *summing);
/* Sums a whole body at once. The caller frees the sums. */
uint64_t *summing_of(const struct iovec *pieces, int count, uint64_t length);

#endif
