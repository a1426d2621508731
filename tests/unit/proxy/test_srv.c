/* Servers that SRV records name: what becomes of an answer, and of the list of a group. */
#include "suites.h"

#include "origin/group.h"
#include "origin/member.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NOW = 1000000, ROOM = 8 };

struct answer {
    struct dns_target list[ROOM];
    struct dns_targets targets;
};

/* "priority weight port host", with commas between them. */
static const struct dns_targets *answer_of(struct answer *answer, const char *text) {
    memset(answer, 0, sizeof *answer);
    answer->targets = (struct dns_targets){.list = answer->list, .room = ROOM, .ttl = 60};
    for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, ',')) {
        struct dns_target *target = &answer->list[answer->targets.count++];
        at += *at == ',';
        int got = sscanf(at, "%hu %hu %hu %250[^,]", &target->priority, &target->weight,
                         &target->port, target->host);
        ck_assert_int_eq(got, 4);
    }
    return &answer->targets;
}

/* What is made of it: "text priority rank weight;" for each. */
static const char *made_of(const char *text, unsigned most, unsigned expected_left_out) {
    static char seen[1000];
    struct answer answer;
    struct origin_targets targets;
    answer_of(&answer, text);
    unsigned left_out =
        origin_targets_make(&targets, answer.list, answer.targets.count, "http", most);
    ck_assert_uint_eq(left_out, expected_left_out);
    seen[0] = '\0';
    for (size_t i = 0; i < targets.count; i++)
        sprintf(seen + strlen(seen), "%s %u %u %u;", targets.list[i].text, targets.list[i].priority,
                targets.list[i].rank, targets.list[i].weight);
    origin_targets_release(&targets);
    return seen;
}

START_TEST(targets_are_in_the_order_of_their_use) {
    ck_assert_str_eq(made_of("20 5 80 c,10 0 80 a,10 7 81 a", 9, 0),
                     "http://a:81 10 0 7;http://a:80 10 0 1;http://c:80 20 1 5;");
    ck_assert_str_eq(made_of("10 7 81 a,20 5 80 c,10 0 80 a", 9, 0),
                     "http://a:81 10 0 7;http://a:80 10 0 1;http://c:80 20 1 5;");
    ck_assert_str_eq(made_of("", 9, 0), "");
}
END_TEST

START_TEST(a_target_is_used_once) {
    ck_assert_str_eq(made_of("20 5 80 a,10 3 80 a,10 9 80 a", 9, 0), "http://a:80 10 0 9;");
}
END_TEST

START_TEST(too_many_targets_leave_out_the_last) {
    ck_assert_str_eq(made_of("3 1 80 c,1 1 80 a,2 1 80 b,1 5 80 d", 2, 2),
                     "http://d:80 1 0 5;http://a:80 1 0 1;");
}
END_TEST

START_TEST(the_largest_numbers) {
    ck_assert_str_eq(made_of("65535 65535 65535 a,0 65535 1 b", 9, 0),
                     "http://b:1 0 0 65535;http://a:65535 65535 1 65535;");
}
END_TEST

/* A group. */

static struct settings *the_settings;
static struct origin_groups *the_groups;

static struct origin_group *group_with(const char *servers, const char *options) {
    char text[1024];
    snprintf(text, sizeof text,
             "listen \":1\" { mode = reverse } map \"/\" { origin = g }\n"
             "origins g { servers = { %s } %s }\n",
             servers, options);
    struct settings *settings = settings_from(text);
    struct origin_groups *groups = origin_groups_new(settings, the_groups);
    origin_groups_release(&the_groups);
    settings_release(&the_settings);
    the_settings = settings;
    the_groups = groups;
    return groups->list[0];
}

static void release(void) {
    origin_groups_release(&the_groups);
    settings_release(&the_settings);
}

static struct origin_source *source_of(struct origin_group *group, unsigned number) {
    for (size_t i = 0; i < group->entry_count; i++)
        if (group->entries[i].source != NULL && number-- == 0)
            return group->entries[i].source;
    ck_abort_msg("the group has no such source");
    return NULL;
}

/* The group is told; text NULL: the name servers fail. */
static struct origin_news hear(struct origin_group *group, unsigned number, const char *text) {
    struct answer answer;
    struct origin_news news;
    origin_group_heard(group, source_of(group, number),
                       text != NULL ? answer_of(&answer, text) : NULL, "they fail", NOW, NULL,
                       &news);
    return news;
}

static const char *members_of(const struct origin_group *group) {
    static char seen[500];
    seen[0] = '\0';
    for (size_t i = 0; i < group->member_count; i++)
        sprintf(seen + strlen(seen), "%s/%u ", group->members[i]->host_port,
                group->members[i]->tier);
    return seen;
}

