/*
 * Purges as they are stored on a volume: slots of one size. A simple filter (cache/filter_table.h)
 * is stored as its hash in one slot. Another filter takes one slot and more slots for its texts.
 *
 *     struct purge_slots slots = {0};
 *     purge_slots_add(&slots, &filter, PURGE_REMOVE, number);
 *     purge_slots_add_generation(&slots, service, generation);
 *     ... slots.all, slots.count ...
 *     purge_slots_release(&slots);
 *
 * Slots are written in sectors. Each sector is complete, so a sector that can not be written or
 * read does not affect others:
 *
 *     struct purge_sector sector = {...};                          all but magic and checksum
 *     purge_sector_seal(&sector);
 *     if (purge_sector_good(&sector, identity, at)) ...
 *
 * Numbers are in the byte order of the machine. Threads: values; pure functions.
 */
#ifndef RETORT_DISK_PURGE_SLOT_H
#define RETORT_DISK_PURGE_SLOT_H

#include "cache/filter_table.h"

enum {
    PURGE_SECTOR = 512, /* a device writes this much completely or not at all */
    PURGE_SECTOR_SLOTS = 19,
    PURGE_TEXT_MOST = 1 << 20, /* of the texts of one filter */
};

enum purge_slot_kind {
    PURGE_SLOT_FREE,
    PURGE_SLOT_SIMPLE,
    PURGE_SLOT_TEXTS, /* four lengths and four texts: prefix, host, tag, expression */
    PURGE_SLOT_GENERATION,
};

struct purge_slot {
    uint64_t number;        /* of the purge; the generation */
    uint64_t what;          /* the hash; bytes of texts that follow; the service */
    uint16_t prefix_length; /* as filter_hash has them */
    int8_t tag_bit;
    uint8_t kind, action;
    uint8_t unused[3];
};

struct purge_slots {
    struct purge_slot *all;
    size_t count, capacity;
};

struct purge_sector {
    uint32_t magic;
    uint32_t continued; /* slots at its beginning that belong to texts of the sector before */
    uint64_t checksum;
    uint64_t identity, generation; /* of the volume, of what stands in the area */
    uint64_t floor, newest;        /* numbers when it was written: purge_log.h */
    uint32_t at;                   /* which of the area */
    uint32_t first;                /* so many sectors stood there when the generation began */
    struct purge_slot slots[PURGE_SECTOR_SLOTS];
};

_Static_assert(sizeof(struct purge_sector) == PURGE_SECTOR, "a sector is full of slots");

void purge_slots_add(struct purge_slots *slots, const struct object_filter *filter,
                     enum purge_action action, uint64_t number);
/* What the slot of a purge does; PURGE_NOTHING: it is none. */
enum purge_action purge_slot_action(const struct purge_slot *slot);
void purge_slots_add_simple(struct purge_slots *slots, const struct filter_entry *entry,
                            enum purge_action action, uint64_t number);
void purge_slots_add_generation(struct purge_slots *slots, uint64_t service, uint64_t generation);
void purge_slots_append(struct purge_slots *slots, const struct purge_slot *more, size_t count);
void purge_slots_release(struct purge_slots *slots);
/* Returns how many slots after this one contain its texts. */
size_t purge_slot_texts(const struct purge_slot *slot);
/* Returns how many slots a purge by this filter takes. */
size_t purge_slots_of(const struct object_filter *filter);

void purge_sector_seal(struct purge_sector *sector);
bool purge_sector_good(const struct purge_sector *sector, uint64_t identity, uint32_t at);

#endif
