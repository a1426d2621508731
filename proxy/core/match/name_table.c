#include "match/name_table.h"

#include "base/assert.h"

#include <stdlib.h>
#include <xxhash.h>

/* FILTER_BITS and SLOTS: bits of the filter and slots for each name. */
enum { FILTER_BITS = 32, FILTER_LEAST = 1024, SLOTS = 4 };

struct name_entry {
    struct slice name;
    uint32_t number; /* until the table is sealed; then: */
    uint32_t first, count;
};

void name_table_add(struct name_table *table, struct slice name, uint32_t number) {
    ASSERT(table->slots == NULL);
    if (table->count == table->capacity) {
        table->capacity = table->capacity * 2 + 16;
        table->entries = xrealloc(table->entries, table->capacity * sizeof *table->entries);
    }
    char *copy = name.length == 0 ? xstrdup("") : slice_dup(name);
    table->entries[table->count++] =
        (struct name_entry){.name = slice_make(copy, name.length), .number = number};
}

static int compare_entries(const void *a, const void *b) {
    const struct name_entry *x = a, *y = b;
    size_t least = x->name.length < y->name.length ? x->name.length : y->name.length;
    int difference = memcmp(x->name.base, y->name.base, least);
    if (difference != 0)
        return difference;
    if (x->name.length != y->name.length)
        return x->name.length < y->name.length ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

/* Makes one entry for each name, with its numbers in a row. */
static void name_table_gather(struct name_table *table) {
    size_t names = 0, numbers = 0;
    table->numbers = xcalloc(table->count, sizeof *table->numbers);
    for (size_t i = 0; i < table->count; i++) {
        struct name_entry *entry = &table->entries[i];
        struct name_entry *last = names > 0 ? &table->entries[names - 1] : NULL;
        if (last != NULL && slice_equal(entry->name, last->name)) {
            free((char *)(uintptr_t)entry->name.base);
            if (table->numbers[numbers - 1] == entry->number)
                continue;
        } else {
            last = &table->entries[names++];
            *last = (struct name_entry){.name = entry->name, .number = entry->number};
            last->first = (uint32_t)numbers;
        }
        last->count++;
        table->numbers[numbers++] = entry->number;
    }
    table->count = names;
}

static size_t power_above(size_t number) {
    size_t power = 1;
    while (power < number)
        power *= 2;
    return power;
}

static size_t name_table_hash_of(struct slice name) {
    return XXH3_64bits(name.base, name.length);
}

static void name_table_place(struct name_table *table, size_t at) {
    struct slice name = table->entries[at].name;
    size_t slot = name_table_hash_of(name) & table->mask;
    while (table->slots[slot] != 0)
        slot = (slot + 1) & table->mask;
    table->slots[slot] = (uint32_t)at + 1;
    if (name.length < table->shortest)
        table->shortest = name.length;
    if (name.length < NAME_TABLE_TAIL) {
        table->any_short = true;
        return;
    }
    const uint64_t bits[] = {name_table_filter_bit(table, name), name_table_whole_bit(table, name)};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        table->filter[bits[i] / 64] |= UINT64_C(1) << bits[i] % 64;
}

void name_table_seal(struct name_table *table) {
    if (table->count == 0)
        return;
    qsort(table->entries, table->count, sizeof *table->entries, compare_entries);
    name_table_gather(table);
    size_t slots = power_above(table->count * SLOTS);
    size_t bits = power_above(table->count * FILTER_BITS);
    if (bits < FILTER_LEAST)
        bits = FILTER_LEAST;
    table->mask = slots - 1;
    table->shortest = SIZE_MAX;
    table->slots = xcalloc(slots, sizeof *table->slots);
    table->filter = xcalloc(bits / 64, sizeof *table->filter);
    table->filter_shift = 64 - (unsigned)__builtin_ctzll(bits);
    for (size_t i = 0; i < table->count; i++)
        name_table_place(table, i);
}

void name_table_release(struct name_table *table) {
    for (size_t i = 0; i < table->count; i++)
        free((char *)(uintptr_t)table->entries[i].name.base);
    free(table->entries);
    free(table->numbers);
    free(table->slots);
    free(table->filter);
    *table = (struct name_table){0};
}

struct slice name_table_name(const struct name_table *table, size_t at) {
    return table->entries[at].name;
}

struct numbers name_table_numbers(const struct name_table *table, size_t at) {
    const struct name_entry *entry = &table->entries[at];
    return (struct numbers){table->numbers + entry->first, entry->count};
}

struct numbers name_table_find_surely(const struct name_table *table, struct slice name) {
    uint32_t found;
    for (size_t slot = name_table_hash_of(name) & table->mask; (found = table->slots[slot]) != 0;
         slot = (slot + 1) & table->mask) {
        const struct name_entry *entry = &table->entries[found - 1];
        if (slice_equal(entry->name, name))
            return (struct numbers){table->numbers + entry->first, entry->count};
    }
    return (struct numbers){NULL, 0};
}
