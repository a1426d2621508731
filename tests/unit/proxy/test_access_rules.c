/* What access sections decide while the user and the address of the host are not known yet. */
#include "suites.h"

#include "access/rules.h"
#include "match/rules.h"

#include <stdlib.h>

static const char classes[] = "listen \":1\" { mode = forward }\n"
                              "authenticator card { type = certificate }\n"
                              "authenticator other { type = certificate }\n"
                              "url_class bob { user = bob }\n"
                              "url_class nobody { not = { anybody } }\n"
                              "url_class anybody { user = \"*\" }\n"
                              "url_class near { destination = \"10.0.0.0/8\" }\n"
                              "url_class far { not = { near } }\n"
                              "url_class posts { method = POST }\n";

struct trial {
    const char *sections;
    const char *user, *authenticator, *address; /* NULL: not known */
    bool cannot_ask, cannot_resolve;
    enum access_outcome outcome;
    int section; /* from 1; 0: none */
};

static const struct trial trials[] = {
    {.sections = "access posts { action = deny }", .outcome = ACCESS_DENY},
    {.sections = "access posts { action = deny } access all { action = allow }",
     .outcome = ACCESS_ALLOW,
     .section = 2},
    {.sections = "access all { action = deny log_only = on } access all { action = tunnel }",
     .outcome = ACCESS_ALLOW,
     .section = 2},
    /* nobody is proved, and nobody can be asked: it counts against the client */
    {.sections = "access bob { action = deny } access all { action = allow }",
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access bob { action = allow } access posts { action = allow }",
     .outcome = ACCESS_DENY},
    {.sections = "access nobody { action = deny } access all { action = allow }",
     .outcome = ACCESS_DENY,
     .section = 1},
    /* a section further on asks */
    {.sections = "access bob { action = deny } access all { action = authenticate }",
     .outcome = ACCESS_ASK,
     .section = 2},
    {.sections = "access bob { action = deny } access all { action = authenticate }",
     .cannot_ask = true,
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access bob { action = deny } access posts { action = authenticate }",
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access bob { action = deny } access all { action = authenticate log_only = on } "
                 "access all { action = allow }",
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access bob { action = deny } access all { action = authenticate }",
     .user = "bob",
     .authenticator = "card",
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access bob { action = deny } access all { action = authenticate }",
     .user = "eve",
     .authenticator = "card",
     .outcome = ACCESS_ALLOW,
     .section = 2},
    /* a user of another authenticator is none */
    {.sections = "access all { action = authenticate with = { other } }",
     .user = "eve",
     .authenticator = "card",
     .outcome = ACCESS_ASK,
     .section = 1},
    {.sections = "access all { action = authenticate with = { other } }",
     .user = "eve",
     .authenticator = "card",
     .cannot_ask = true,
     .outcome = ACCESS_DENY,
     .section = 1},
    /* the address is sought before the user is asked */
    {.sections = "access near { action = deny } access all { action = authenticate }",
     .outcome = ACCESS_RESOLVE,
     .section = 1},
    {.sections = "access near { action = deny } access all { action = allow }",
     .address = "10.1.2.3",
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access near { action = deny } access all { action = allow }",
     .address = "192.0.2.1",
     .outcome = ACCESS_ALLOW,
     .section = 2},
    {.sections = "access far { action = deny } access all { action = allow }",
     .address = "192.0.2.1",
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access near { action = deny } access all { action = allow }",
     .cannot_resolve = true,
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access far { action = deny } access all { action = allow }",
     .cannot_resolve = true,
     .outcome = ACCESS_DENY,
     .section = 1},
    {.sections = "access near { action = allow }", .cannot_resolve = true, .outcome = ACCESS_DENY},
};

START_TEST(what_is_not_known_counts_against_the_client) {
    const struct trial *trial = &trials[_i];
    char text[4096], error[SETTINGS_ERROR];
    snprintf(text, sizeof text, "%s%s\n", classes, trial->sections);
    char *path = scratch_file("access.conf", text);
    struct settings *settings = settings_load(path, error);
    free(path);
    ck_assert_msg(settings != NULL, "%s", error);
    struct address client, destination;
    struct arena arena;
    arena_init(&arena);
    ck_assert(address_parse_ip(&client, SLICE("192.0.2.7"), 1));
    const struct class_user user = {.name = slice_from(trial->user)};
    struct class_subject subject = {
        .method = SLICE("GET"),
        .host = SLICE("www.test"),
        .url = SLICE("http://www.test/"),
        .path = SLICE("/"),
        .scheme = SLICE("http"),
        .port = 80,
        .client = &client,
        .user = trial->user != NULL ? &user : NULL,
        .user_pending = trial->user == NULL,
        .destinations = &destination,
        .destination_count = trial->address != NULL,
        .destination_pending = trial->address == NULL,
    };
    if (trial->address != NULL)
        ck_assert(address_parse_ip(&destination, slice_from(trial->address), 80));
    const struct access_question question = {
        .settings = settings,
        .subject = &subject,
        .bits = rules_find(settings->rules, &subject, &arena),
        .authenticator = slice_from(trial->authenticator),
        .may_ask = !trial->cannot_ask,
        .may_resolve = !trial->cannot_resolve,
    };
    struct access_decision decision;
    access_decide(&question, &decision);
    ck_assert_msg(decision.outcome == trial->outcome, "%s: outcome %d", trial->sections,
                  decision.outcome);
    const struct access_settings *section =
        trial->section > 0 ? &accesses_of(settings)->list[trial->section - 1] : NULL;
    ck_assert_msg(decision.section == section, "%s: another section", trial->sections);
    arena_release(&arena);
    settings_release(&settings);
}
END_TEST

