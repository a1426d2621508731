/* Groups of origins: which member is chosen, and how its health moves. */
#include "suites.h"

#include "origin/group.h"

#include <string.h>

enum { NOW = 1000000 };

static struct origin_groups *the_groups;
static struct settings *the_settings;

/* A group of the servers a:80, b:80, ... with these options. */
static struct origin_group *group_of(const char *servers, const char *options) {
    char text[1024];
    snprintf(text, sizeof text,
             "listen \":1\" { mode = reverse } map \"/\" { origin = g }\n"
             "origins g { servers = { %s } %s }\n",
             servers, options);
    the_settings = settings_from(text);
    the_groups = origin_groups_new(the_settings, NULL);
    return the_groups->list[0];
}

static void release(void) {
    origin_groups_release(&the_groups);
    settings_release(&the_settings);
}

static struct origin_member *choose(struct origin_group *group, struct origin_wish wish,
                                    uint64_t now, enum origin_choice expected) {
    struct origin_member *chosen = NULL;
    ck_assert_int_eq(origin_choose(group, &wish, now, &chosen), expected);
    return chosen;
}

static char one(struct origin_group *group, uint64_t hash) {
    struct origin_wish wish = {.hash = hash, .repeatable = true};
    return choose(group, wish, NOW, ORIGIN_CHOSEN)->host_port[0];
}

START_TEST(turns_go_by_weight_and_are_spread) {
    struct origin_group *group =
        group_of("\"http://a weight=3\", \"http://b\", \"http://c\"", "balance = round_robin");
    char seen[11] = "";
    for (int i = 0; i < 10; i++)
        seen[i] = one(group, 0);
    ck_assert_str_eq(seen, "abacaabaca");
    release();
}
END_TEST

START_TEST(fewest_requests_for_its_weight) {
    struct origin_group *group =
        group_of("\"http://a weight=2\", \"http://b\"", "balance = least_connections");
    char seen[10] = "";
    for (int i = 0; i < 9; i++) {
        seen[i] = one(group, 0);
        group->members[seen[i] - 'a']->active++;
    }
    ck_assert_uint_eq(group->members[0]->active, 6);
    ck_assert_uint_eq(group->members[1]->active, 3);
    group->members[0]->active = group->members[1]->active = 0;
    release();
}
END_TEST

START_TEST(a_hash_moves_only_what_was_the_lost_members) {
    struct origin_group *group =
        group_of("\"http://a\", \"http://b\", \"http://c\", \"http://d weight=3\"",
                 "balance = consistent_hash");
    char before[6000];
    unsigned count[4] = {0}, moved = 0;
    for (uint64_t key = 0; key < sizeof before; key++)
        count[(before[key] = one(group, key * 0x9e3779b97f4a7c15u)) - 'a']++;
    for (int i = 0; i < 3; i++)
        ck_assert_msg(count[i] > 850 && count[i] < 1150, "member %d has %u", i, count[i]);
    ck_assert_msg(count[3] > 2800 && count[3] < 3200, "the heavy one has %u", count[3]);
    group->members[1]->state = ORIGIN_MEMBER_DOWN;
    group->members[1]->retry_at = UINT64_MAX;
    for (uint64_t key = 0; key < sizeof before; key++) {
        char after = one(group, key * 0x9e3779b97f4a7c15u);
        ck_assert(after != 'b');
        if (before[key] != 'b')
            ck_assert_int_eq(after, before[key]);
        else
            moved++;
    }
    ck_assert_uint_eq(moved, count[1]);
    release();
}
END_TEST

START_TEST(full_members_are_passed_over) {
    struct origin_group *group =
        group_of("\"http://a\", \"http://b\", \"http://c backup\"", "max_connections = 1");
    struct origin_wish wish = {.repeatable = true};
    group->members[0]->active = 1;
    ck_assert_int_eq(one(group, 0), 'b');
    group->members[1]->active = 1;
    choose(group, wish, NOW, ORIGIN_ALL_FULL); /* a backup is for what is down, not for load */
    wish.tried = &group->members[0]->number;
    wish.tried_count = 1;
    choose(group, wish, NOW, ORIGIN_ALL_FULL);
    group->members[0]->active = group->members[1]->active = 0;
    ck_assert_int_eq(choose(group, wish, NOW, ORIGIN_CHOSEN)->host_port[0], 'b');
    release();
}
END_TEST

