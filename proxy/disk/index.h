/*
 * The index of a volume: where on it the records of a key stand, in 32 bytes of memory for each.
 *
 *     struct disk_index *index = disk_index_new(segment_count, blocks_in_segment, 32);
 *     disk_index_put(index, key, &place);                        in the place of an older one
 *     unsigned count = disk_index_find(index, key, places, 8);   newest first
 *     disk_index_hide(index, key, variant, true);                what takes its place is on its way
 *     disk_index_drop_segment(index, segment);                   before the segment is used again
 *
 * Keys are the low halves of cache keys: what is found may be another's, and whoever reads the
 * record compares the whole key. Entries stand in chunks and are chained twice by their numbers, in
 * a bucket and in their segment; those of one segment go together, so that a removed entry is only
 * taken out of its bucket until then.
 *
 * Threads: any. Sixteen shards, each with its own lock, held for the walk of one chain.
 */
#ifndef RETORT_DISK_INDEX_H
#define RETORT_DISK_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct disk_index;

enum { DISK_ANY_VARIANT = 0 };

/* With the number of a variant: the record that renews its head. Such entries go with their variant
 * and count neither as objects nor as variants. */
#define DISK_RENEWAL UINT32_C(0x80000000)

/* In an entry only: it is not found, since something that may take its place is on its way. */
#define DISK_HIDDEN UINT32_C(0x40000000)

/* A variant's number has two parts: what its Vary names, and for whom it is; and the values. Of two
 * variants of a key whose first part is the same no request can select both (RFC 9111 §4.1). */
enum { DISK_VARIANT_VALUE_BITS = 21, DISK_VARIANT_NAME_BITS = 9 };

static inline uint32_t disk_variant_names(uint32_t variant) {
    return (variant & ~(DISK_RENEWAL | DISK_HIDDEN)) >> DISK_VARIANT_VALUE_BITS;
}

/* Of the numbers that go with this one: what renews a variant goes with it, but not the other way
 * round. */
static inline uint32_t disk_variant_mask(uint32_t variant) {
    return (variant & DISK_RENEWAL) != 0 ? UINT32_MAX : ~DISK_RENEWAL;
}

struct disk_place {
    uint32_t variant;
    uint32_t at, blocks; /* in RECORD_ALIGN, from the start of the first segment */
    uint32_t segment;
};

/* max_variants: of a key; the oldest others go. */
struct disk_index *disk_index_new(uint32_t segment_count, uint32_t blocks_in_segment,
                                  unsigned max_variants);
void disk_index_free(struct disk_index **indexp);

void disk_index_put(struct disk_index *index, uint64_t key, const struct disk_place *place);
/* The same record stands at another place now; what renews it goes on to. `from` may have gone. */
void disk_index_move(struct disk_index *index, uint64_t key, uint32_t from,
                     const struct disk_place *place);
unsigned disk_index_find(struct disk_index *index, uint64_t key, struct disk_place *places,
                         unsigned most);
/* With those that are hidden. */
unsigned disk_index_find_all(struct disk_index *index, uint64_t key, struct disk_place *places,
                             unsigned most);
/* What the variant may take the place of is not found any more: those that a request might select
 * as well, and with `itself` the same variant. The variant's record replaces that one; of the
 * others its writer finds out which have to go, and shows the rest again. */
void disk_index_hide(struct disk_index *index, uint64_t key, uint32_t variant, bool itself);
void disk_index_show(struct disk_index *index, uint64_t key, uint32_t variant);
/* One variant, what only renews one, or with DISK_ANY_VARIANT all of them; returns how many objects
 * there were. */
unsigned disk_index_remove(struct disk_index *index, uint64_t key, uint32_t variant);
/* The entry for a record that turned out to be bad or out of date. */
bool disk_index_remove_place(struct disk_index *index, uint64_t key, uint32_t at);
/* False: or it is hidden. */
bool disk_index_has_place(struct disk_index *index, uint64_t key, uint32_t at);
/* A record was used: it is worth another round. */
void disk_index_mark(struct disk_index *index, uint64_t key, uint32_t at);

typedef void disk_index_fn(void *arg, uint64_t key, const struct disk_place *place, bool marked);

/* Calls `see`, without a lock, for what is still to be found in the segment. */
void disk_index_each_in(struct disk_index *index, uint32_t segment, disk_index_fn *see, void *arg);
/* What was in it is not to be found any more. */
void disk_index_drop_segment(struct disk_index *index, uint32_t segment);

/* Up to `most` entries from *position on, which moves; 0: that was all. */
unsigned disk_index_walk(struct disk_index *index, uint64_t *position, uint64_t *keys,
                         struct disk_place *places, unsigned most);

uint64_t disk_index_count(const struct disk_index *index);
uint64_t disk_index_memory(struct disk_index *index);

#endif