static enum origin_choice choose_one(struct origin_group *group, struct origin_member **chosen) {
    const struct origin_wish wish = {.repeatable = true};
    return origin_choose(group, &wish, NOW, chosen);
}

#define SRV(name) "\"http://_http._tcp." name " srv\""

START_TEST(tiers_are_priorities_and_then_backups) {
    struct origin_group *group = group_with("\"http://z backup\", \"http://y\", " SRV("x"), "");
    ck_assert_str_eq(members_of(group), "y:80/0 z:80/1 ");
    hear(group, 0, "7 1 80 c,5 1 80 a,5 1 80 b");
    ck_assert_str_eq(members_of(group), "y:80/0 a:80/0 b:80/0 c:80/1 z:80/2 ");
    ck_assert_uint_eq(group->tiers, 3);
    group = group_with("\"http://y\", \"http://_http._tcp.x srv backup\"", "");
    ck_assert_str_eq(members_of(group), "y:80/0 a:80/1 b:80/1 c:80/2 ");
    release();
}
END_TEST

START_TEST(the_next_tier_is_for_when_all_before_it_are_down) {
    struct origin_group *group =
        group_with(SRV("x"), "max_failures = 1 down_min = 1h down_max = 1h");
    struct origin_member *chosen = NULL;
    const char *order[] = {"a:80", "b:80", "c:80", "a:80"};
    hear(group, 0, "7 1 80 c,5 1 80 a,6 1 80 b");
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(choose_one(group, &chosen), ORIGIN_CHOSEN);
        ck_assert_str_eq(chosen->host_port, order[i]);
        origin_member_failed(group, chosen, NOW + i, false, "x");
    }
    release();
}
END_TEST

START_TEST(an_empty_group_waits_only_for_the_first_answer) {
    struct origin_group *group = group_with(SRV("x"), "");
    struct origin_member *chosen = NULL;
    ck_assert_int_eq(choose_one(group, &chosen), ORIGIN_ALL_FULL);
    ck_assert(hear(group, 0, NULL).changed); /* those who wait are told */
    ck_assert_int_eq(choose_one(group, &chosen), ORIGIN_NONE_LEFT);
    ck_assert(!hear(group, 0, NULL).changed);
    ck_assert(hear(group, 0, "1 1 80 a").changed);
    ck_assert_int_eq(choose_one(group, &chosen), ORIGIN_CHOSEN);
    ck_assert(!hear(group, 0, "1 1 80 a").changed);
    ck_assert(!hear(group, 0, NULL).changed);
    ck_assert_uint_eq(group->member_count, 1);
    ck_assert(hear(group, 0, "").changed); /* "." */
    ck_assert_int_eq(choose_one(group, &chosen), ORIGIN_NONE_LEFT);
    ck_assert_ptr_null(chosen);
    struct origin_group_report report;
    origin_group_report(group, NOW, &report);
    ck_assert_uint_eq(report.count, 0);
    ck_assert_str_eq(report.sources[0].state, "none");
    origin_group_report_release(&report);
    release();
}
END_TEST

START_TEST(a_backup_waits_for_the_first_answer_too) {
    struct origin_group *group = group_with(SRV("x") ", \"http://z backup\"", "");
    struct origin_member *chosen = NULL;
    ck_assert_int_eq(choose_one(group, &chosen), ORIGIN_ALL_FULL);
    hear(group, 0, NULL);
    ck_assert_int_eq(choose_one(group, &chosen), ORIGIN_CHOSEN);
    ck_assert_str_eq(chosen->host_port, "z:80");
    group = group_with("\"http://y\", " SRV("w") ", \"http://z backup\"", "");
    ck_assert_int_eq(choose_one(group, &chosen), ORIGIN_CHOSEN);
    ck_assert_str_eq(chosen->host_port, "y:80");
    release();
}
END_TEST

START_TEST(members_that_stay_keep_their_state) {
    struct origin_group *group = group_with(SRV("x"), "max_failures = 1");
    hear(group, 0, "1 1 80 a,1 1 80 b");
    struct origin_member *b = group->members[1];
    origin_member_failed(group, b, NOW, false, "x");
    b->references++; /* a request is under way */
    hear(group, 0, "1 9 80 b,1 1 80 c");
    ck_assert_str_eq(members_of(group), "b:80/0 c:80/0 ");
    ck_assert_ptr_eq(group->members[0], b);
    ck_assert_int_eq(b->state, ORIGIN_MEMBER_DOWN);
    ck_assert_uint_eq(b->weight, 9);
    group = group_with(SRV("x"), "max_failures = 2"); /* a reload */
    ck_assert_ptr_eq(group->members[0], b);
    ck_assert_int_eq(source_of(group, 0)->state, ORIGIN_SOURCE_FOUND);
    /* Other addresses are allowed to it, or it is called otherwise: no state, no connection. */
    group = group_with(SRV("x"), "local_destinations = allow");
    ck_assert_ptr_ne(group->members[0], b);
    ck_assert(!b->listed);
    ck_assert_int_eq(group->members[0]->egress, EGRESS_FOUND_LOCAL);
    group = group_with("\"http://_http._tcp.x srv name=other\"", "");
    ck_assert_uint_eq(group->member_count, 0);
    origin_group_drop_member(group, &b);
    release();
}
END_TEST