/* Classes of all sorts; the sections for them are drawn by lot. */
static const char many_classes[] =
    "listen \":1\" { mode = forward }\n"
    "authenticator card { type = certificate }\n"
    "url_class k0 { user = bob }\n"
    "url_class k1 { group = staff  domain = www.test }\n"
    "url_class k2 { user = \"*\"  host = other.test }\n"
    "url_class k3 { not = { k0 } }\n"
    "url_class k4 { not = { k1 }  domain = test }\n"
    "url_class k5 { destination = \"10.0.0.0/8\" }\n"
    "url_class k6 { destination = \"10.0.0.0/8\"  user = bob  path_regex = \"^/a\" }\n"
    "url_class k7 { any_of = { k0, k9 } }\n"
    "url_class k8 { any_of = { k1, k5 }  method = GET }\n"
    "url_class k9 { domain = www.test }\n"
    "url_class k10 { not = { k5 }  group = staff }\n"
    "url_class k11 { method = POST  group = staff }\n"
    "url_class k12 { client = \"192.0.2.0/24\"  user = eve }\n"
    "url_class k13 { client = \"198.51.100.0/24\"  not = { k0 } }\n"
    "url_class k14 { port = 80  group = { staff, guests } }\n"
    "url_class k15 { path_regex = \"^/a\" }\n";

enum { CLASSES = 16, SECTIONS = 12, DRAWS = 300 };

/* What is found of each section by the bits, against what the class says by itself. */
struct comparison {
    const struct access_question *question;
    size_t seen;
};

static void compare_finding(void *arg, size_t at, enum access_finding finding) {
    struct comparison *comparison = arg;
    const struct access_question *question = comparison->question;
    const struct access_settings *section = &accesses_of(question->settings)->list[at];
    enum class_answer found = finding == ACCESS_NO_MATCH                            ? CLASS_NO
                              : finding == ACCESS_DECIDES || finding == ACCESS_LOGS ? CLASS_YES
                                                                                    : CLASS_UNKNOWN;
    comparison->seen++;
    ck_assert_msg(found == url_class_judge(section->url_class, question->subject),
                  "section %zu, access %s", at + 1, url_class_name(section->url_class));
}

static struct settings *draw_settings(unsigned *lot) {
    static const char *const actions[] = {"allow", "deny", "authenticate", "tunnel"};
    char text[8192], error[SETTINGS_ERROR];
    size_t length = (size_t)snprintf(text, sizeof text, "%s", many_classes);
    for (int i = 0; i < SECTIONS; i++) {
        int number = rand_r(lot) % CLASSES;
        length += (size_t)snprintf(text + length, sizeof text - length,
                                   "access k%d { action = %s log_only = %s }\n", number,
                                   actions[rand_r(lot) % 4], rand_r(lot) % 8 == 0 ? "on" : "off");
    }
    char *path = scratch_file("access.conf", text);
    struct settings *settings = settings_load(path, error);
    free(path);
    ck_assert_msg(settings != NULL, "%s", error);
    return settings;
}

