#include "origin/place_index.h"

#include "base/assert.h"

#include <stdlib.h>

void place_index_init(struct place_index *index, size_t count) {
    size_t slots = 2;
    while (slots < 2 * count)
        slots *= 2;
    *index = (struct place_index){xcalloc(slots, sizeof *index->slots), slots - 1};
}

void place_index_add(struct place_index *index, uint64_t hash, size_t number) {
    size_t at = (size_t)hash & index->mask;
    while (index->slots[at].number != 0)
        at = (at + 1) & index->mask;
    index->slots[at] = (struct place_slot){hash, number + 1};
}

bool place_index_next(const struct place_index *index, uint64_t hash, size_t *cursor,
                      size_t *number) {
    for (; *cursor <= index->mask; ++*cursor) {
        const struct place_slot *slot = &index->slots[((size_t)hash + *cursor) & index->mask];
        if (slot->number == 0)
            return false;
        if (slot->hash != hash)
            continue;
        *number = slot->number - 1;
        ++*cursor;
        return true;
    }
    return false;
}

void place_index_release(struct place_index *index) {
    free(index->slots);
    index->slots = NULL;
}
