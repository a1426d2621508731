#include "disk/purge_slot.h"

#include "base/assert.h"
#include "disk/record.h"

#include <string.h>

#define SECTOR_MAGIC 0x70757267u

void purge_slots_append(struct purge_slots *slots, const struct purge_slot *more, size_t count) {
    if (slots->capacity - slots->count < count) {
        slots->capacity = 2 * slots->capacity + count;
        slots->all = xrealloc(slots->all, slots->capacity * sizeof *slots->all);
    }
    if (count > 0)
        memcpy(slots->all + slots->count, more, count * sizeof *more);
    slots->count += count;
}

void purge_slots_release(struct purge_slots *slots) {
    free(slots->all);
    *slots = (struct purge_slots){0};
}

static size_t texts_length(const struct object_filter *filter) {
    return 4 * sizeof(uint32_t) + filter->prefix.length + filter->host.length + filter->tag.length +
           (filter->regex_text == NULL ? 0 : strlen(filter->regex_text));
}

size_t purge_slot_texts(const struct purge_slot *slot) {
    return slot->kind != PURGE_SLOT_TEXTS
               ? 0
               : (size_t)(slot->what / sizeof *slot + (slot->what % sizeof *slot != 0));
}

/* The lengths first. */
static void add_texts(struct purge_slots *slots, const struct object_filter *filter,
                      size_t length) {
    struct slice texts[] = {filter->prefix, filter->host, filter->tag,
                            slice_from(filter->regex_text == NULL ? "" : filter->regex_text)};
    size_t count = (length + sizeof *slots->all - 1) / sizeof *slots->all;
    struct purge_slot *out = xcalloc(count, sizeof *out);
    char *at = (char *)out + 4 * sizeof(uint32_t);
    for (unsigned i = 0; i < 4; i++) {
        uint32_t one = (uint32_t)texts[i].length;
        memcpy((char *)out + i * sizeof one, &one, sizeof one);
        at = slice_put(at, texts[i]);
    }
    purge_slots_append(slots, out, count);
    free(out);
}

/* How an action stands on disk. */
static const uint8_t codes[] = {[PURGE_STALE] = 1, [PURGE_REMOVE] = 2, [PURGE_DOUBT] = 3};

enum purge_action purge_slot_action(const struct purge_slot *slot) {
    for (unsigned action = PURGE_STALE; action <= PURGE_REMOVE; action++)
        if (codes[action] == slot->action)
            return action;
    return PURGE_NOTHING;
}

void purge_slots_add(struct purge_slots *slots, const struct object_filter *filter,
                     enum purge_action action, uint64_t number) {
    size_t prefix_length;
    int tag_bit;
    uint64_t hash = filter_hash(filter, &prefix_length, &tag_bit);
    struct purge_slot slot = {
        .number = number,
        .what = hash != 0 ? hash : texts_length(filter),
        .prefix_length = (uint16_t)prefix_length,
        .tag_bit = (int8_t)tag_bit,
        .kind = hash != 0 ? PURGE_SLOT_SIMPLE : PURGE_SLOT_TEXTS,
        .action = codes[action],
    };
    purge_slots_append(slots, &slot, 1);
    if (hash == 0)
        add_texts(slots, filter, (size_t)slot.what);
}

size_t purge_slots_of(const struct object_filter *filter) {
    size_t length = texts_length(filter);
    return 1 + (length + sizeof(struct purge_slot) - 1) / sizeof(struct purge_slot);
}

void purge_slots_add_simple(struct purge_slots *slots, const struct filter_entry *entry,
                            enum purge_action action, uint64_t number) {
    struct purge_slot slot = {
        .number = number,
        .what = entry->hash,
        .prefix_length = entry->prefix_length,
        .tag_bit = entry->tag_bit,
        .kind = PURGE_SLOT_SIMPLE,
        .action = codes[action],
    };
    purge_slots_append(slots, &slot, 1);
}

void purge_slots_add_generation(struct purge_slots *slots, uint64_t service, uint64_t generation) {
    struct purge_slot slot = {.number = generation, .what = service, .kind = PURGE_SLOT_GENERATION};
    purge_slots_append(slots, &slot, 1);
}

void purge_sector_seal(struct purge_sector *sector) {
    sector->magic = SECTOR_MAGIC;
    sector->checksum = 0;
    sector->checksum = record_sum(sector, sizeof *sector);
}

bool purge_sector_good(const struct purge_sector *sector, uint64_t identity, uint32_t at) {
    struct purge_sector copy = *sector;
    copy.checksum = 0;
    return sector->magic == SECTOR_MAGIC && sector->identity == identity && sector->at == at &&
           sector->continued <= PURGE_SECTOR_SLOTS &&
           sector->checksum == record_sum(&copy, sizeof copy);
}
