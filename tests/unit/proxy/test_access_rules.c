/* What access sections decide while the user and the address of the host are not known yet. */
#include "suites.h"

#include "access/rules.h"
#include "match/rules.h"

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
        trial->section > 0 ? &settings->accesses[trial->section - 1] : NULL;
    ck_assert_msg(decision.section == section, "%s: another section", trial->sections);
    arena_release(&arena);
    settings_release(&settings);
}
END_TEST

Suite *access_rules_suite(void) {
    Suite *suite = suite_create("access_rules");
    TCase *tests = tcase_create("access_rules");
    tcase_add_loop_test(tests, what_is_not_known_counts_against_the_client, 0,
                        sizeof trials / sizeof *trials);
    suite_add_tcase(suite, tests);
    return suite;
}
