/* Purges that concern what is on disk: numbers, judgement, forgetting, and what of them is kept. */
#include "suites.h"

#include "disk/purge_log.h"

enum { LIMIT = 100000 };

static struct purge_slots unused;

static struct purge_log the_log;

static struct object *object_at(const char *url, const char *tag) {
    struct http_head request, response;
    struct freshness freshness = {.lifetime = 60};
    http_head_init(&request);
    http_head_init(&response);
    request.method_id = HTTP_METHOD_GET;
    response.version = 11;
    response.status = 200;
    response.reason = SLICE("OK");
    if (tag != NULL)
        http_head_add(&response, SLICE("Surrogate-Key"), slice_from(tag));
    struct slice text = slice_from(url);
    struct body *body = body_of_bytes(SLICE(""));
    struct object *object =
        object_new(cache_key_of(text), text, &request, &response, &freshness, body);
    body_release(&body);
    return object;
}

static uint64_t add(const struct object_filter *filter, enum purge_action action) {
    uint64_t number = purge_log_add(&the_log, filter, action, &unused);
    purge_slots_release(&unused);
    return number;
}

static enum purge_action judge(const char *url, const char *tag, uint64_t number) {
    struct object *object = object_at(url, tag);
    enum purge_action action = purge_log_judge(&the_log, object, number);
    object_release(&object);
    return action;
}

static uint64_t add_prefix(const char *prefix, enum purge_action action) {
    struct object_filter filter = {.prefix = slice_from(prefix)};
    return add(&filter, action);
}

static uint64_t add_regex(const char *text) {
    struct regexes regex;
    struct object_filter filter = {.regex = &regex, .regex_text = text};
    regexes_compile(&regex, (char *[]){(char *)text, NULL});
    uint64_t number = add(&filter, PURGE_REMOVE);
    regexes_release(&regex);
    return number;
}

/* As after a restart. */
static void write_and_read(size_t most) {
    struct purge_slots slots = {0};
    purge_log_sum_up(&the_log, 0, most, &slots);
    uint64_t floor = purge_log_floor(&the_log), newest = purge_log_newest(&the_log);
    ck_assert_uint_le(slots.count, most);
    purge_log_release(&the_log);
    purge_log_init(&the_log);
    purge_log_read(&the_log, slots.all, slots.count);
    purge_log_raise(&the_log, floor, newest);
    purge_slots_release(&slots);
}

