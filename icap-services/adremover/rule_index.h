/*
 * Finds the rules that may match a request without walking over all of them.
 *
 *     rule_index_build(&index, rules, numbers, count);         numbers of the rules that are in it
 *     rule_index_search(&index, rules, &request, on_match, &arg);
 *     rule_index_release(&index);
 *
 * Each rule is filed under one thing that every URL it matches must have, the rarest it offers: the
 * host, a word, the beginning or the end of a word, or the page (then under each of its pages).
 * Where the place of that thing in the pattern is known, so is the only place in the URL where the
 * pattern can begin, and holding it against the URL is one comparison. Few rules offer nothing;
 * they are looked at for every request.
 *
 * A request asks for each of its labels and words. A field of bits, small enough for the cache of a
 * core, answers most of that with no.
 *
 * Threads: filled by one, then shared read-only. Searching allocates nothing.
 */
#ifndef RETORT_ADREMOVER_RULE_INDEX_H
#define RETORT_ADREMOVER_RULE_INDEX_H

#include "adremover/rule.h"

struct index_entry {
    uint32_t rule;
    uint16_t types;
    uint8_t offset; /* of the key's place in the pattern, or INDEX_ANYWHERE */
    uint8_t last;   /* of its key */
};

struct index_slot {
    uint32_t key, first; /* `first` in entries; 0: free */
};

struct rule_index {
    uint64_t *bits;
    uint32_t bit_mask;
    unsigned slot_shift;
    struct index_slot *slots;
    struct index_entry *entries; /* the first is of no use */
    uint32_t anywhere;           /* entries of rules that offer nothing; 0: none */
    uint32_t count;              /* rules */
    unsigned kinds;              /* enum hash_kind, as bits: which are in use */
};

/* The pattern of the rule matches. True: enough. */
typedef bool (*rule_visitor)(void *arg, const struct rule *rule);

void rule_index_build(struct rule_index *index, const struct rule *rules, const uint32_t *numbers,
                      uint32_t count);
void rule_index_release(struct rule_index *index);
/* True when the visitor said so. */
bool rule_index_search(const struct rule_index *index, const struct rule *rules,
                       const struct filter_request *request, rule_visitor visit, void *arg);

#endif
