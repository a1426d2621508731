/*
 * The rules of the settings, that is the policy, adapt and parent sections: for which of them is a
 * request, asked once for all of them.
 *
 *     struct rules *rules = rules_new();
 *     rules_add(rules, url_class);                              the first rule is number 0
 *     rules_seal(rules);
 *
 *     const uint64_t *bits = rules_find(rules, &subject, arena);    one for each rule
 *     bits = rules_without_type(rules, bits, arena);                there is no response yet
 *     for (size_t rule = rules_next(bits, from, to); rule < to; rule = rules_next(bits, rule + 1,
 * to))
 *
 * A class is filed under those of its conditions that are shared with the fewest other classes: its
 * hosts, domains, clients, or what its regular expressions can not be found without. A request
 * brings up the few classes that are filed under what it is made of, and only these are looked at
 * (url_class_matches_request). So it hardly matters how many there are, and a request that none is
 * for takes nothing of the arena.
 *
 * Threads: read-only once sealed.
 */
#ifndef RETORT_MATCH_RULES_H
#define RETORT_MATCH_RULES_H

#include "base/arena.h"
#include "http/url.h"
#include "match/url_class.h"

struct rules;

struct rules *rules_new(void);
void rules_free(struct rules **rulesp);
/* Classes must live as long as the rules. */
void rules_add(struct rules *rules, const struct url_class *url_class);
void rules_seal(struct rules *rules);

/* Words of 64 bits that hold a rule each; at least one. */
size_t rules_words(const struct rules *rules);
/* A first look at a request: the bits, should none come up but those that are for every request;
 * else NULL. */
const uint64_t *rules_glance(const struct rules *rules, const struct url *url,
                             struct slice url_text);
/* Those whose classes the request fits, whatever content type they want. The bits are the arena's
 * or the rules'. */
const uint64_t *rules_find(const struct rules *rules, const struct class_subject *subject,
                           struct arena *arena);
/* Of these, the ones that want none. */
const uint64_t *rules_without_type(const struct rules *rules, const uint64_t *bits,
                                   struct arena *arena);
/* Of these, the ones that a response of this type fits; it may have parameters, or be empty. */
const uint64_t *rules_with_type(const struct rules *rules, const uint64_t *bits,
                                struct slice content_type, struct arena *arena);

/* Is one set in both? */
static inline bool rules_meet(const uint64_t *bits, const uint64_t *others, size_t words) {
    for (size_t i = 0; i < words; i++)
        if ((bits[i] & others[i]) != 0)
            return true;
    return false;
}

/* The first rule at `from` or behind it whose bit is set; `to`: there is none before. */
static inline size_t rules_next(const uint64_t *bits, size_t from, size_t to) {
    while (from < to) {
        uint64_t word = bits[from / 64] >> from % 64;
        if (word != 0) {
            from += (size_t)__builtin_ctzll(word);
            return from < to ? from : to;
        }
        from = (from / 64 + 1) * 64;
    }
    return to;
}

/* The last rule before `to` whose bit is set, and one more; 0: there is none. */
static inline size_t rules_before(const uint64_t *bits, size_t to) {
    while (to > 0) {
        size_t at = (to - 1) / 64;
        uint64_t word = bits[at] << (63 - (to - 1) % 64);
        if (word != 0)
            return to - (size_t)__builtin_clzll(word);
        to = at * 64;
    }
    return 0;
}

#endif
