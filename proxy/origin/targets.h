/*
 * The servers that SRV records name (RFC 2782), as a group uses them: without those that occur
 * twice, in the order of their priorities, and no more of them than the settings allow.
 *
 *     struct origin_targets targets;
 *     unsigned left_out = origin_targets_make(&targets, answer.list, answer.count, "https", 100);
 *     ... targets.list[i].text is "https://a.example:8443" ...
 *     origin_targets_release(&targets);
 *
 * When there are too many, those of the lowest priorities stay, and among these the ones with the
 * largest weights. The result does not depend on the order in which a name server lists them.
 *
 * "Larger weights SHOULD be given a proportionately higher probability of being selected." And: "In
 * the presence of records containing weights greater than 0, records with weight 0 should have a
 * very small chance of being selected." So a weight of 0 counts as 1.
 *
 * Threads: any; a value.
 */
#ifndef RETORT_ORIGIN_TARGETS_H
#define RETORT_ORIGIN_TARGETS_H

#include "net/dns_targets.h"

struct origin_target {
    char *text;        /* "scheme://host:port" */
    unsigned priority; /* as DNS says it: lower ones are asked first */
    unsigned rank;     /* 0: of the lowest priority here, 1: of the next one, ... */
    unsigned weight;   /* from 1 */
};

struct origin_targets {
    size_t count;
    struct origin_target *list;
};

/* Puts `list` in another order. Returns how many were left out, because there are more than `most`
 * or because no URL can have the name. */
unsigned origin_targets_make(struct origin_targets *targets, struct dns_target *list,
                             unsigned count, const char *scheme, unsigned most);
bool origin_targets_equal(const struct origin_targets *a, const struct origin_targets *b);
void origin_targets_release(struct origin_targets *targets);

#endif
