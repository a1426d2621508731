/*
 * The ring of segments as the writer sees it: the place of the next record, and the records that
 * are removed for it.
 *
 *     struct record_front front = {...};                    lengths, kind, key, variant, events
 *     uint32_t at = segment_append(volume, &front, &texts, sums, body_pieces, piece_count);
 *     if (at == VOLUME_NONE) ...                             could not be written
 *     segment_write_rescued(volume);                         after each record or so
 *     segment_seal_open(volume);                             at the end
 *
 *     uint32_t first = segment_take(volume, count);          a unit of its own, for a large body
 *
 * A unit is a segment that records share, or a run of segments for one large record.
 *
 * Threads: the writer of the volume; before it runs, the thread that opens the volume.
 * segment_forgets is called from any thread with the volume's lock held.
 */
#ifndef RETORT_DISK_SEGMENT_H
#define RETORT_DISK_SEGMENT_H

#include "disk/volume.h"

struct record_texts {
    struct slice url, head, vary;
};

/* Writes a record and returns its place in blocks. Sets identity, sequence and serial of the
 * front. */
uint32_t segment_append(struct volume *volume, struct record_front *front,
                        const struct record_texts *texts, const uint64_t *sums,
                        const struct iovec *body, int piece_count);
/* Returns an empty unit with a header on the volume, or VOLUME_NONE. */
uint32_t segment_take(struct volume *volume, uint32_t count);
/* Gives the file new pages. Pages that were passed to a socket belong to the file until the
 * client has received them, so data written there would be sent instead. Returns false when this
 * is impossible, as on some file systems and devices. No folio (a group of pages that the kernel
 * handles as one) may cross the ends of the range, because its part inside the range would be
 * cleared in place. */
bool segment_detach_pages(int fd, uint64_t offset, uint64_t length);
/* Gives back a unit from segment_take, or one whose only record is not needed any more. */
void segment_abandon(struct volume *volume, uint32_t first);
/* Does the same for a unit that has just been taken. The next record uses it, so transfers that
 * break off do not use up the ring. */
void segment_give_back(struct volume *volume, uint32_t first);
/* Writes the front of a record whose body is already in a unit of its own. */
uint32_t segment_finish_alone(struct volume *volume, uint32_t first, struct record_front *front,
                              const struct record_texts *texts, const uint64_t *sums);
/* Overwrites the front of a record whose removal could not be written, so that the record does
 * not count any more. Returns false when that could not be written either. */
bool segment_spoil_record(struct volume *volume, uint32_t at);
/* Writes the table of contents after the used part of the unit. */
bool segment_seal_unit(struct volume *volume, uint32_t first, const struct record_entry *entries,
                       uint32_t count);
void segment_seal_open(struct volume *volume);
/* Returns how many segments a record needs for itself, or 0 when it can share one. */
uint32_t segment_run_for(const struct volume *volume, uint64_t record_length);

/* Writes records again that were used since they were written and whose segment was removed. */
void segment_write_rescued(struct volume *volume);
/* Drops rescued records of a key. Returns true when there were some. */
bool segment_forget_rescued(struct volume *volume, uint64_t key, uint32_t variant);
/* Does the same for records that disk_index_hide hides. Losing one costs only a miss. */
void segment_hide_rescued(struct volume *volume, uint64_t key, uint32_t variant, bool itself);
void segment_release_rescued(struct volume *volume);

static inline uint32_t segment_blocks(const struct volume *volume) {
    return (uint32_t)(volume->header.segment_size / RECORD_ALIGN);
}

/* Returns its position in the file. */
static inline uint64_t segment_offset_of(const struct volume *volume, uint32_t segment) {
    return volume_offset(segment * (uint64_t)segment_blocks(volume));
}

#endif
