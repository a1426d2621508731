/* Which servers are known as verified, for how long, and who verifies one that is not. */
#include "suites.h"

#include "base/assert.h"
#include "intercept/server_identity.h"

#include <stdio.h>
#include <string.h>

enum { NOW = 1000, HOUR = 3600 };

static struct loop loop;
static struct mailbox mailbox;
static struct server_identities *identities;

/* A request that wants to know a server. */
struct requester {
    struct task task;
    struct server_identity_turn turn;
    unsigned woken;
};

static void requester_on_wake(struct task *task) {
    CONTAINER_OF(task, struct requester, task)->woken++;
}

static void requester_init(struct requester *requester) {
    *requester = (struct requester){.woken = 0};
    task_init(&requester->task, requester_on_wake);
}

static const struct server_identity_key server = {
    .name = {"www.example.com", 15}, .port = 443, .trust = "0123"};

static struct server_identity good_until(int64_t not_after) {
    return (struct server_identity){
        .state = SERVER_IDENTITY_GOOD, .not_after = not_after, .issuer = "CN=CA"};
}

static enum server_identity_state find(const struct server_identity_key *key, time_t now) {
    struct server_identity identity;
    return server_identity_find(identities, key, now, &identity);
}

static enum server_identity_state ask(struct requester *requester) {
    struct server_identity identity;
    return server_identity_ask(identities, &server, NOW, &identity, &requester->turn, &mailbox,
                               &requester->task);
}

static void set_up(void) {
    ck_assert(loop_init(&loop));
    ck_assert(mailbox_init(&mailbox, &loop));
    identities = server_identities_new(100);
}

static void tear_down(void) {
    server_identities_free(&identities);
    mailbox_release(&mailbox);
    loop_release(&loop);
}

START_TEST(a_result_holds_for_its_time) {
    struct server_identity good = good_until(0), found;
    ck_assert_int_eq(find(&server, NOW), SERVER_IDENTITY_UNKNOWN);
    server_identity_note(identities, &server, &good, HOUR, NOW);
    ck_assert_int_eq(server_identity_find(identities, &server, NOW + HOUR - 1, &found),
                     SERVER_IDENTITY_GOOD);
    ck_assert_str_eq(found.issuer, "CN=CA");
    ck_assert_int_eq(find(&server, NOW + HOUR), SERVER_IDENTITY_UNKNOWN);
    struct server_identity bad = {.state = SERVER_IDENTITY_BAD, .reason = "it has expired"};
    server_identity_note(identities, &server, &bad, 30, NOW);
    ck_assert_int_eq(server_identity_find(identities, &server, NOW + 29, &found),
                     SERVER_IDENTITY_BAD);
    ck_assert_str_eq(found.reason, "it has expired");
    ck_assert_int_eq(find(&server, NOW + 30), SERVER_IDENTITY_UNKNOWN);
    server_identity_note(identities, &server, &good, HOUR, NOW);
    server_identity_forget(identities, &server);
    ck_assert_int_eq(find(&server, NOW), SERVER_IDENTITY_UNKNOWN);
}
END_TEST

START_TEST(a_certificate_ends_it) {
    struct server_identity good = good_until(time(NULL) + 100);
    server_identity_note(identities, &server, &good, HOUR, NOW);
    ck_assert_int_eq(find(&server, NOW + 95), SERVER_IDENTITY_GOOD);
    ck_assert_int_eq(find(&server, NOW + 101), SERVER_IDENTITY_UNKNOWN);
    good.not_after = time(NULL) - 1;
    server_identity_note(identities, &server, &good, HOUR, NOW);
    ck_assert_int_eq(find(&server, NOW), SERVER_IDENTITY_UNKNOWN);
}
END_TEST

START_TEST(all_of_the_key_is_compared) {
    struct address here, there;
    struct server_identity good = good_until(0);
    ck_assert(address_parse(&here, SLICE("192.0.2.1:443"), 0));
    ck_assert(address_parse(&there, SLICE("[2001:db8::1]:443"), 0));
    struct server_identity_key keys[] = {server, server, server, server, server, server};
    keys[1].name = SLICE("www.example.co");
    keys[2].port = 8443;
    keys[3].trust = "0124";
    keys[4].destination = &here;
    keys[5].destination = &there;
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        server_identity_note(identities, &keys[i], &good, HOUR, NOW);
        for (size_t j = 0; j < COUNT_OF(keys); j++)
            ck_assert_int_eq(find(&keys[j], NOW),
                             i == j ? SERVER_IDENTITY_GOOD : SERVER_IDENTITY_UNKNOWN);
        ck_assert_uint_eq(server_identities_clear(identities), 1);
    }
}
END_TEST

