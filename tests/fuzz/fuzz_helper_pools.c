/* What retort-helperd answers about its pools. The input is the JSON.
 *
 * What must be true: an answer that is good can be shown: all pools have names and differ in them,
 * all lanes are there, and the sums of their numbers have no overflow. */
#include "admin/helper_answer.h"

#include "base/assert.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pool(const json_t *pool) {
    const char *name = json_string_value(json_object_get(pool, "name"));
    ASSERT(name != NULL && *name != '\0' && strlen(name) < HELPER_ANSWER_NAME);
    ASSERT(helper_answer_number(pool, "served") <= (uint64_t)1 << 53);
    for (unsigned i = 0; i < HELPER_LANES; i++) {
        struct times times;
        const json_t *lane = helper_answer_lane(pool, helper_lanes[i]);
        ASSERT(lane != NULL);
        helper_answer_times(lane, "waiting", &times);
        for (unsigned j = 0; j < TIMES_COUNT; j++)
            ASSERT(times.below[j] <= times.count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    json_t *answer = json_loadb((const char *)data, size, 0, NULL);
    if (helper_answer_good(answer)) {
        const json_t *pools = json_object_get(answer, "pools");
        ASSERT(json_array_size(pools) <= HELPER_ANSWER_POOLS);
        for (size_t i = 0; i < json_array_size(pools); i++)
            check_pool(json_array_get(pools, i));
    }
    json_decref(answer);
    return 0;
}
