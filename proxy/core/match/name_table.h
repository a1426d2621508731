/*
 * A table of names, or of other short strings of bytes, with the numbers filed under each of them.
 *
 *     struct name_table table = {0};
 *     name_table_add(&table, SLICE("www.example.com"), 7);
 *     name_table_seal(&table);                                  once, before the first question
 *     struct numbers found = name_table_find(&table, host);     found.count 1, found.each[0] 7
 *     name_table_release(&table);
 *
 * Most names that are asked for are not in the table. One bit of a filter, chosen by the last eight
 * bytes of the name, tells that, however many names there are. All other questions cost one hash. The
 * names are those of the configuration, so the hash needs no secret (base/table.h).
 *
 * Threads: read-only once sealed. The table copies the names.
 */
#ifndef RETORT_MATCH_NAME_TABLE_H
#define RETORT_MATCH_NAME_TABLE_H

#include "base/slice.h"

/* In ascending order, each once; they live as long as the table. */
struct numbers {
    const uint32_t *each;
    size_t count;
};

struct name_table {
    struct name_entry *entries; /* once sealed: a name each, in order */
    size_t count, capacity;
    uint32_t *numbers, *slots;
    size_t mask;
    uint64_t *filter;
    unsigned filter_shift;
    bool any_short;  /* a name is too short for the filter */
    size_t shortest; /* bytes of the shortest name */
};

void name_table_add(struct name_table *table, struct slice name, uint32_t number);
void name_table_seal(struct name_table *table);
void name_table_release(struct name_table *table);

/* The names of a sealed table, from 0 to count - 1. */
struct slice name_table_name(const struct name_table *table, size_t at);
struct numbers name_table_numbers(const struct name_table *table, size_t at);

enum { NAME_TABLE_TAIL = 8 };

static inline uint64_t name_table_filter_bit(const struct name_table *table, struct slice name) {
    uint64_t tail;
    memcpy(&tail, name.base + name.length - NAME_TABLE_TAIL, sizeof tail);
    return tail * UINT64_C(0x9e3779b97f4a7c15) >> table->filter_shift;
}

/* Likewise of its first eight bytes and its last ones together. */
static inline uint64_t name_table_whole_bit(const struct name_table *table, struct slice name) {
    uint64_t head, tail;
    memcpy(&head, name.base, sizeof head);
    memcpy(&tail, name.base + name.length - NAME_TABLE_TAIL, sizeof tail);
    return (head * UINT64_C(0xc2b2ae3d27d4eb4f) ^ tail) * UINT64_C(0x9e3779b97f4a7c15) >>
           table->filter_shift;
}

static inline bool name_table_has_bit(const struct name_table *table, uint64_t bit) {
    return (table->filter[bit / 64] >> bit % 64 & 1) != 0;
}

/* False: neither it, nor anything else that ends in the same eight bytes, is there. */
static inline bool name_table_may_have(const struct name_table *table, struct slice name) {
    if (table->count == 0 || name.length < table->shortest)
        return false;
    if (name.length < NAME_TABLE_TAIL)
        return table->any_short;
    return name_table_has_bit(table, name_table_filter_bit(table, name));
}

/* False: it is not there. */
static inline bool name_table_may_have_whole(const struct name_table *table, struct slice name) {
    return name_table_may_have(table, name) &&
           (name.length < NAME_TABLE_TAIL ||
            name_table_has_bit(table, name_table_whole_bit(table, name)));
}

/* False: no end of it is there. */
static inline bool name_table_may_have_end(const struct name_table *table, struct slice text) {
    return table->count > 0 && (table->any_short || name_table_may_have(table, text));
}

struct numbers name_table_find_surely(const struct name_table *table, struct slice name);

static inline struct numbers name_table_find(const struct name_table *table, struct slice name) {
    return name_table_may_have_whole(table, name) ? name_table_find_surely(table, name)
                                                  : (struct numbers){NULL, 0};
}

#endif
