/*
 * The services of one worker under one snapshot of the settings, and which of them a message is
 * for.
 *
 *     struct adapt_set *set = adapt_set_new(host, settings, shared);
 *     unsigned count = adapt_set_choose(adapt_set_of(transaction), ADAPT_RESPMOD_PRECACHE, bits, chosen);
 *     adapt_set_free(&set);
 *
 * It hangs on the snapshot that a transaction began with (transaction/snapshot.h). The rules apply in the
 * order of the file; a service that several of them name is used once, at its first place.
 *
 * Threads: the worker's.
 */
#ifndef RETORT_ADAPT_SET_H
#define RETORT_ADAPT_SET_H

#include "adapt/shared_service.h"
#include "transaction/transaction.h"

enum { ADAPT_CHAIN_MAX = ASKED_MAX };

struct adapt_set {
    unsigned magic;
#define ADAPT_SET_MAGIC 0xada97500u
    const struct settings *settings; /* of the snapshot */
    size_t service_count;
    struct adapter **services;     /* as in settings->services */
    uint64_t *rules[ADAPT_POINTS]; /* bits of rules that name a service of the point */
    size_t rule_words;
    unsigned hears;                       /* of all services: enum adapter_event, or-ed */
    const struct shared_services *shared; /* of the same settings */
};

struct adapt_set *adapt_set_new(struct adapter_host *host, const struct settings *settings,
                                const struct shared_services *shared);
/* A reload has brought another set: transactions that began with this one keep no connections that
 * they do not use. */
void adapt_set_retire(struct adapt_set *set);
void adapt_set_free(struct adapt_set **setp);
static inline const struct adapt_set *adapt_set_of(const struct transaction *transaction) {
    return transaction->snapshot->parts[PART_ADAPT];
}

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
