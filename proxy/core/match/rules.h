/*
 * A set of rules, each with a URL class. The settings have one such set, with a rule for each
 * section that says what happens to a class (settings/rule_kinds.h). Each request is matched against all rules once; the result is a bit set.
 *
 *     struct rules *rules = rules_new();
 *     rules_add(rules, url_class);                              the first rule is number 0
 *     rules_seal(rules);
 *
 *     const uint64_t *bits = rules_find(rules, &subject, arena);    one for each rule
 *     bits = rules_without_type(rules, bits, arena);                there is no response yet
 *     for (size_t rule = rules_next(bits, 0, count); rule < count;
 *          rule = rules_next(bits, rule + 1, count))
 *         ...
 *     rules_free(&rules);
 *
 * A class is filed under the kind of condition that it shares with the fewest other classes: its
 * hosts, its domains, its clients, the literals of its regular expressions, its users or groups. A
 * look-up finds the few classes that are filed under parts of the request, and only these are
 * compared with it (url_class_judge_request). A list in a file is asked once, however many classes
 * name it. A class with any_of is filed under what the classes that it names are filed under. So
 * the number of classes hardly matters, except for those that state only a time, a field of the
 * request or `not`: each request is compared with these. A request that no class fits takes nothing
 * of the arena.
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
/* A rule that a request fits unless the class can't match it, whoever the user proves to be and
 * wherever the host leads: those are not looked at. NULL: a rule that no request fits. */
void rules_add_perhaps(struct rules *rules, const struct url_class *url_class);
void rules_seal(struct rules *rules);

/* What the classes of all rules together depend on: CLASS_ASKS_USER and others. */
unsigned rules_ask(const struct rules *rules);
/* Words of 64 bits that hold a rule each; at least one. */
size_t rules_words(const struct rules *rules);
/* A first look at a request. If only the rules that are for every request can match, it returns
 * their bits; otherwise NULL. */
const uint64_t *rules_glance(const struct rules *rules, const struct url *url,
                             struct slice url_text);
/* Their bits: of the rules whose classes have no condition on a request. */
const uint64_t *rules_always(const struct rules *rules);
/* The rules whose classes the request fits for certain, whatever content type they state. The bits
 * belong to the arena or to the rules. */
const uint64_t *rules_find(const struct rules *rules, const struct class_subject *subject,
                           struct arena *arena);
/* Of the rules in `bits`, those whose classes state no content type. */
const uint64_t *rules_without_type(const struct rules *rules, const uint64_t *bits,
                                   struct arena *arena);
/* Of the rules in `bits`, those that a response of this type fits. The type may have parameters, or
 * be empty. */
const uint64_t *rules_with_type(const struct rules *rules, const uint64_t *bits,
                                struct slice content_type, struct arena *arena);

/* Is any bit set in both? */
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
