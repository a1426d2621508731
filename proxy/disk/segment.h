/*
 * The ring of segments as the writer sees it: where the next record goes, and what has to go for
 * it.
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
 * Threads: the writer's of the volume; before it runs, whoever opens the volume. segment_forgets
 * under the volume's lock, from any.
 */
#ifndef RETORT_DISK_SEGMENT_H
#define RETORT_DISK_SEGMENT_H

#include "disk/volume.h"

struct record_texts {
    struct slice url, head, vary;
};

/* Writes and returns where, in blocks; sets identity, sequence and serial of the front. */
uint32_t segment_append(struct volume *volume, struct record_front *front,
                        const struct record_texts *texts, const uint64_t *sums,
                        const struct iovec *body, int piece_count);
/* An empty unit, with a header on the volume; VOLUME_NONE: there is none. */
uint32_t segment_take(struct volume *volume, uint32_t count);
/* Pages that were handed to a socket are still the file's until the client has taken them: what is
 * written there would be sent in their place. Afterwards the file has others. False: not possible,
 * as on some file systems and devices. Offset and length are such that no folio, a group of pages
 * that the kernel keeps as one, lies across an end: the part within would be cleared where it is.
 */
bool segment_detach_pages(int fd, uint64_t offset, uint64_t length);
/* Gives back what segment_take gave, or a unit whose only record is not wanted any more. */
void segment_abandon(struct volume *volume, uint32_t first);
/* The same for one that has just been taken: what comes next goes there, so that transfers that are
 * broken off do not use up the ring. */
void segment_give_back(struct volume *volume, uint32_t first);
/* Writes the front of the record whose body already stands in a unit of its own. */
uint32_t segment_finish_alone(struct volume *volume, uint32_t first, struct record_front *front,
                              const struct record_texts *texts, const uint64_t *sums);
/* Overwrites the front of a record, whose removal could not be written: it does not count any more.
 * False: that could not be written either. */
bool segment_spoil_record(struct volume *volume, uint32_t at);
/* Writes the table of contents behind what is used of the unit. */
bool segment_seal_unit(struct volume *volume, uint32_t first, const struct record_entry *entries,
                       uint32_t count);
void segment_seal_open(struct volume *volume);
/* How many segments a record needs if it can't share one; 0: it can. */
uint32_t segment_run_for(const struct volume *volume, uint64_t record_length);

/* Records that were used since they were written and whose segment went: into the log again. */
void segment_write_rescued(struct volume *volume);
/* Those of a key are not wanted any more. True: there were some. */
bool segment_forget_rescued(struct volume *volume, uint64_t key, uint32_t variant);
/* The same for what disk_index_hide hides: to lose one costs a miss. */
void segment_hide_rescued(struct volume *volume, uint64_t key, uint32_t variant, bool itself);
void segment_release_rescued(struct volume *volume);

static inline uint32_t segment_blocks(const struct volume *volume) {
    return (uint32_t)(volume->header.segment_size / RECORD_ALIGN);
}

#endif