static void compare_decisions(const struct settings *settings, unsigned *lot) {
    static const char *const hosts[] = {"www.test", "other.test", "else.example"};
    static const char *const paths[] = {"/", "/a"}, *const names[] = {"bob", "eve"};
    static const char *const clients[] = {"192.0.2.7", "198.51.100.1", "203.0.113.1"};
    static const char *const addresses[] = {"10.1.2.3", "192.0.2.1"};
    static const struct slice groups[] = {SLICE("staff"), SLICE("guests")};
    struct address client, destination;
    struct arena arena;
    char url[100];
    arena_init(&arena);
    const char *host = hosts[rand_r(lot) % 3], *path = paths[rand_r(lot) % 2];
    snprintf(url, sizeof url, "http://%s%s", host, path);
    ck_assert(address_parse_ip(&client, slice_from(clients[rand_r(lot) % 3]), 1));
    ck_assert(address_parse_ip(&destination, slice_from(addresses[rand_r(lot) % 2]), 80));
    const struct class_user user = {.name = slice_from(names[rand_r(lot) % 2]),
                                    .groups = groups,
                                    .group_count = (size_t)rand_r(lot) % 3};
    struct class_subject subject = {
        .method = rand_r(lot) % 2 != 0 ? SLICE("GET") : SLICE("POST"),
        .host = slice_from(host),
        .url = slice_from(url),
        .path = slice_from(path),
        .scheme = SLICE("http"),
        .port = rand_r(lot) % 2 != 0 ? 80 : 8080,
        .client = &client,
        .user = rand_r(lot) % 2 != 0 ? &user : NULL,
        .destinations = &destination,
        .destination_count = rand_r(lot) % 2,
    };
    struct access_question question = {
        .settings = settings,
        .subject = &subject,
        /* as a transaction finds them: nothing is pending yet */
        .bits = rules_find(settings->rules, &subject, &arena),
        .authenticator = subject.user != NULL ? SLICE("card") : slice_make("", 0),
        .may_ask = rand_r(lot) % 2,
        .may_resolve = rand_r(lot) % 2,
    };
    struct access_decision quick, seen;
    subject.user_pending = subject.user == NULL;
    subject.destination_pending = subject.destination_count == 0;
    if (rand_r(lot) % 2 == 0) /* the address of a connection, which is judged when it is made */
        subject.destination_count = 1, subject.destination_pending = false;
    access_decide(&question, &quick);
    struct comparison comparison = {.question = &question};
    question.see = compare_finding;
    question.see_arg = &comparison;
    access_decide(&question, &seen);
    ck_assert_uint_gt(comparison.seen, 0);
    ck_assert_int_eq(quick.outcome, seen.outcome);
    ck_assert_ptr_eq(quick.section, seen.section);
    arena_release(&arena);
}

START_TEST(the_bits_say_what_each_class_says) {
    unsigned lot = 1;
    for (int i = 0; i < DRAWS; i++) {
        struct settings *settings = draw_settings(&lot);
        for (int k = 0; k < 30; k++)
            compare_decisions(settings, &lot);
        settings_release(&settings);
    }
}
END_TEST

/* Sections that ask for the user, where nobody can prove who he is. 0: it is not certain. */
static const struct {
    const char *sections;
    size_t at;
} at_once[] = {
    {"access all { action = allow }", 1},
    {"access all { action = tunnel }", 0},
    {"access all { action = deny }", 0},
    {"access posts { action = allow }", 0},
    {"access posts { action = deny } access all { action = allow }", 2},
    {"access bob { action = allow } access all { action = allow }", 2},
    {"access bob { action = deny } access all { action = allow }", 0},
    {"access bob_posts { action = deny } access all { action = allow }", 2},
    {"access not_bob { action = allow } access all { action = deny }", 0},
    {"access not_bob { action = deny } access all { action = allow }", 0},
    {"access bob { action = allow } access all { action = deny }", 0},
};

START_TEST(what_is_allowed_at_once) {
    char text[4096], error[SETTINGS_ERROR];
    snprintf(text, sizeof text,
             "listen \":1\" { mode = forward }\nurl_class bob { user = bob }\n"
             "url_class posts { method = POST }\nurl_class not_bob { not = { bob } }\n"
             "url_class bob_posts { method = POST  user = bob }\n%s\n",
             at_once[_i].sections);
    char *path = scratch_file("access.conf", text);
    struct settings *settings = settings_load(path, error);
    free(path);
    ck_assert_msg(settings != NULL, "%s", error);
    struct arena arena;
    arena_init(&arena);
    const struct class_subject subject = {.method = SLICE("GET"),
                                          .host = SLICE("www.test"),
                                          .url = SLICE("http://www.test/"),
                                          .path = SLICE("/")};
    ck_assert(accesses_of(settings)->is_plain);
    const struct access_settings *section =
        access_allowing(settings, rules_find(settings->rules, &subject, &arena));
    ck_assert_uint_eq(section != NULL ? (size_t)(section - accesses_of(settings)->list) + 1 : 0,
                      at_once[_i].at);
    arena_release(&arena);
    settings_release(&settings);
}
END_TEST

Suite *access_rules_suite(void) {
    Suite *suite = suite_create("access_rules");
    TCase *tests = tcase_create("access_rules");
    tcase_add_loop_test(tests, what_is_not_known_counts_against_the_client, 0,
                        sizeof trials / sizeof *trials);
    tcase_add_test(tests, the_bits_say_what_each_class_says);
    tcase_add_loop_test(tests, what_is_allowed_at_once, 0, sizeof at_once / sizeof *at_once);
    suite_add_tcase(suite, tests);
    return suite;
}
