/*
 * Finds the rules that may match a request without walking over all of them.
 *
 *     rule_index_build(&index, rules, numbers, count);         numbers of the rules that are in it
 *     rule_index_search(&index, rules, &request, on_match, &arg);
 *     rule_index_release(&index);
 *
 * The index keeps each rule under one key: something that every request it matches must have. A key
 * is a host, a word, the beginning or the end of a word, or the page; a rule for several pages
 * stands under each of them. If a rule has several possible keys, the index takes the one that is
 * rarest among the rules. If the place of the key in the pattern is known, the pattern can begin at
 * one place of the URL only, and one comparison tells whether it matches. A few rules have no key;
 * the search looks at them for every request.
 *
 * A search looks up each label and each word of the request. Most of them are no key of any rule: a
 * set of bits, small enough for the cache of a core, tells that before the table is looked at.
 *
 * Threads: one thread builds the index, then all threads share it read-only. A search allocates
 * nothing.
 */
#ifndef RETORT_ADREMOVER_RULE_INDEX_H
#define RETORT_ADREMOVER_RULE_INDEX_H

#include "adremover/rule.h"

struct index_entry {
    uint32_t rule;
    uint16_t types;
    uint8_t offset; /* of the key's place in the pattern, or INDEX_ANYWHERE */
    uint8_t last;   /* it is the last entry of its key */
};

struct index_slot {
    uint32_t key, first; /* `first` in entries; 0: free */
};

struct rule_index {
    uint64_t *bits;
    uint32_t bit_mask;
    unsigned slot_shift;
    struct index_slot *slots;
    struct index_entry *entries; /* entry 0 is not used */
    uint32_t anywhere;           /* first entry of the rules without a key; 0: none */
    uint32_t count;              /* rules */
    unsigned kinds;              /* enum hash_kind, as bits: which are in use */
};

/* Called for a rule whose pattern matches. It returns true to end the search. */
typedef bool (*rule_visitor)(void *arg, const struct rule *rule);

void rule_index_build(struct rule_index *index, const struct rule *rules, const uint32_t *numbers,
                      uint32_t count);
void rule_index_release(struct rule_index *index);
/* True when the visitor has ended the search. */
bool rule_index_search(const struct rule_index *index, const struct rule *rules,
                       struct filter_request *request, rule_visitor visit, void *arg);

#endif
