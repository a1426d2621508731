/* What retort-helperd answers about its pools: /metrics shows it whole, or not at all. */
#include "suites.h"

#include "admin/helper_answer.h"

#include <string.h>

static json_t *times(void) {
    json_t *counts = json_array();
    for (unsigned i = 0; i < TIMES_COUNT; i++)
        json_array_append_new(counts, json_integer(i));
    return json_pack("{s:i, s:i, s:o}", "first_us", TIMES_FIRST, "sum_us", 5000, "counts", counts);
}

static json_t *lane(const char *name) {
    return json_pack("{s:s, s:i, s:i, s:o, s:o}", "name", name, "queued", 1, "at_work", 2,
                     "waiting", times(), "working", times());
}

static json_t *pool(const char *name) {
    return json_pack("{s:s, s:[], s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:[o, o], s:{s:i}}",
                     "name", name, "workers", "served", 7, "unchanged", 1, "failed", 2, "refused",
                     3, "timeouts", 4, "cancelled", 5, "restarts", 6, "broken", 0, "cpu_ms", 8,
                     "lanes", lane("small"), lane("large"), "refusals", "queue_full", 3);
}

static json_t *good(void) {
    json_t *answer = json_pack("{s:[o, o]}", "pools", pool("gray"), pool("text"));
    ck_assert_ptr_nonnull(answer);
    return answer;
}

START_TEST(a_good_answer_has_numbers) {
    json_t *answer = good();
    struct times of;
    ck_assert(helper_answer_good(answer));
    const json_t *first = json_array_get(json_object_get(answer, "pools"), 0);
    ck_assert_uint_eq(helper_answer_number(first, "served"), 7);
    helper_answer_times(helper_answer_lane(first, "large"), "waiting", &of);
    ck_assert_uint_eq(of.sum, 5000);
    ck_assert_uint_eq(of.below[1], 1);
    ck_assert_uint_eq(of.count, TIMES_COUNT * (TIMES_COUNT - 1) / 2);
    json_decref(answer);
    answer = json_pack("{s:[]}", "pools");
    ck_assert(helper_answer_good(answer));
    json_decref(answer);
}
END_TEST

/* Every member of a pool is needed, and can be spoilt by each kind of value. */
static void spoil_each(json_t *(*find)(json_t *answer), const char *left_out) {
    json_t *answer = good(), *object = find(answer);
    static const char *const values[] = {"null",     "-1",   "1.5",  "9007199254740993", "\"\"",
                                         "\"a\\n\"", "true", "[[]]", "{\"a\":-1}"};
    json_t *members = json_copy(object), *before;
    const char *name;
    ck_assert_uint_gt(json_object_size(object), 2);
    json_object_foreach(members, name, before) {
        if (left_out != NULL && strcmp(name, left_out) == 0)
            continue;
        json_object_del(object, name);
        ck_assert_msg(!helper_answer_good(answer), "without %s", name);
        for (size_t i = 0; i < COUNT_OF(values); i++) {
            if (json_is_array(before) && values[i][0] == '[' && json_array_size(before) == 0)
                continue;
            json_object_set_new(object, name, json_loads(values[i], JSON_DECODE_ANY, NULL));
            ck_assert_msg(!helper_answer_good(answer), "%s = %s", name, values[i]);
        }
        json_object_set(object, name, before);
        ck_assert_msg(helper_answer_good(answer), "%s as it was", name);
    }
    json_decref(members);
    json_decref(answer);
}

static json_t *second_pool(json_t *answer) {
    return json_array_get(json_object_get(answer, "pools"), 1);
}

static json_t *large_lane(json_t *answer) {
    return json_array_get(json_object_get(second_pool(answer), "lanes"), 1);
}

static json_t *times_working(json_t *answer) {
    return json_object_get(large_lane(answer), "working");
}

START_TEST(every_member_is_looked_at) {
    spoil_each(second_pool, NULL);
    spoil_each(large_lane, NULL);
    spoil_each(times_working, NULL);
}
END_TEST

START_TEST(two_pools_of_one_name_are_refused) {
    json_t *answer = good();
    json_object_set_new(second_pool(answer), "name", json_string("gray"));
    ck_assert(!helper_answer_good(answer));
    json_decref(answer);
}
END_TEST

START_TEST(names_are_short) {
    char name[HELPER_ANSWER_NAME + 1];
    json_t *answer = good();
    memset(name, 'x', sizeof name);
    name[HELPER_ANSWER_NAME - 1] = '\0';
    json_object_set_new(second_pool(answer), "name", json_string(name));
    ck_assert(helper_answer_good(answer));
    name[HELPER_ANSWER_NAME - 1] = 'x';
    name[HELPER_ANSWER_NAME] = '\0';
    json_object_set_new(second_pool(answer), "name", json_string(name));
    ck_assert(!helper_answer_good(answer));
    json_decref(answer);
}
END_TEST

START_TEST(counts_of_things_are_bounded) {
    json_t *answer = good(), *pools = json_object_get(answer, "pools");
    json_t *refusals = json_object_get(second_pool(answer), "refusals");
    char name[20];
    for (unsigned i = 1; i < HELPER_ANSWER_REFUSALS; i++) {
        snprintf(name, sizeof name, "r%u", i);
        json_object_set_new(refusals, name, json_integer(1));
    }
    ck_assert(helper_answer_good(answer));
    json_object_set_new(refusals, "one more", json_integer(1));
    ck_assert(!helper_answer_good(answer));
    json_object_del(refusals, "one more");
    for (unsigned i = 2; i < HELPER_ANSWER_POOLS; i++) {
        snprintf(name, sizeof name, "p%u", i);
        json_array_append_new(pools, pool(name));
    }
    ck_assert(helper_answer_good(answer));
    json_array_append_new(pools, pool("one more"));
    ck_assert(!helper_answer_good(answer));
    json_decref(answer);
}
END_TEST

START_TEST(what_is_no_answer_is_refused) {
    static const char *const texts[] = {"null",
                                        "[]",
                                        "{}",
                                        "{\"pools\":{}}",
                                        "{\"pools\":[1]}",
                                        "{\"pools\":[{}]}",
                                        "{\"pools\":[{\"name\":\"x\"}]}"};
    ck_assert(!helper_answer_good(NULL));
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        json_t *answer = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        ck_assert_msg(!helper_answer_good(answer), "%s", texts[i]);
        json_decref(answer);
    }
}
END_TEST

Suite *helper_answer_suite(void) {
    const TTest *const tests[] = {
        a_good_answer_has_numbers, every_member_is_looked_at,    two_pools_of_one_name_are_refused,
        names_are_short,           counts_of_things_are_bounded, what_is_no_answer_is_refused,
    };
    return suite_of("helper_answer", tests, COUNT_OF(tests));
}
