/* Lists in files that URL classes name. */
#include "suites.h"

#include "lists/list_file.h"
#include "lists/name_set.h"

#include <string.h>

static bool take_all(void *arg, struct slice line, char *error, size_t error_size) {
    (void)error;
    (void)error_size;
    char *lines = arg;
    strncat(lines, line.base, line.length);
    strcat(lines, "|");
    return true;
}

static bool parse(struct slice text, char lines[400], size_t *line, char error[300]) {
    lines[0] = '\0';
    return list_file_parse(guard_keep(text), take_all, lines, line, error, 300);
}

START_TEST(lists_have_comments_and_blanks) {
    char lines[400], error[300];
    size_t line;
    ck_assert(parse(SLICE("\xef\xbb\xbf# all\n a.example # one\r\n\n\tb.example\t\nc#d\n"), lines,
                    &line, error));
    ck_assert_str_eq(lines, "a.example|b.example|c#d|");
    ck_assert(parse(SLICE("# none\n"), lines, &line, error));
    ck_assert_str_eq(lines, "");
}
END_TEST

START_TEST(half_written_lists_are_refused) {
    char lines[400], error[300];
    size_t line;
    ck_assert(!parse(SLICE("a.example\nb.exam"), lines, &line, error));
    ck_assert_uint_eq(line, 2);
    ck_assert_ptr_nonnull(strstr(error, "does not end with a line break"));
    ck_assert(!parse(SLICE(""), lines, &line, error));
    ck_assert_ptr_nonnull(strstr(error, "empty"));
    ck_assert(!parse(slice_make("a\nb\n\0\0\0\n", 8), lines, &line, error));
    ck_assert_uint_eq(line, 3);
    ck_assert_ptr_nonnull(strstr(error, "control character"));
}
END_TEST

static const struct class_list *list_of(struct class_lists *lists, enum class_list_kind kind,
                                        const char *text) {
    static unsigned number;
    char error[400], name[40];
    snprintf(name, sizeof name, "list%u", number++);
    char *path = scratch_file(name, text);
    const struct class_list *list = class_lists_open(lists, kind, path, error, sizeof error);
    ck_assert_msg(list != NULL, "%s", error);
    ck_assert_ptr_eq(class_lists_open(lists, kind, path, error, sizeof error), list);
    free(path);
    return list;
}

START_TEST(lists_of_names_are_searched) {
    struct class_lists *lists = class_lists_new(false);
    const struct class_list *hosts =
        list_of(lists, CLASS_LIST_HOSTS,
                "WWW.Example.com\n*.img.example\n10.0.0.1\n2001:DB8::0001\n"
                "0.0.0.0 ads.example tracker.example # both\n127.0.0.1 localhost\nplain\n");
    const struct class_list *domains =
        list_of(lists, CLASS_LIST_DOMAINS, "example.org\n.example.net.\n0.0.1\n");
    static const char *const in_hosts[] = {"www.example.com",  "a.img.example", "10.0.0.1",
                                           "2001:db8::1",      "ads.example",   "tracker.example",
                                           "www.example.com.", "plain"};
    static const char *const not_in_hosts[] = {
        "example.com", "img.example", "a.www.example.com", "localhost", "", "."};
    for (size_t i = 0; i < COUNT_OF(in_hosts); i++)
        ck_assert_msg(class_list_has_host(hosts, slice_from(in_hosts[i])), "%s", in_hosts[i]);
    for (size_t i = 0; i < COUNT_OF(not_in_hosts); i++)
        ck_assert(!class_list_has_host(hosts, slice_from(not_in_hosts[i])));
    ck_assert(class_list_has_host(domains, SLICE("example.org")));
    ck_assert(class_list_has_host(domains, SLICE("a.b.example.org")));
    ck_assert(class_list_has_host(domains, SLICE("x.example.net")));
    ck_assert(!class_list_has_host(domains, SLICE("badexample.org")));
    ck_assert(!class_list_has_host(domains, SLICE("10.0.0.1")));
    class_lists_free(&lists);
}
END_TEST

START_TEST(lists_of_networks_are_searched) {
    struct class_lists *lists = class_lists_new(false);
    const struct class_list *list =
        list_of(lists, CLASS_LIST_NETWORKS,
                "10.0.0.0/8\n10.1.0.0/16\n192.0.2.7\n2001:db8::/32\n255.255.255.255\n");
    static const char *const in[] = {"10.0.0.0",    "10.255.255.255",  "192.0.2.7",
                                     "2001:db8::1", "::ffff:10.1.2.3", "255.255.255.255"};
    static const char *const out[] = {"9.255.255.255",   "11.0.0.0",   "192.0.2.6", "192.0.2.8",
                                      "2001:db7:ffff::", "2001:db9::", "::",        "::10.0.0.1"};
    struct address address;
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        ck_assert(address_parse_ip(&address, slice_from(in[i]), 80));
        ck_assert_msg(class_list_has_address(list, &address), "%s", in[i]);
    }
    for (size_t i = 0; i < COUNT_OF(out); i++) {
        ck_assert(address_parse_ip(&address, slice_from(out[i]), 80));
        ck_assert_msg(!class_list_has_address(list, &address), "%s", out[i]);
    }
    class_lists_free(&lists);
}
END_TEST