START_TEST(a_server_is_in_the_list_once) {
    struct origin_group *group = group_with(SRV("x") ", " SRV("w") ", \"http://A:80\"", "");
    hear(group, 0, "1 1 80 a,1 1 80 b");
    hear(group, 1, "1 1 80 b,1 1 81 b");
    ck_assert_str_eq(members_of(group), "b:80/0 b:81/0 A:80/0 ");
    ck_assert_uint_eq(source_of(group, 0)->doubled, 1);
    ck_assert_uint_eq(source_of(group, 1)->doubled, 1);
    release();
}
END_TEST

START_TEST(what_an_answer_says_of_its_time_is_bounded) {
    struct origin_group *group = group_with(SRV("x"), "srv_ttl_min = 2s srv_ttl_max = 9s");
    const struct {
        uint32_t ttl;
        uint64_t kept;
    } times[] = {{0, 2000}, {1, 2000}, {5, 5000}, {10, 9000}, {INT32_MAX, 9000}};
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        struct answer answer;
        struct origin_news news;
        answer_of(&answer, "1 1 80 a");
        answer.targets.ttl = times[i].ttl;
        origin_group_heard(group, source_of(group, 0), &answer.targets, NULL, NOW, NULL, &news);
        ck_assert_uint_eq(news.ask_at, NOW + times[i].kept);
    }
    ck_assert_uint_eq(hear(group, 0, NULL).ask_at, NOW + 2000);
    release();
}
END_TEST

START_TEST(an_answer_for_a_source_that_is_gone) {
    struct origin_group *group = group_with(SRV("x"), "");
    struct origin_source **held = origin_group_hold_sources(group), *source = held[0];
    struct answer answer;
    struct origin_news news;
    group = group_with("\"http://y\"", "");
    origin_group_heard(group, source, answer_of(&answer, "1 1 80 a"), NULL, NOW, NULL, &news);
    ck_assert_uint_eq(news.ask_at, TIMER_NEVER);
    ck_assert_str_eq(members_of(group), "y:80/0 ");
    origin_group_drop_source(group, &source);
    free(held);
    release();
}
END_TEST

/* Microseconds of the processor that a hundred answers take which name the same servers in the
 * contrary order of their weights. */
static uint64_t answers_cost(unsigned servers) {
    static struct dns_target list[DNS_TARGETS_MAX];
    struct origin_group *group = group_with(SRV("x"), "srv_servers = 1024");
    struct timespec begun, ended;
    struct origin_news news;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
    for (unsigned n = 0; n < 100; n++) {
        const struct dns_targets answer = {.list = list, .room = DNS_TARGETS_MAX, .count = servers};
        for (unsigned i = 0; i < servers; i++) {
            list[i] = (struct dns_target){1, (uint16_t)(n % 2 ? i + 1 : servers - i), 80, ""};
            snprintf(list[i].host, sizeof list[i].host, "host-%04u.example", i);
        }
        origin_group_heard(group, source_of(group, 0), &answer, NULL, NOW, NULL, &news);
        ck_assert(news.changed);
        ck_assert_uint_eq(group->member_count, servers);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    release();
    return (uint64_t)((ended.tv_sec - begun.tv_sec) * 1000000 +
                      (ended.tv_nsec - begun.tv_nsec) / 1000);
}

/* Sixteen times the servers: n log n makes that 28 times the work, n * n 256 times. */
START_TEST(long_answers_cost_little) {
    uint64_t few = answers_cost(64), many = answers_cost(1024);
    ck_assert_msg(many < 60 * (few + 1), "64 servers take %llu us, 1024 take %llu",
                  (unsigned long long)few, (unsigned long long)many);
}
END_TEST

Suite *srv_suite(void) {
    const TTest *const tests[] = {
        targets_are_in_the_order_of_their_use,
        a_target_is_used_once,
        too_many_targets_leave_out_the_last,
        the_largest_numbers,
        tiers_are_priorities_and_then_backups,
        the_next_tier_is_for_when_all_before_it_are_down,
        an_empty_group_waits_only_for_the_first_answer,
        a_backup_waits_for_the_first_answer_too,
        members_that_stay_keep_their_state,
        a_server_is_in_the_list_once,
        what_an_answer_says_of_its_time_is_bounded,
        an_answer_for_a_source_that_is_gone,
        long_answers_cost_little,
    };
    return suite_of("srv", tests, COUNT_OF(tests));
}
