/*
 * The index of a volume: the places of the records of a key, with 32 bytes of memory for each.
 *
 *     struct disk_index *index = disk_index_new(segment_count, blocks_in_segment, 32);
 *     disk_index_put(index, key, &place);                        in the place of an older one
 *     unsigned count = disk_index_find(index, key, places, 8);   newest first
 *     disk_index_hide(index, key, variant, true);                what takes its place is on its way
 *     disk_index_drop_segment(index, segment);                   before the segment is used again
 *
 * Keys are the low halves of cache keys, so a record may belong to another key. The reader of the
 * record compares the whole key. Entries are stored in chunks and belong to two chains, one for
 * their bucket and one for their segment. All entries of a segment are freed together; a removed
 * entry only leaves its bucket until then. An entry of base/table.h would take twice as much.
 *
 * Threads: any. Sixteen shards, each with its own lock, held for the walk of one chain.
 */
#ifndef RETORT_DISK_INDEX_H
#define RETORT_DISK_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct disk_index;

enum { DISK_ANY_VARIANT = 0 };

/* Added to the number of a variant: a record that renews its head. Such an entry is removed with
 * its variant, and counts neither as an object nor as a variant. */
#define DISK_RENEWAL UINT32_C(0x80000000)

/* Only in an entry: the entry is hidden, because an object that may replace it is being written. */
#define DISK_HIDDEN UINT32_C(0x40000000)

/* The number of a variant has two parts. The first stands for the fields in Vary and the scope,
 * the second for their values. When two variants of a key have the same first part, no request
 * can select both (RFC 9111 §4.1). */
enum { DISK_VARIANT_VALUE_BITS = 21, DISK_VARIANT_NAME_BITS = 9 };

static inline uint32_t disk_variant_names(uint32_t variant) {
    return (variant & ~(DISK_RENEWAL | DISK_HIDDEN)) >> DISK_VARIANT_VALUE_BITS;
}

/* Returns true when an entry goes with this one. A renewal goes with its variant, but a variant
 * does not go with its renewal. */
static inline uint32_t disk_variant_mask(uint32_t variant) {
    return (variant & DISK_RENEWAL) != 0 ? UINT32_MAX : ~DISK_RENEWAL;
}

struct disk_place {
    uint32_t variant;
    uint32_t at, blocks; /* in units of RECORD_ALIGN, from the start of the first segment */
    uint32_t segment;
};

/* `max_variants` limits the variants of a key; the oldest are removed. */
struct disk_index *disk_index_new(uint32_t segment_count, uint32_t blocks_in_segment,
                                  unsigned max_variants);
void disk_index_free(struct disk_index **indexp);

void disk_index_put(struct disk_index *index, uint64_t key, const struct disk_place *place);
/* Moves a record to another place; its renewal stays valid. The entry at `from` may already be
 * removed. */
void disk_index_move(struct disk_index *index, uint64_t key, uint32_t from,
                     const struct disk_place *place);
unsigned disk_index_find(struct disk_index *index, uint64_t key, struct disk_place *places,
                         unsigned most);
/* Also finds hidden entries. */
unsigned disk_index_find_all(struct disk_index *index, uint64_t key, struct disk_place *places,
                             unsigned most);
/* Hides the entries that the variant may replace: variants that the same request might select,
 * and with `itself` the variant itself. The new record replaces the latter. The writer finds out
 * which of the others have to be removed, and shows the rest again. */
void disk_index_hide(struct disk_index *index, uint64_t key, uint32_t variant, bool itself);
void disk_index_show(struct disk_index *index, uint64_t key, uint32_t variant);
/* Removes one variant, one renewal, or with DISK_ANY_VARIANT all variants. Returns the number of
 * removed objects. */
unsigned disk_index_remove(struct disk_index *index, uint64_t key, uint32_t variant);
/* Removes the entry of a record that is damaged or outdated. */
bool disk_index_remove_place(struct disk_index *index, uint64_t key, uint32_t at);
/* Returns false also when the entry is hidden. */
bool disk_index_has_place(struct disk_index *index, uint64_t key, uint32_t at);
/* Marks a record as used, so that it is kept for another round of the ring. */
void disk_index_mark(struct disk_index *index, uint64_t key, uint32_t at);

typedef void disk_index_fn(void *arg, uint64_t key, const struct disk_place *place, bool marked);

/* Calls `see` without a lock for each entry of the segment that can still be found. */
void disk_index_each_in(struct disk_index *index, uint32_t segment, disk_index_fn *see, void *arg);
/* Removes all entries of a segment. */
void disk_index_drop_segment(struct disk_index *index, uint32_t segment);

/* Returns up to `most` entries from *position on, and moves *position. Returns 0 at the end. */
unsigned disk_index_walk(struct disk_index *index, uint64_t *position, uint64_t *keys,
                         struct disk_place *places, unsigned most);

uint64_t disk_index_count(const struct disk_index *index);
uint64_t disk_index_memory(struct disk_index *index);

#endif
