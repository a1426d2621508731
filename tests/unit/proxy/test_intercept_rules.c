#include "authority_lab.h"
#include "suites.h"

#include "intercept/settings.h"

static const char sections[] = "listen \":1\" { mode = forward }\n"
                               "url_class banks { domain = \"bank.example\" }\n"
                               "url_class bad { domain = { \"bad.example\", \"192.0.2.66\" } }\n"
                               "url_class odd_port { url_regex = '^https://[^/]*:8443/' }\n"
                               "url_class guests { client = \"10.9.0.0/16\" }\n"
                               "intercept guests { action = splice }\n"
                               "intercept bad { action = block }\n"
                               "intercept banks { action = splice }\n"
                               "intercept odd_port { action = block }\n"
                               "intercept all { action = bump }\n";

static enum intercept_action decide(const char *text, const char *host, const char *name,
                                    uint16_t port, const char *client) {
    struct settings *settings = settings_from(authority_lab_settings(text));
    struct address address, host_address;
    struct arena arena;
    arena_init(&arena);
    ck_assert(address_parse_ip(&address, slice_from(client), 1));
    const struct class_subject connection = {.client = &address};
    const struct intercept_subject subject = {
        .host = slice_from(host),
        .host_is_address = address_parse_ip(&host_address, slice_from(host), 1),
        .port = port,
        .name = slice_from(name),
        .connection = &connection,
    };
    enum intercept_action action =
        intercept_rules_decide(interception_settings_of(settings), &subject, &arena);
    arena_release(&arena);
    settings_release(&settings);
    return action;
}

static enum intercept_action decide_for(const char *host, const char *name) {
    return decide(sections, host, name, 443, "10.1.0.1");
}

START_TEST(the_first_section_that_matches_decides) {
    ck_assert_int_eq(decide_for("www.bank.example", "www.bank.example"), INTERCEPT_SPLICE);
    ck_assert_int_eq(decide_for("bad.example", "bad.example"), INTERCEPT_BLOCK);
    ck_assert_int_eq(decide_for("other.example", "other.example"), INTERCEPT_BUMP);
    ck_assert_int_eq(decide_for("other.example", ""), INTERCEPT_BUMP);
    ck_assert_int_eq(decide_for("bank.example", ""), INTERCEPT_SPLICE);
    ck_assert_int_eq(decide(sections, "bad.example", "", 443, "10.9.3.4"), INTERCEPT_SPLICE);
}
END_TEST

START_TEST(the_port_stands_in_the_url) {
    ck_assert_int_eq(decide(sections, "a.example", "a.example", 8443, "10.1.0.1"), INTERCEPT_BLOCK);
    ck_assert_int_eq(decide(sections, "2001:db8::1", "", 8443, "10.1.0.1"), INTERCEPT_BLOCK);
    ck_assert_int_eq(decide(sections, "2001:db8::1", "", 443, "10.1.0.1"), INTERCEPT_BUMP);
}
END_TEST

/* What is known of a connection besides its names. */
START_TEST(ports_names_and_users_of_connections_count) {
    static const char more[] = "listen \":1\" { mode = forward }\n"
                               "url_class sni { sni = \"*.bank.example\" }\n"
                               "url_class port { port = 8443 }\n"
                               "url_class strangers { client = \"10.1.0.0/16\" not = known }\n"
                               "url_class known { user = \"*\" }\n"
                               "intercept sni { action = splice }\n"
                               "intercept port { action = block }\n"
                               "intercept strangers { action = bump }\n";
    ck_assert_int_eq(decide(more, "192.0.2.1", "www.bank.example", 443, "10.1.0.1"),
                     INTERCEPT_SPLICE);
    ck_assert_int_eq(decide(more, "192.0.2.1", "bank.example", 8443, "10.1.0.1"), INTERCEPT_BLOCK);
    ck_assert_int_eq(decide(more, "192.0.2.1", "", 443, "10.1.0.1"), INTERCEPT_BUMP);
    ck_assert_int_eq(decide(more, "192.0.2.1", "", 443, "10.2.0.1"), INTERCEPT_SPLICE);
}
END_TEST

START_TEST(of_two_names_the_more_restrictive_action_applies) {
    ck_assert_int_eq(decide_for("bank.example", "other.example"), INTERCEPT_BUMP);
    ck_assert_int_eq(decide_for("other.example", "bank.example"), INTERCEPT_BUMP);
    ck_assert_int_eq(decide_for("bank.example", "bad.example"), INTERCEPT_BLOCK);
    ck_assert_int_eq(decide_for("bad.example", "bank.example"), INTERCEPT_BLOCK);
}
END_TEST

START_TEST(an_address_counts_only_without_a_name) {
    ck_assert_int_eq(decide_for("192.0.2.1", "bank.example"), INTERCEPT_SPLICE);
    ck_assert_int_eq(decide_for("192.0.2.1", ""), INTERCEPT_BUMP);
    ck_assert_int_eq(decide_for("192.0.2.66", ""), INTERCEPT_BLOCK);
}
END_TEST

START_TEST(what_no_section_names_is_spliced) {
    ck_assert_int_eq(decide("listen \":1\" { mode = forward }\n"
                            "url_class a { domain = \"a.example\" }\n"
                            "intercept a { action = bump }\n",
                            "b.example", "b.example", 443, "10.1.0.1"),
                     INTERCEPT_SPLICE);
}
END_TEST

Suite *intercept_rules_suite(void) {
    const TTest *const tests[] = {
        the_first_section_that_matches_decides,
        the_port_stands_in_the_url,
        ports_names_and_users_of_connections_count,
        of_two_names_the_more_restrictive_action_applies,
        an_address_counts_only_without_a_name,
        what_no_section_names_is_spliced,
    };
    return suite_of("intercept_rules", tests, COUNT_OF(tests));
}