/* The host of a CONNECT may be any number of letters. */
START_TEST(names_that_are_too_long_are_not_remembered) {
    static char long_name[60000];
    struct requester requester;
    struct server_identity good = good_until(0), found;
    struct server_identity_key key = server;
    memset(long_name, 'a', sizeof long_name);
    key.name = slice_make(long_name, sizeof long_name);
    requester_init(&requester);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(server_identity_ask(identities, &key, NOW, &found, &requester.turn,
                                             &mailbox, &requester.task),
                         SERVER_IDENTITY_UNKNOWN);
        server_identity_note(identities, &key, &good, HOUR, NOW);
        ck_assert_int_eq(find(&key, NOW), SERVER_IDENTITY_UNKNOWN);
        server_identity_forget(identities, &key);
    }
    server_identity_turn_end(&requester.turn);
    ck_assert_uint_eq(server_identities_count(identities), 0);
}
END_TEST

START_TEST(one_verifies_and_others_wait) {
    struct requester first, second, third;
    struct server_identity good = good_until(0);
    requester_init(&first), requester_init(&second), requester_init(&third);
    ck_assert_int_eq(ask(&first), SERVER_IDENTITY_UNKNOWN);
    ck_assert_int_eq(ask(&second), SERVER_IDENTITY_WAITING);
    ck_assert_int_eq(ask(&third), SERVER_IDENTITY_WAITING);
    server_identity_turn_end(&third.turn); /* its client has left */
    server_identity_note(identities, &server, &good, HOUR, NOW);
    server_identity_turn_end(&first.turn);
    loop_run_once(&loop);
    ck_assert_uint_eq(first.woken, 0);
    ck_assert_uint_eq(second.woken, 1);
    ck_assert_uint_eq(third.woken, 0);
    ck_assert_int_eq(ask(&second), SERVER_IDENTITY_GOOD);
    server_identity_turn_end(&second.turn);
}
END_TEST

START_TEST(another_one_verifies_when_the_first_leaves) {
    struct requester first, second, third;
    requester_init(&first), requester_init(&second), requester_init(&third);
    ck_assert_int_eq(ask(&first), SERVER_IDENTITY_UNKNOWN);
    ck_assert_int_eq(ask(&second), SERVER_IDENTITY_WAITING);
    ck_assert_int_eq(ask(&third), SERVER_IDENTITY_WAITING);
    server_identity_turn_end(&first.turn);
    ck_assert_uint_eq(server_identities_count(identities), 0);
    loop_run_once(&loop);
    ck_assert_uint_eq(second.woken + third.woken, 2);
    ck_assert_int_eq(ask(&second), SERVER_IDENTITY_UNKNOWN);
    ck_assert_int_eq(ask(&third), SERVER_IDENTITY_UNKNOWN); /* it has waited */
    server_identity_turn_end(&second.turn);
    server_identity_turn_end(&third.turn);
    ck_assert_uint_eq(server_identities_count(identities), 0);
}
END_TEST

START_TEST(a_lifetime_of_zero_only_wakes) {
    struct requester first, second;
    struct server_identity good = good_until(0);
    requester_init(&first), requester_init(&second);
    ck_assert_int_eq(ask(&first), SERVER_IDENTITY_UNKNOWN);
    ck_assert_int_eq(ask(&second), SERVER_IDENTITY_WAITING);
    server_identity_note(identities, &server, &good, 0, NOW);
    ck_assert_int_eq(find(&server, NOW), SERVER_IDENTITY_UNKNOWN);
    server_identity_turn_end(&second.turn); /* while its message is on the way */
    loop_run_once(&loop);
    ck_assert_uint_eq(second.woken, 0);
    server_identity_turn_end(&first.turn);
}
END_TEST

START_TEST(an_evicted_server_wakes_its_waiters) {
    struct requester first, second;
    requester_init(&first), requester_init(&second);
    ck_assert_int_eq(ask(&first), SERVER_IDENTITY_UNKNOWN);
    ck_assert_int_eq(ask(&second), SERVER_IDENTITY_WAITING);
    server_identities_clear(identities);
    loop_run_once(&loop);
    ck_assert_uint_eq(second.woken, 1);
    server_identity_turn_end(&first.turn);
    server_identity_turn_end(&second.turn);
}
END_TEST

START_TEST(known_servers_have_a_limit) {
    struct server_identity good = good_until(0);
    char name[40];
    struct server_identity_key key = server;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "host-%d.test", i);
        key.name = slice_from(name);
        server_identity_note(identities, &key, &good, HOUR, NOW);
        ck_assert_int_eq(find(&key, NOW), SERVER_IDENTITY_GOOD);
    }
    ck_assert_uint_le(server_identities_count(identities), 112);
    ck_assert_uint_eq(server_identities_evicted(identities),
                      1000 - server_identities_count(identities));
    server_identities_set_limit(identities, 16);
    ck_assert_uint_le(server_identities_count(identities), 16);
}
END_TEST

Suite *server_identity_suite(void) {
    const TTest *const tests[] = {
        a_result_holds_for_its_time,   a_certificate_ends_it,
        all_of_the_key_is_compared,    names_that_are_too_long_are_not_remembered,
        one_verifies_and_others_wait,  another_one_verifies_when_the_first_leaves,
        a_lifetime_of_zero_only_wakes, an_evicted_server_wakes_its_waiters,
        known_servers_have_a_limit,
    };
    Suite *suite = suite_create("identity");
    TCase *cases = tcase_create("identity");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    for (size_t i = 0; i < COUNT_OF(tests); i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    return suite;
}
