#include "suites.h"

#include <pthread.h>
#include <time.h>

static char **one(const char *value) {
    static char *values[2];
    values[0] = (char *)(uintptr_t)value;
    return values;
}

static struct url_class *class_of(const struct url_class_conditions *conditions) {
    char error[400] = "";
    struct url_class *url_class = url_class_new("test", conditions, error, sizeof error);
    ck_assert_msg(url_class != NULL, "%s", error);
    return url_class;
}

/* Whether a class with these conditions matches, once. */
static bool matches(const struct url_class_conditions *conditions,
                    const struct class_subject *subject) {
    struct url_class *url_class = class_of(conditions);
    bool result = url_class_matches(url_class, subject);
    url_class_free(&url_class);
    return result;
}

static bool host_matches(const char *condition, const char *host) {
    const struct url_class_conditions conditions = {.hosts = one(condition)};
    const struct class_subject subject = {.host = slice_from(host)};
    return matches(&conditions, &subject);
}

static bool domain_matches(const char *condition, const char *host) {
    const struct url_class_conditions conditions = {.domains = one(condition)};
    const struct class_subject subject = {.host = slice_from(host)};
    return matches(&conditions, &subject);
}

START_TEST(hosts_match_exactly) {
    ck_assert(host_matches("www.example.com", "www.example.com"));
    ck_assert(host_matches("WWW.Example.com.", "www.example.com"));
    ck_assert(host_matches("www.example.com", "www.example.com."));
    ck_assert(!host_matches("www.example.com", "example.com"));
    ck_assert(!host_matches("example.com", "www.example.com"));
    ck_assert(host_matches("*.example.com", "www.example.com"));
    ck_assert(host_matches("*.example.com", "a.b.example.com"));
    ck_assert(!host_matches("*.example.com", "example.com"));
    ck_assert(!host_matches("*.example.com", "badexample.com"));
    ck_assert(!host_matches("*.example.com", ".example.com."));
    ck_assert(host_matches("127.0.0.1", "127.0.0.1"));
    ck_assert(host_matches("::1", "::1"));
    ck_assert(host_matches("2001:DB8:0::0:1", "2001:db8::1"));
    ck_assert(!host_matches("a", ""));
}
END_TEST

START_TEST(domains_match_with_all_below) {
    ck_assert(domain_matches("example.com", "example.com"));
    ck_assert(domain_matches("example.com", "www.example.com"));
    ck_assert(domain_matches("Example.COM", "a.b.c.example.com."));
    ck_assert(!domain_matches("example.com", "badexample.com"));
    ck_assert(!domain_matches("example.com", "example.com.evil.org"));
    ck_assert(!domain_matches("www.example.com", "example.com"));
    ck_assert(domain_matches("com", "example.com"));
}
END_TEST

START_TEST(many_domains_are_found_fast) {
    enum { MANY = 20000 };
    char **domains = calloc(MANY + 1, sizeof *domains);
    for (int i = 0; i < MANY; i++)
        ck_assert(asprintf(&domains[i], "ads%d.example%d.com", i * 7919 % MANY, i % 13) > 0);
    const struct url_class_conditions conditions = {.domains = domains};
    struct url_class *url_class = class_of(&conditions);
    struct class_subject subject = {0};
    for (int i = 0; i < MANY; i++) {
        subject.host = slice_from(domains[i]);
        if (!url_class_matches(url_class, &subject))
            ck_abort_msg("%s is not found", domains[i]);
    }
    subject.host = SLICE("a.ads1.example14.com");
    ck_assert(!url_class_matches(url_class, &subject));
    url_class_free(&url_class);
    for (int i = 0; i < MANY; i++)
        free(domains[i]);
    free(domains);
}
END_TEST

static bool path_matches(const char *regex, const char *path) {
    const struct url_class_conditions conditions = {.path_regexes = one(regex)};
    const struct class_subject subject = {.path = slice_from(path)};
    return matches(&conditions, &subject);
}

START_TEST(regular_expressions_search) {
    ck_assert(path_matches("\\.(jpe?g|gif|png)$", "/a/b.jpg"));
    ck_assert(path_matches("\\.(jpe?g|gif|png)$", "/a/b.jpeg"));
    ck_assert(!path_matches("\\.(jpe?g|gif|png)$", "/a/b.JPG"));
    ck_assert(path_matches("(?i)\\.(jpe?g|gif|png)$", "/a/b.JPG"));
    ck_assert(!path_matches("\\.(jpe?g|gif|png)$", "/a/jpg"));
    ck_assert(path_matches("(.)\\1", "/aab"));
    ck_assert(!path_matches("(.)\\1", "/aba"));
    ck_assert(path_matches("^$", ""));
    ck_assert(path_matches("\xff", "/a\xff\xfe"));
}
END_TEST

START_TEST(the_whole_url_is_searched) {
    const struct url_class_conditions conditions = {.url_regexes = one("^http://x\\.org/.*\\?a=1")};
    struct class_subject subject = {.url = SLICE("http://x.org/y?a=1"), .path = SLICE("/y")};
    ck_assert(matches(&conditions, &subject));
    subject.url = SLICE("http://x.org/y");
    ck_assert(!matches(&conditions, &subject));
    subject.url = slice_make(NULL, 0);
    ck_assert(!matches(&conditions, &subject));
}
END_TEST

