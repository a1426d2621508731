/*
 * The services of one worker under one snapshot of the settings, and which of them a message is
 * for.
 *
 *     struct adapt_set *set = adapt_set_new(host, settings, origins, shared);
 *     unsigned count = adapt_set_choose(set, ADAPT_RESPMOD_PRECACHE, bits, chosen);
 *     adapt_set_release(&set);
 *
 * A transaction references the set that it began with, so that a reload takes nothing from under
 * it; the snapshot's groups of origins hang on the set for the same reason. The rules apply in the
 * order of the file; a service that several of them name is used once, at its first place.
 *
 * Threads: the worker's; the count of references is a plain integer.
 */
#ifndef RETORT_ADAPT_SET_H
#define RETORT_ADAPT_SET_H

#include "adapt/shared_service.h"
#include "origin/group.h"

enum { ADAPT_CHAIN_MAX = 16 };

struct adapt_set {
    unsigned magic;
#define ADAPT_SET_MAGIC 0xada97500u
    unsigned references;
    struct settings *settings;     /* referenced */
    struct origin_groups *origins; /* of the same snapshot; referenced */
    size_t service_count;
    struct adapter **services;     /* as in settings->services */
    uint64_t *rules[ADAPT_POINTS]; /* bits of rules that name a service of the point */
    size_t rule_words;
    bool any[ADAPT_POINTS];         /* some rule does */
    bool any_remembered;            /* some service is */
    unsigned hears;                 /* of all services: enum adapter_event, or-ed */
    struct shared_services *shared; /* of the same snapshot; referenced */
};

struct adapt_set *adapt_set_new(struct adapter_host *host, struct settings *settings,
                                struct origin_groups *origins, struct shared_services *shared);
struct adapt_set *adapt_set_reference(struct adapt_set *set);
/* A reload has brought another set: transactions that began with this one keep no connections that
 * they do not use. */
void adapt_set_retire(struct adapt_set *set);
void adapt_set_release(struct adapt_set **setp);

/* The service of that name, if it is of that point and not disabled; else NULL. */
struct adapter *adapt_set_find(const struct adapt_set *set, enum adapt_point point,
                               struct slice name);
/* Would adapt_set_choose choose any? */
static inline bool adapt_set_has(const struct adapt_set *set, enum adapt_point point,
                                 const uint64_t *bits) {
    return rules_meet(bits, set->rules[point], set->rule_words);
}
/* Chooses services by the adapt sections whose bits (match/rules.h) are set. */
unsigned adapt_set_choose(const struct adapt_set *set, enum adapt_point point, const uint64_t *bits,
                          struct adapter *chosen[ADAPT_CHAIN_MAX]);

/* Does it depend on who asks which services are chosen? */
bool adapt_set_asks_who(const struct adapt_set *set, enum adapt_point point, const uint64_t *bits);

/* How many of these services, counted from the first, are remembered. The rest is asked each
 * time. */
unsigned adapt_set_remembered(struct adapter *const *chosen, unsigned count);

#endif
