/*
 * Finds places by a hash, while a list of them is made: in constant time, where thousands of names of
 * DNS would be compared with one another otherwise.
 *
 *     struct place_index index;
 *     place_index_init(&index, count);
 *     place_index_add(&index, hash, 7);
 *     for (size_t cursor = 0, at; place_index_next(&index, hash, &cursor, &at);) ...   at: 7
 *     place_index_release(&index);
 *
 * What is found has the same hash; whether it is the same is for the caller to compare.
 *
 * Threads: values.
 */
#ifndef RETORT_ORIGIN_PLACE_INDEX_H
#define RETORT_ORIGIN_PLACE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place_slot {
    uint64_t hash;
    size_t number; /* plus 1; 0: the slot is free */
};

struct place_index {
    struct place_slot *slots;
    size_t mask;
};

/* For at most `count` places. */
void place_index_init(struct place_index *index, size_t count);
void place_index_add(struct place_index *index, uint64_t hash, size_t number);
/* The next place with this hash, those that were added first before others. *cursor is 0 at first. */
bool place_index_next(const struct place_index *index, uint64_t hash, size_t *cursor,
                      size_t *number);
void place_index_release(struct place_index *index);

#endif
