#include "suites.h"

static const char rules[] = "listen \":1\" { mode = reverse }\n"
                            "map \"/\" { origin = \"http://any/\" }\n"
                            "map \"/static/\" { origin = \"http://static/\" }\n"
                            "map \"/public\" { origin = \"http://public/\" }\n"
                            "map \"/static/deep/\" { origin = \"http://deep/\" }\n"
                            "map \"http://a.org/\" { origin = \"http://a/\" }\n"
                            "map \"http://A.org/img/\" { origin = \"http://a-img/\" }\n"
                            "map \"http://a.org:8080/\" { origin = \"http://a-8080/\" }\n"
                            "map \"http://[::1]\" { origin = \"http://six/\" }\n";

static void check_map(const struct settings *settings, const char *host, const char *path,
                      const char *origin) {
    const struct map_settings *map =
        settings_find_map(settings, slice_from(host), slice_from(path));
    ck_assert_msg(map != NULL, "%s%s has no map", host, path);
    ck_assert_str_eq(map->origin_text, origin);
}

START_TEST(hosts_then_the_longest_path_win) {
    struct settings *s = settings_from(rules);
    check_map(s, "b.org", "/", "http://any/");
    check_map(s, "b.org", "/static/x", "http://static/");
    check_map(s, "b.org", "/static/deep/x", "http://deep/");
    check_map(s, "b.org", "/statics", "http://any/");
    check_map(s, "b.org", "/public/x", "http://public/");
    check_map(s, "b.org", "/publicity", "http://public/"); /* letter by letter */
    check_map(s, "a.org", "/", "http://a/");
    check_map(s, "a.org", "/img/x", "http://a-img/");
    check_map(s, "a.org", "/static/deep/x", "http://a/");
    check_map(s, "", "/", "http://any/");
    settings_release(&s);
}
END_TEST

START_TEST(a_host_without_port_is_for_every_port) {
    struct settings *s = settings_from(rules);
    check_map(s, "a.org:80", "/", "http://a/");
    check_map(s, "a.org:81", "/", "http://a/");
    check_map(s, "a.org:8080", "/", "http://a-8080/");
    check_map(s, "a.org:8080", "/img/x", "http://a-img/");
    check_map(s, "a.org.evil", "/", "http://any/");
    check_map(s, "xa.org", "/", "http://any/");
    check_map(s, "[::1]", "/", "http://six/");
    check_map(s, "[::1]:8080", "/", "http://six/");
    settings_release(&s);
}
END_TEST

START_TEST(without_a_rule_there_is_no_map) {
    struct settings *s = settings_from("listen \":1\" { mode = reverse }\n"
                                       "map \"http://a.org/x/\" { origin = \"http://a/\" }\n");
    ck_assert_ptr_null(settings_find_map(s, SLICE("b.org"), SLICE("/x/")));
    ck_assert_ptr_null(settings_find_map(s, SLICE("a.org"), SLICE("/y/")));
    ck_assert_ptr_null(settings_find_map(s, SLICE("a.org"), SLICE("/x")));
    ck_assert_ptr_null(settings_find_map(s, slice_make(NULL, 0), SLICE("*")));
    settings_release(&s);
}
END_TEST

Suite *map_suite(void) {
    const TTest *const tests[] = {
        hosts_then_the_longest_path_win,
        a_host_without_port_is_for_every_port,
        without_a_rule_there_is_no_map,
    };
    return suite_of("map", tests, COUNT_OF(tests));
}