/* Patterns that backtrack without end on such a path are cut short and count as no match. */
START_TEST(a_hostile_path_costs_little) {
    static const char *const regexes[] = {"(a+)+$", "(a|aa)+$", "(.*a){20}$",
                                          "^(([a-z])+.)+[A-Z]$"};
    char path[60001];
    struct timespec before, after;
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    path[sizeof path - 2] = '!';
    path[sizeof path - 1] = '\0';
    for (size_t i = 0; i < COUNT_OF(regexes); i++) {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
        ck_assert(!path_matches(regexes[i], path));
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
        double seconds =
            (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) / 1e9;
        ck_assert_msg(seconds < 2, "%s took %.3f s", regexes[i], seconds);
    }
}
END_TEST

static bool type_matches(const char *condition, const char *type) {
    const struct url_class_conditions conditions = {.content_types = one(condition)};
    const struct class_subject subject = {.content_type = slice_from(type)};
    return matches(&conditions, &subject);
}

START_TEST(content_types_match_without_parameters) {
    ck_assert(type_matches("text/html", "text/html"));
    ck_assert(type_matches("text/html", "Text/HTML; charset=utf-8"));
    ck_assert(type_matches("text/html", " text/html ;charset=utf-8"));
    ck_assert(!type_matches("text/html", "text/htmlx"));
    ck_assert(type_matches("image/*", "image/png"));
    ck_assert(!type_matches("image/*", "imagex/png"));
    ck_assert(!type_matches("text/html", ""));
    ck_assert(!type_matches("text/html", NULL));
}
END_TEST

START_TEST(a_response_to_come_may_match_a_type) {
    const struct url_class_conditions type = {.content_types = one("text/html")};
    struct class_subject subject = {.host = SLICE("a"), .response_pending = true};
    ck_assert(matches(&type, &subject));
    subject.response_pending = false; /* there is none, or it has no type */
    ck_assert(!matches(&type, &subject));
    subject.response_pending = true;
    subject.content_type = SLICE("image/png"); /* the type of what is there counts */
    ck_assert(!matches(&type, &subject));
}
END_TEST

static bool client_matches(const char *condition, const char *ip) {
    struct address address;
    const struct url_class_conditions conditions = {.clients = one(condition)};
    const struct class_subject subject = {.client = ip == NULL ? NULL : &address};
    if (ip != NULL)
        ck_assert(address_parse_ip(&address, slice_from(ip), 1));
    return matches(&conditions, &subject);
}

START_TEST(clients_match_by_network) {
    ck_assert(client_matches("10.0.0.0/8", "10.1.2.3"));
    ck_assert(client_matches("10.0.0.0/8", "::ffff:10.1.2.3"));
    ck_assert(!client_matches("10.0.0.0/8", "11.1.2.3"));
    ck_assert(client_matches("::1", "::1"));
    ck_assert(!client_matches("::1", NULL));
}
END_TEST

START_TEST(all_conditions_must_hold) {
    char *methods[] = {"GET", "HEAD", NULL}, *hosts[] = {"a", "b", NULL},
         *paths[] = {"x", "y", NULL};
    const struct url_class_conditions conditions = {
        .methods = methods, .hosts = hosts, .path_regexes = paths};
    struct class_subject subject = {
        .method = SLICE("HEAD"), .host = SLICE("b"), .path = SLICE("/y")};
    ck_assert(matches(&conditions, &subject));
    subject.method = SLICE("POST");
    ck_assert(!matches(&conditions, &subject));
    subject.method = SLICE("GET");
    subject.host = SLICE("c");
    ck_assert(!matches(&conditions, &subject));
    subject.host = SLICE("a");
    subject.path = SLICE("/z");
    ck_assert(!matches(&conditions, &subject));
}
END_TEST

START_TEST(no_condition_matches_everything) {
    const struct url_class_conditions none = {0};
    const struct class_subject subject = {0};
    ck_assert(matches(&none, &subject));
}
END_TEST

START_TEST(bad_conditions_are_refused) {
    char error[400];
    const struct url_class_conditions bad[] = {
        {.hosts = one("a b")},
        {.hosts = (char *[]){"http://a", NULL}},
        {.domains = (char *[]){".a", NULL}},
        {.path_regexes = (char *[]){"(", NULL}},
        {.url_regexes = (char *[]){"[", NULL}},
        {.methods = (char *[]){"", NULL}},
        {.content_types = (char *[]){"text/html;a", NULL}},
        {.clients = (char *[]){"x", NULL}},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        error[0] = '\0';
        ck_assert_ptr_null(url_class_new("bad", &bad[i], error, sizeof error));
        ck_assert_str_ne(error, "");
    }
}
END_TEST

static void *match_in_thread(void *arg) {
    const struct class_subject subject = {.path = SLICE("/a.gif")};
    for (int i = 0; i < 1000; i++)
        if (!url_class_matches(arg, &subject))
            return arg;
    return NULL;
}

START_TEST(threads_share_a_class) {
    pthread_t threads[4];
    void *failed;
    const struct url_class_conditions conditions = {.path_regexes = one("\\.(png|gif)$")};
    struct url_class *url_class = class_of(&conditions);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, match_in_thread, url_class), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    url_class_free(&url_class);
}
END_TEST

Suite *url_class_suite(void) {
    const TTest *const tests[] = {
        hosts_match_exactly,
        domains_match_with_all_below,
        many_domains_are_found_fast,
        regular_expressions_search,
        the_whole_url_is_searched,
        a_hostile_path_costs_little,
        content_types_match_without_parameters,
        a_response_to_come_may_match_a_type,
        clients_match_by_network,
        all_conditions_must_hold,
        no_condition_matches_everything,
        bad_conditions_are_refused,
        threads_share_a_class,
    };
    return suite_of("url class", tests, COUNT_OF(tests));
}
