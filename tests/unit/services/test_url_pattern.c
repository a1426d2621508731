#include "suites.h"

#include "service/url_pattern.h"

START_TEST(patterns) {
    static const struct {
        const char *pattern, *url;
        bool matches;
    } cases[] = {
        {"http://a.example/x", "http://a.example/x", true},
        {"http://a.example/x", "http://a.example/xy", false},
        {"http://a.example/x*", "http://a.example/xy", true},
        {"http://a.example/x*", "http://a.example/x", true},
        {"*.example/login*", "http://www.A.Example/Login?next=/", true},
        {"*.example/login*", "http://www.example.org/login", false},
        {"*?*token=*", "http://h/p?a=1&token=5", true},
        {"*?*token=*", "http://h/token=5", false},
        {"*", "", true},
        {"", "", true},
        {"", "x", false},
        {"**a**b**", "xxaxxbxx", true},
        {"*ab*ab", "abab", true},
        {"*ab*ab", "abaab", true},
        {"*ab*ab", "ab", false},
        {"*aaaaaaaaaaaaaaaab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        EXPECT(url_pattern_matches(slice_from(cases[i].pattern),
                                   guard_put(slice_from(cases[i].url))) == cases[i].matches,
               "\"%s\" and \"%s\"", cases[i].pattern, cases[i].url);
}
END_TEST

static bool url_is(const char *target, const char *host, const char *expected) {
    struct http_head request;
    struct arena arena;
    struct service_exchange exchange = {.request = &request, .arena = &arena};
    arena_init(&arena);
    http_head_init(&request);
    request.target = slice_from(target);
    if (host != NULL)
        http_head_add(&request, SLICE("Host"), slice_from(host));
    bool same = slice_equal(exchange_url(&exchange), slice_from(expected));
    arena_release(&arena);
    return same;
}

START_TEST(urls_of_requests) {
    ck_assert(url_is("http://a/b", "c", "http://a/b"));
    ck_assert(url_is("/b?c", "a:8080", "http://a:8080/b?c"));
    ck_assert(url_is(NULL, NULL, ""));
}
END_TEST

Suite *url_pattern_suite(void) {
    const TTest *const tests[] = {patterns, urls_of_requests};
    return suite_of("url_pattern", tests, COUNT_OF(tests));
}
