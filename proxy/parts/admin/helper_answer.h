/*
 * What retort-helperd answers to {"call":"helpers"}: is it what /metrics can show? It comes from
 * another process, so nothing in it is believed before it was looked at.
 *
 *     if (helper_answer_good(answer)) {
 *         json_t *pools = json_object_get(answer, "pools");        the names differ
 *         uint64_t served = helper_answer_number(pool, "served");
 *         helper_answer_times(helper_answer_lane(pool, "small"), "waiting", &times);
 *     }
 *
 * The functions below helper_answer_good are for answers that are good. Threads: pure.
 */
#ifndef RETORT_ADMIN_HELPER_ANSWER_H
#define RETORT_ADMIN_HELPER_ANSWER_H

#include "base/times.h"

#include <jansson.h>
#include <stdbool.h>

enum {
    HELPER_ANSWER_POOLS = 256,
    HELPER_ANSWER_REFUSALS = 16,
    HELPER_ANSWER_NAME = 64, /* bytes of a name */
    HELPER_LANES = 2,
};

extern const char *const helper_lanes[HELPER_LANES];

/* Are all pools whole, are all numbers natural ones that add up, and are names short texts? */
bool helper_answer_good(const json_t *answer);

uint64_t helper_answer_number(const json_t *object, const char *name);
/* The lane of that name; not NULL. */
const json_t *helper_answer_lane(const json_t *pool, const char *name);
void helper_answer_times(const json_t *lane, const char *name, struct times *times);

#endif
