#include "admin/helper_answer.h"

#include <string.h>

/* Larger ones are no counts, and sums of smaller ones fit. */
#define HELPER_NUMBER_MOST ((json_int_t)1 << 53)

const char *const helper_lanes[HELPER_LANES] = {"small", "large"};

static const char *const pool_members[] = {"served",   "unchanged", "failed",
                                           "refused",  "timeouts",  "cancelled",
                                           "restarts", "broken",    "cpu_ms"};
static const char *const lane_members[] = {"queued", "at_work"};

static bool helper_is_number(const json_t *value) {
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= HELPER_NUMBER_MOST;
}

static bool have_numbers(const json_t *object, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!helper_is_number(json_object_get(object, names[i])))
            return false;
    return true;
}

/* It becomes the value of a label. */
static bool is_name(const char *name) {
    size_t length = name == NULL ? 0 : strnlen(name, HELPER_ANSWER_NAME);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < ' ' || name[i] == 127)
            return false;
    return length > 0 && length < HELPER_ANSWER_NAME;
}

static bool is_times(const json_t *value) {
    const json_t *counts = json_object_get(value, "counts");
    if (json_integer_value(json_object_get(value, "first_us")) != TIMES_FIRST ||
        json_array_size(counts) != TIMES_COUNT ||
        !helper_is_number(json_object_get(value, "sum_us")))
        return false;
    for (size_t i = 0; i < TIMES_COUNT; i++)
        if (!helper_is_number(json_array_get(counts, i)))
            return false;
    return true;
}

const json_t *helper_answer_lane(const json_t *pool, const char *name) {
    const json_t *lanes = json_object_get(pool, "lanes");
    for (size_t i = 0; i < json_array_size(lanes) && i < HELPER_LANES; i++) {
        const json_t *lane = json_array_get(lanes, i);
        const char *has = json_string_value(json_object_get(lane, "name"));
        if (has != NULL && strcmp(has, name) == 0)
            return lane;
    }
    return NULL;
}

static bool are_lanes(const json_t *pool) {
    for (size_t i = 0; i < HELPER_LANES; i++) {
        const json_t *lane = helper_answer_lane(pool, helper_lanes[i]);
        if (!have_numbers(lane, lane_members, sizeof lane_members / sizeof *lane_members) ||
            !is_times(json_object_get(lane, "waiting")) ||
            !is_times(json_object_get(lane, "working")))
            return false;
    }
    return true;
}

static bool are_refusals(json_t *refusals) {
    const char *name;
    json_t *value;
    if (!json_is_object(refusals) || json_object_size(refusals) > HELPER_ANSWER_REFUSALS)
        return false;
    json_object_foreach(refusals, name, value) {
        if (!is_name(name) || !helper_is_number(value))
            return false;
    }
    return true;
}

static bool is_pool(const json_t *pool) {
    return is_name(json_string_value(json_object_get(pool, "name"))) &&
           json_is_array(json_object_get(pool, "workers")) &&
           have_numbers(pool, pool_members, sizeof pool_members / sizeof *pool_members) &&
           are_lanes(pool) && are_refusals(json_object_get(pool, "refusals"));
}

/* Two samples with the same labels would spoil all of /metrics. */
static bool is_named_before(const json_t *pools, size_t at) {
    const char *name = json_string_value(json_object_get(json_array_get(pools, at), "name"));
    for (size_t i = 0; i < at; i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(pools, i), "name")), name) == 0)
            return true;
    return false;
}

bool helper_answer_good(const json_t *answer) {
    const json_t *pools = json_object_get(answer, "pools");
    if (!json_is_array(pools) || json_array_size(pools) > HELPER_ANSWER_POOLS)
        return false;
    for (size_t i = 0; i < json_array_size(pools); i++)
        if (!is_pool(json_array_get(pools, i)) || is_named_before(pools, i))
            return false;
    return true;
}

uint64_t helper_answer_number(const json_t *object, const char *name) {
    return (uint64_t)json_integer_value(json_object_get(object, name));
}

void helper_answer_times(const json_t *lane, const char *name, struct times *times) {
    const json_t *value = json_object_get(lane, name);
    const json_t *counts = json_object_get(value, "counts");
    *times = (struct times){.sum = helper_answer_number(value, "sum_us")};
    for (size_t i = 0; i < TIMES_COUNT; i++) {
        times->below[i] = (uint64_t)json_integer_value(json_array_get(counts, i));
        times->count += times->below[i];
    }
}