START_TEST(lists_of_urls_are_searched) {
    struct class_lists *lists = class_lists_new(false);
    const struct class_list *list =
        list_of(lists, CLASS_LIST_URLS,
                "http://a.example/page?x=1\nHTTP://B.example:80/%7Euser/*\nc.example/shop*\n"
                "http://d.example\nhttp://b.example/~user/deeper*\nhttps://e.example/a/../b*\n");
    static const char *const in[] = {"http://a.example/page?x=1",       "http://b.example/~user/",
                                     "http://b.example/~user/1",        "http://c.example/shop",
                                     "https://c.example/shopping?q=1",  "http://d.example/",
                                     "http://b.example/~user/deeper/1", "https://e.example/b?1"};
    static const char *const out[] = {"http://a.example/page",
                                      "http://a.example/page?x=12",
                                      "https://a.example/page?x=1",
                                      "http://b.example/~user",
                                      "http://c.example/sho",
                                      "http://d.example/x",
                                      "c.example:443",
                                      "",
                                      "http://e.example/b"};
    for (size_t i = 0; i < COUNT_OF(in); i++)
        ck_assert_msg(class_list_has_url(list, slice_from(in[i])), "%s", in[i]);
    for (size_t i = 0; i < COUNT_OF(out); i++)
        ck_assert_msg(!class_list_has_url(list, slice_from(out[i])), "%s", out[i]);
    class_lists_free(&lists);
}
END_TEST

START_TEST(bad_lines_are_refused) {
    static const struct {
        enum class_list_kind kind;
        const char *line;
    } cases[] = {
        {CLASS_LIST_HOSTS, "http://a.example/"},
        {CLASS_LIST_HOSTS, "a.example b.example"},
        {CLASS_LIST_HOSTS, "a..example"},
        {CLASS_LIST_HOSTS, "b\xc3\xbc"
                           "cher.example"},
        {CLASS_LIST_HOSTS, "0.0.0.0 ok.example bad..example"},
        {CLASS_LIST_HOSTS, "||ads.example^"},
        {CLASS_LIST_DOMAINS, "*.example"},
        {CLASS_LIST_DOMAINS, "."},
        {CLASS_LIST_DOMAINS, ".."},
        {CLASS_LIST_NETWORKS, "10.0.0.0/33"},
        {CLASS_LIST_NETWORKS, "a.example"},
        {CLASS_LIST_NETWORKS, "10.0.0.0 10.0.0.1"},
        {CLASS_LIST_URLS, "http://"},
        {CLASS_LIST_URLS, "*"},
        {CLASS_LIST_URLS, "http://a.example*"},
        {CLASS_LIST_URLS, "http://a.example/.*"},
        {CLASS_LIST_URLS, "ftp://a.example/"},
        {CLASS_LIST_URLS, "icap://a.example/"},
        {CLASS_LIST_URLS, "http://u@a.example/"},
        {CLASS_LIST_URLS, "http://a.example/ x"},
    };
    char error[400];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        error[0] = '\0';
        ck_assert_msg(
            !class_list_check_line(cases[i].kind, slice_from(cases[i].line), error, sizeof error),
            "%s", cases[i].line);
        ck_assert_str_ne(error, "");
    }
}
END_TEST

/* So many that the table grows often: all are there, and nothing else. */
START_TEST(many_names_are_found) {
    enum { MANY = 50000 };
    struct name_set *set = name_set_new();
    char name[60];
    for (unsigned i = 0; i < MANY; i++) {
        int length = snprintf(name, sizeof name, "n%u.example", i * 2);
        unsigned matches = i % 2 == 0 ? NAME_SET_ITSELF : NAME_SET_BELOW;
        ck_assert(name_set_add(set, slice_make(name, (size_t)length), matches));
        ck_assert(name_set_add(set, slice_make(name, (size_t)length), matches));
    }
    ck_assert_uint_eq(name_set_count(set), MANY);
    for (unsigned i = 0; i < MANY * 2; i++) {
        bool there = i % 2 == 0, itself = i / 2 % 2 == 0;
        snprintf(name, sizeof name, "n%u.example", i);
        ck_assert_int_eq(name_set_has_host(set, slice_from(name)), there && itself);
        snprintf(name, sizeof name, "a.n%u.example", i);
        ck_assert_int_eq(name_set_has_host(set, slice_from(name)), there && !itself);
    }
    name_set_free(&set);
}
END_TEST

Suite *lists_suite(void) {
    const TTest *const tests[] = {
        lists_have_comments_and_blanks, half_written_lists_are_refused, lists_of_names_are_searched,
        lists_of_networks_are_searched, lists_of_urls_are_searched,     bad_lines_are_refused,
        many_names_are_found,
    };
    return suite_of("lists", tests, COUNT_OF(tests));
}