START_TEST(failures_in_a_row_bring_it_down) {
    struct origin_group *group =
        group_of("\"http://a\", \"http://b\"", "max_failures = 2 down_min = 1s down_max = 3s");
    struct origin_member *a = group->members[0];
    struct origin_wish wish = {.repeatable = true}, sent_once = {.repeatable = false};
    ck_assert(!origin_member_failed(group, a, NOW, false, "x"));
    origin_member_succeeded(group, a, NOW);
    ck_assert(!origin_member_failed(group, a, NOW, false, "x"));
    ck_assert(origin_member_failed(group, a, NOW, false, "x"));
    for (int i = 0; i < 4; i++)
        ck_assert_ptr_eq(choose(group, wish, NOW + 999, ORIGIN_CHOSEN), group->members[1]);
    /* Half open: one that may be repeated, and first of all. */
    choose(group, sent_once, NOW + 1000, ORIGIN_CHOSEN);
    ck_assert_ptr_eq(choose(group, wish, NOW + 1000, ORIGIN_CHOSEN_PROBE), a);
    ck_assert_ptr_eq(choose(group, sent_once, NOW + 2000, ORIGIN_CHOSEN_PROBE), a);
    a->probing = true;
    choose(group, wish, NOW + 1000, ORIGIN_CHOSEN);
    a->probing = false;
    /* The pauses grow, to the largest. */
    ck_assert(!origin_member_failed(group, a, NOW + 1000, true, "x"));
    ck_assert_uint_eq(a->retry_at, NOW + 3000);
    ck_assert(!origin_member_failed(group, a, NOW + 3000, true, "x"));
    ck_assert_uint_eq(a->retry_at, NOW + 6000);
    origin_member_succeeded(group, a, NOW + 6000);
    ck_assert_int_eq(a->state, ORIGIN_MEMBER_UP);
    release();
}
END_TEST

START_TEST(all_down_means_the_one_that_failed_first) {
    struct origin_group *group = group_of("\"http://a\", \"http://b\", \"http://c backup\"",
                                          "max_failures = 1 down_min = 1h down_max = 1h");
    struct origin_wish wish = {.repeatable = true};
    origin_member_failed(group, group->members[1], NOW, false, "x");
    origin_member_failed(group, group->members[0], NOW + 1, false, "x");
    ck_assert_int_eq(one(group, 0), 'c'); /* the backup's hour */
    origin_member_failed(group, group->members[2], NOW + 2, false, "x");
    ck_assert_int_eq(one(group, 0), 'b');
    origin_member_failed(group, group->members[1], NOW + 3, false, "x");
    ck_assert_int_eq(one(group, 0), 'a');
    wish.only_up = true;
    choose(group, wish, NOW, ORIGIN_NONE_LEFT);
    release();
}
END_TEST

START_TEST(a_backup_is_not_tried_while_it_is_not_needed) {
    struct origin_group *group =
        group_of("\"http://a\", \"http://b backup\"", "max_failures = 1 down_min = 1s");
    struct origin_wish wish = {.repeatable = true};
    struct origin_member *a = group->members[0], *b = group->members[1];
    origin_member_failed(group, b, NOW, false, "x");
    ck_assert_ptr_eq(choose(group, wish, NOW + 1000000, ORIGIN_CHOSEN), a);
    origin_member_failed(group, a, NOW + 1000000, false, "x");
    ck_assert_ptr_eq(choose(group, wish, NOW + 1000000, ORIGIN_CHOSEN_PROBE), b);
    release();
}
END_TEST

START_TEST(a_share_grows_slowly) {
    struct origin_group *group = group_of("\"http://a weight=2\"", "slow_start = 1000ms");
    struct origin_member *a = group->members[0];
    ck_assert_uint_eq(origin_member_share(group, a, NOW), 512);
    a->up_since = NOW;
    ck_assert_uint_eq(origin_member_share(group, a, NOW), 32);
    ck_assert_uint_eq(origin_member_share(group, a, NOW - 5), 32); /* another worker's clock */
    ck_assert_uint_eq(origin_member_share(group, a, NOW + 500), 272);
    ck_assert_uint_eq(origin_member_share(group, a, NOW + 1000), 512);
    release();
}
END_TEST

START_TEST(a_reload_keeps_members_by_their_url) {
    struct origin_group *group = group_of("\"http://a\", \"http://b\"", "max_failures = 1");
    struct origin_member *b = group->members[1];
    origin_member_failed(group, b, NOW, false, "x");
    struct settings *settings =
        settings_from("listen \":1\" { mode = reverse } map \"/\" { origin = g }\n"
                      "origins h { servers = \"http://x\" }\n"
                      "origins g { servers = { \"http://c\", \"http://b weight=7\" } }\n");
    struct origin_groups *groups = origin_groups_new(settings, the_groups);
    release();
    ck_assert_ptr_eq(groups->list[1], group);
    ck_assert_ptr_eq(group->members[1], b);
    ck_assert_uint_eq(b->weight, 7);
    ck_assert_int_eq(b->state, ORIGIN_MEMBER_DOWN);
    ck_assert_str_eq(group->members[0]->host_port, "c:80");
    origin_groups_release(&groups);
    settings_release(&settings);
}
END_TEST

Suite *origins_suite(void) {
    const TTest *const tests[] = {
        turns_go_by_weight_and_are_spread,
        fewest_requests_for_its_weight,
        a_hash_moves_only_what_was_the_lost_members,
        full_members_are_passed_over,
        failures_in_a_row_bring_it_down,
        all_down_means_the_one_that_failed_first,
        a_backup_is_not_tried_while_it_is_not_needed,
        a_share_grows_slowly,
        a_reload_keeps_members_by_their_url,
    };
    return suite_of("origins", tests, COUNT_OF(tests));
}