START_TEST(what_is_older_is_judged) {
    purge_log_init(&the_log);
    ck_assert_int_eq(judge("http://a/1", NULL, 0), PURGE_NOTHING);
    uint64_t first = add_prefix("http://a/", PURGE_STALE);
    uint64_t second = add_prefix("http://a/1", PURGE_REMOVE);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_gt(second, first);
    ck_assert_uint_eq(purge_log_newest(&the_log), second);
    ck_assert_int_eq(judge("http://a/1", NULL, 0), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://a/1", NULL, first), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://a/1", NULL, second), PURGE_NOTHING);
    ck_assert_int_eq(judge("http://a/2", NULL, 0), PURGE_STALE);
    ck_assert_int_eq(judge("http://a/2", NULL, first), PURGE_NOTHING);
    ck_assert_int_eq(judge("http://b/", NULL, 0), PURGE_NOTHING);
    purge_log_release(&the_log);
}
END_TEST

START_TEST(all_kinds_are_known_after_a_restart) {
    purge_log_init(&the_log);
    struct object_filter host = {.host = SLICE("h.org")}, tag = {.tag = SLICE("red")};
    uint64_t first = add(&host, PURGE_REMOVE);
    add(&tag, PURGE_STALE);
    add_regex("/\\d+$");
    uint64_t newest = add_prefix("http://p/", PURGE_REMOVE);
    for (unsigned round = 0; round < 3; round++) {
        ck_assert_int_eq(judge("http://h.org/", NULL, 0), PURGE_REMOVE);
        ck_assert_int_eq(judge("http://h.org/", NULL, first), PURGE_NOTHING);
        ck_assert_int_eq(judge("http://a/x", "blue red", 0), PURGE_STALE);
        ck_assert_int_eq(judge("http://a/12", NULL, 0), PURGE_REMOVE);
        ck_assert_int_eq(judge("http://a/x", "blue", 0), PURGE_NOTHING);
        ck_assert_int_eq(judge("http://p/x", NULL, newest - 1), PURGE_REMOVE);
        ck_assert_int_eq(judge("http://p/x", NULL, newest), PURGE_NOTHING);
        write_and_read(LIMIT);
    }
    ck_assert_uint_gt(add_prefix("http://q/", PURGE_REMOVE), newest);
    purge_log_release(&the_log);
}
END_TEST

/* Each volume has all of them. */
START_TEST(what_is_known_is_not_added_again) {
    struct purge_slots slots = {0}, again = {0}, part = {0};
    purge_log_init(&the_log);
    for (unsigned i = 0; i < 5; i++) {
        add_prefix("http://p/", i % 2 == 0 ? PURGE_REMOVE : PURGE_STALE);
        add_regex("/\\d+$");
    }
    purge_log_sum_up(&the_log, 0, LIMIT, &slots);
    for (size_t count = 0; count <= slots.count; count++)
        purge_log_read(&the_log, slots.all, count);
    purge_log_sum_up(&the_log, 0, LIMIT, &again);
    ck_assert_uint_eq(slots.count, again.count);
    ck_assert_mem_eq(slots.all, again.all, slots.count * sizeof *slots.all);
    /* Any bytes do no harm. */
    purge_slots_append(&part, slots.all, slots.count);
    for (size_t at = 0; at < part.count * sizeof *part.all; at++) {
        ((unsigned char *)part.all)[at] ^= 0xff;
        purge_log_read(&the_log, part.all, part.count);
        ((unsigned char *)part.all)[at] ^= 0xff;
    }
    purge_slots_release(&slots);
    purge_slots_release(&again);
    purge_slots_release(&part);
    purge_log_release(&the_log);
}
END_TEST

START_TEST(bytes_that_are_no_utf8_are_kept) {
    purge_log_init(&the_log);
    add_prefix("http://a/\xff\xc3\x28", PURGE_REMOVE);
    add_prefix("http://a/\xc3\xa4", PURGE_REMOVE);
    add_regex("\xfe$");
    add_prefix("http://b/", PURGE_REMOVE);
    for (unsigned round = 0; round < 2; round++) {
        ck_assert_int_eq(judge("http://a/\xff\xc3\x28/x", NULL, 0), PURGE_REMOVE);
        ck_assert_int_eq(judge("http://a/\xc3\xa4", NULL, 0), PURGE_REMOVE);
        ck_assert_int_eq(judge("http://a/\xc3\xa5", NULL, 0), PURGE_NOTHING);
        ck_assert_int_eq(judge("http://c/\xfe", NULL, 0), PURGE_REMOVE);
        ck_assert_int_eq(judge("http://b/", NULL, 0), PURGE_REMOVE);
        write_and_read(LIMIT);
    }
    purge_log_release(&the_log);
}
END_TEST

static void forget(uint64_t oldest, size_t most) {
    struct purge_slots slots = {0};
    purge_log_sum_up(&the_log, oldest, most, &slots);
    ck_assert_uint_le(slots.count, most);
    purge_slots_release(&slots);
}

START_TEST(what_concerns_nothing_is_forgotten) {
    purge_log_init(&the_log);
    uint64_t first = add_prefix("http://a/", PURGE_REMOVE);
    uint64_t second = add_prefix("http://b/", PURGE_REMOVE);
    forget(second, 2); /* there is room for what may be on its way */
    ck_assert_int_eq(judge("http://c/", NULL, first - 1), PURGE_NOTHING);
    forget(first, 1);
    ck_assert_int_eq(judge("http://b/", NULL, first), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://c/", NULL, first), PURGE_NOTHING);
    forget(second, 0);
    /* From a request that was on its way meanwhile, and may be concerned by what is forgotten. */
    ck_assert_int_eq(judge("http://a/", NULL, first - 1), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://b/", NULL, first), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://b/", NULL, second), PURGE_NOTHING);
    write_and_read(LIMIT);
    ck_assert_int_eq(judge("http://b/", NULL, first), PURGE_REMOVE);
    purge_log_release(&the_log);
}
END_TEST

START_TEST(generations_are_kept) {
    purge_log_init(&the_log);
    add_prefix("http://p/", PURGE_REMOVE);
    purge_log_keep_generation(&the_log, UINT64_MAX, 1);
    for (uint64_t i = 1; i <= PURGE_LOG_SERVICES; i++)
        purge_log_keep_generation(&the_log, i, i + 7);
    purge_log_keep_generation(&the_log, 1, 5);  /* one that is older */
    purge_log_keep_generation(&the_log, 2, 10); /* now bumped last */
    purge_log_keep_generation(&the_log, PURGE_LOG_SERVICES + 1, 1);
    for (unsigned round = 0; round < 2; round++) {
        ck_assert_uint_eq(purge_log_kept_generation(&the_log, UINT64_MAX), 0);
        ck_assert_uint_eq(purge_log_kept_generation(&the_log, 1), 0);
        ck_assert_uint_eq(purge_log_kept_generation(&the_log, 2), 10);
        ck_assert_uint_eq(purge_log_kept_generation(&the_log, 3), 10);
        ck_assert_uint_eq(purge_log_kept_generation(&the_log, PURGE_LOG_SERVICES + 1), 1);
        ck_assert_int_eq(judge("http://p/x", NULL, 0), PURGE_REMOVE);
        write_and_read(LIMIT);
    }
    purge_log_release(&the_log);
}
END_TEST

START_TEST(too_many_cost_what_is_old) {
    uint64_t numbers[200];
    char prefix[64];
    purge_log_init(&the_log);
    for (unsigned i = 0; i < 200; i++) {
        snprintf(prefix, sizeof prefix, "http://a/%u/", i);
        numbers[i] = add_prefix(prefix, PURGE_REMOVE);
    }
    write_and_read(120);
    ck_assert_int_eq(judge("http://b/", NULL, 0), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://b/", NULL, numbers[50]), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://b/", NULL, numbers[150]), PURGE_NOTHING);
    ck_assert_int_eq(judge("http://a/199/", NULL, numbers[150]), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://a/199/", NULL, numbers[199]), PURGE_NOTHING);
    purge_log_release(&the_log);
}
END_TEST

/* The same keys over and over: the list is as long as they are many. */
START_TEST(what_is_purged_again_takes_no_more_room) {
    purge_log_init(&the_log);
    uint64_t first = add_prefix("http://b/", PURGE_REMOVE);
    for (unsigned i = 0; i < 5000; i++)
        add_prefix(i % 2 == 0 ? "http://a/" : "http://c/", PURGE_REMOVE);
    write_and_read(3);
    ck_assert_uint_eq(purge_log_floor(&the_log), 0);
    ck_assert_int_eq(judge("http://d/", NULL, 0), PURGE_NOTHING);
    ck_assert_int_eq(judge("http://a/", NULL, first), PURGE_REMOVE);
    ck_assert_int_eq(judge("http://b/", NULL, first - 1), PURGE_REMOVE);
    purge_log_release(&the_log);
}
END_TEST

/* Records know of purges that nobody else does: whatever they were, and whatever comes. */
START_TEST(a_lost_list_costs_what_knew_it) {
    purge_log_init(&the_log);
    uint64_t number = add_prefix("http://a/", PURGE_REMOVE);
    purge_log_release(&the_log);
    purge_log_init(&the_log);
    ck_assert_int_eq(judge("http://b/", NULL, number), PURGE_REMOVE);
    add_prefix("http://c/", PURGE_REMOVE);
    ck_assert_int_eq(judge("http://c/", NULL, number), PURGE_REMOVE);
    purge_log_release(&the_log);
}
END_TEST

Suite *purge_log_suite(void) {
    const TTest *tests[] = {
        what_is_older_is_judged,
        all_kinds_are_known_after_a_restart,
        what_is_known_is_not_added_again,
        bytes_that_are_no_utf8_are_kept,
        what_concerns_nothing_is_forgotten,
        generations_are_kept,
        too_many_cost_what_is_old,
        what_is_purged_again_takes_no_more_room,
        a_lost_list_costs_what_knew_it,
    };
    return suite_of("purge_log", tests, COUNT_OF(tests));
}
