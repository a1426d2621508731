#include "suites.h"

#include "adremover/filter.h"

#include <unistd.h>

struct question {
    const char *url, *page;
    unsigned types;
    enum filter_verdict verdict;
};

static struct filter *filter_of(const char *rules) {
    struct filter *filter = filter_create();
    for (const char *at = rules; *at != 0;) {
        size_t length = strcspn(at, "\n");
        filter_add(filter, slice_make(at, length), "test");
        at += length + (at[length] == '\n');
    }
    filter_seal(filter);
    return filter;
}

static void ask(const char *rules, const struct question *questions, size_t count) {
    struct filter *filter = filter_of(rules);
    ck_assert_msg(filter_counts(filter)->bad == 0, "%s", filter_counts(filter)->first_bad);
    for (size_t i = 0; i < count; i++) {
        struct filter_request request;
        const struct question *q = &questions[i];
        ck_assert(filter_request_init(&request, slice_from(q->url),
                                      slice_from(q->page == NULL ? "" : q->page),
                                      q->types == 0 ? FILTER_TYPE_PARTS : q->types));
        enum filter_verdict got = filter_match(filter, &request);
        EXPECT(got == q->verdict, "%s on %s: %d instead of %d", q->url,
               q->page == NULL ? "-" : q->page, got, q->verdict);
    }
    filter_free(&filter);
}

#define ASK(rules, ...)                                                                            \
    do {                                                                                           \
        static const struct question questions[] = {__VA_ARGS__};                                  \
        ask(rules, questions, COUNT_OF(questions));                                                \
    } while (0)

START_TEST(hosts) {
    ASK("||ads.example^\n||Track.Example^\n", {"http://ads.example/x", NULL, 0, FILTER_BLOCK},
        {"http://ads.example", NULL, 0, FILTER_BLOCK},
        {"http://ads.example:8080/", NULL, 0, FILTER_BLOCK},
        {"https://a.b.ADS.example/x", NULL, 0, FILTER_BLOCK},
        {"http://track.example/", NULL, 0, FILTER_BLOCK},
        {"http://bads.example/", NULL, 0, FILTER_PASS},
        {"http://ads.example.org/", NULL, 0, FILTER_PASS},
        {"http://x.org/?u=http://ads.example/", NULL, 0, FILTER_PASS});
    ASK("0.0.0.0 ads.example # note\n127.0.0.1\ttrack.example\n::1 localhost\n# comment\n",
        {"http://ads.example/x", NULL, 0, FILTER_BLOCK},
        {"http://track.example/x", NULL, 0, FILTER_BLOCK},
        {"http://sub.ads.example/x", NULL, 0, FILTER_PASS},
        {"http://localhost/x", NULL, 0, FILTER_PASS});
}
END_TEST

START_TEST(patterns) {
    ASK("/banner/*/img^\n-ad-300x250.\n|http://start.example/a\nswf|\n||cdn.example/ads/\n"
        "&ad_id=*&\n/AdServer/\n",
        {"http://x/banner/foo/img", NULL, 0, FILTER_BLOCK},
        {"http://x/banner/foo/bar/img?x", NULL, 0, FILTER_BLOCK},
        {"http://x/banner//img:", NULL, 0, FILTER_BLOCK},
        {"http://x/banner/img", NULL, 0, FILTER_PASS},
        {"http://x/banner/foo/imgraph", NULL, 0, FILTER_PASS},
        {"http://x/y-AD-300x250.png", NULL, 0, FILTER_BLOCK},
        {"http://start.example/abc", NULL, 0, FILTER_BLOCK},
        {"https://start.example/abc", NULL, 0, FILTER_PASS},
        {"http://x/y.swf", NULL, 0, FILTER_BLOCK}, {"http://x/y.swf?", NULL, 0, FILTER_PASS},
        {"http://a.cdn.example/ads/x", NULL, 0, FILTER_BLOCK},
        {"http://acdn.example/ads/x", NULL, 0, FILTER_PASS},
        {"http://x/?y&ad_id=1&z", NULL, 0, FILTER_BLOCK},
        {"http://x/adserver/y", NULL, 0, FILTER_PASS}, /* "/.../" is a regular expression */
        {"http://x/", NULL, 0, FILTER_PASS});
    ASK("ad*\n||x.example*/y^\n", {"http://x.example.org/y", NULL, 0, FILTER_BLOCK});
}
END_TEST

START_TEST(separators) {
    ASK("||example.com^ad^\n^foo.bar^\n", {"http://example.com/ad", NULL, 0, FILTER_BLOCK},
        {"http://example.com:8000/", NULL, 0, FILTER_PASS},
        {"http://example.com/ad/x", NULL, 0, FILTER_BLOCK},
        {"http://example.com/adx", NULL, 0, FILTER_PASS},
        {"http://x/foo.bar?a", NULL, 0, FILTER_BLOCK}, {"http://x/foo.bar", NULL, 0, FILTER_BLOCK},
        {"http://x/foo.bar-", NULL, 0, FILTER_PASS}, {"http://x/foo.bar%20", NULL, 0, FILTER_PASS});
}
END_TEST

START_TEST(exceptions) {
    ASK("||ads.example^\n@@||ads.example/good/"
        "\n@@||fine.ads.example^\n||bad.ads.example^$important\n"
        "@@||bad.ads.example^\n",
        {"http://ads.example/x", NULL, 0, FILTER_BLOCK},
        {"http://ads.example/good/x", NULL, 0, FILTER_EXCEPTION},
        {"http://fine.ads.example/x", NULL, 0, FILTER_EXCEPTION},
        {"http://bad.ads.example/x", NULL, 0, FILTER_BLOCK});
}
END_TEST

START_TEST(types) {
    ASK("||a.example^$image\n||b.example^$~script\n||c.example^$image,script\n||d.example^$"
        "document\n"
        "||e.example^\n@@||e.example/s$script\n||f.example^$popup\n"
        "||g.example^$~object-subrequest\n",
        {"http://g.example/x", NULL, FILTER_TYPE_PARTS, FILTER_BLOCK},
        {"http://a.example/x", NULL, FILTER_TYPE_IMAGE, FILTER_BLOCK},
        {"http://a.example/x", NULL, FILTER_TYPE_SCRIPT, FILTER_PASS},
        {"http://a.example/x", NULL, FILTER_TYPE_PARTS, FILTER_UNDECIDED},
        {"http://b.example/x", NULL, FILTER_TYPE_IMAGE, FILTER_BLOCK},
        {"http://b.example/x", NULL, FILTER_TYPE_SCRIPT, FILTER_PASS},
        {"http://c.example/x", NULL, FILTER_TYPE_SCRIPT, FILTER_BLOCK},
        {"http://d.example/x", NULL, FILTER_TYPE_DOCUMENT, FILTER_BLOCK},
        {"http://d.example/x", NULL, FILTER_TYPE_IMAGE, FILTER_PASS},
        {"http://e.example/x", NULL, FILTER_TYPE_DOCUMENT, FILTER_PASS},
        {"http://e.example/x", NULL, FILTER_TYPE_PARTS, FILTER_BLOCK},
        {"http://e.example/s", NULL, FILTER_TYPE_SCRIPT, FILTER_EXCEPTION},
        {"http://e.example/s", NULL, FILTER_TYPE_IMAGE, FILTER_BLOCK},
        {"http://e.example/s", NULL, FILTER_TYPE_PARTS, FILTER_EXCEPTION},
        {"http://f.example/s", NULL, FILTER_TYPE_PARTS, FILTER_PASS});
}
END_TEST

START_TEST(parties_and_pages) {
    ASK("||t.example^$third-party\n||u.example^$~third-party\n"
        "/ads.$domain=news.example|~sport.news.example\n/pix.$domain=~ok.example\n",
        {"http://t.example/", "t.example", 0, FILTER_PASS},
        {"http://a.t.example/", "b.t.example", 0, FILTER_PASS},
        {"http://t.example/", "other.example", 0, FILTER_BLOCK},
        {"http://t.example/", NULL, 0, FILTER_UNDECIDED},
        {"http://u.example/", "u.example", 0, FILTER_BLOCK},
        {"http://u.example/", "v.example", 0, FILTER_PASS},
        {"http://x/ads.gif", "www.News.example", 0, FILTER_BLOCK},
        {"http://x/ads.gif", "sport.news.example", 0, FILTER_PASS},
        {"http://x/ads.gif", "xnews.example", 0, FILTER_PASS},
        {"http://x/ads.gif", NULL, 0, FILTER_UNDECIDED},
        {"http://x/pix.gif", "ok.example", 0, FILTER_PASS},
        {"http://x/pix.gif", "any.example", 0, FILTER_BLOCK});
    ck_assert(filter_same_site(SLICE("a.shop.co.uk"), SLICE("shop.co.uk")));
    ck_assert(!filter_same_site(SLICE("a.co.uk"), SLICE("b.co.uk")));
    ck_assert(filter_same_site(SLICE("a.b.example.com"), SLICE("example.com")));
    ck_assert(!filter_same_site(SLICE("1.2.3.4"), SLICE("5.6.3.4")));
    ck_assert(filter_same_site(SLICE("localhost"), SLICE("localhost")));
}
END_TEST

START_TEST(case_matters_where_asked) {
    ASK("/BannerAd.$match-case\n", {"http://x/BannerAd.gif", NULL, 0, FILTER_BLOCK},
        {"http://x/bannerad.gif", NULL, 0, FILTER_PASS});
}
END_TEST

START_TEST(what_is_no_rule_is_counted) {
    struct filter *filter = filter_of("! comment\n[Adblock Plus 2.0]\nexample.com##.ad\n"
                                      "example.com#@#.ad\n##.banner\n\n   \n"
                                      "/ad[0-9]+/\n||x.example^$csp=script-src 'self'\n"
                                      "||y.example^$elemhide\n"
                                      "||z.example^$nonsense\n0.0.0.0 bad_host!\n$\n*\n|\n||\n"
                                      "good\n");
    const struct filter_counts *counts = filter_counts(filter);
    ck_assert_uint_eq(counts->rules, 2); /* "$" is a pattern of one byte */
    ck_assert_uint_eq(counts->unsupported, 3);
    ck_assert_uint_eq(counts->bad, 5);
    ck_assert_ptr_nonnull(strstr(counts->first_bad, "z.example"));
    filter_free(&filter);
}
END_TEST

/* Rules and URLs of few different bytes, so that much matches: the index must never lose a match
 * that the rule alone would give. */
START_TEST(the_index_loses_nothing) {
    static const char alphabet[] = "ab/.^*|-";
    unsigned state = 99;
    for (int round = 0; round < 4000; round++) {
        char rule[12], url[40];
        size_t length = 0;
        for (; length < sizeof rule - 1; length++) {
            state = state * 1103515245u + 12345u;
            rule[length] = alphabet[(state >> 16) % (sizeof alphabet - 1)];
        }
        rule[length - (state >> 20) % 8] = 0;
        rule[sizeof rule - 1] = 0;
        snprintf(url, sizeof url, "http://a.b/");
        for (length = strlen(url); length < sizeof url - 1; length++) {
            state = state * 1103515245u + 12345u;
            url[length] = "aabb/.-?"[(state >> 16) % 8];
        }
        url[length] = 0;
        char with_filler[100];
        struct filter_request request;
        ck_assert(filter_request_init(&request, slice_from(url), SLICE(""), FILTER_TYPE_PARTS));
        /* match-case rules are not indexed by words: the same pattern, looked at directly. */
        snprintf(with_filler, sizeof with_filler, "%s$match-case", rule);
        struct filter *indexed = filter_of(rule), *plain = filter_of(with_filler);
        EXPECT(filter_match(indexed, &request) == filter_match(plain, &request), "rule %s, url %s",
               rule, url);
        filter_free(&indexed);
        filter_free(&plain);
    }
}
END_TEST

START_TEST(bad_requests_are_refused) {
    struct filter_request request;
    char *url = malloc(FILTER_URL_MAX + 2);
    memset(url, 'a', FILTER_URL_MAX + 1);
    memcpy(url, "http://a/", 9);
    url[FILTER_URL_MAX + 1] = 0;
    ck_assert(!filter_request_init(&request, slice_from(url), SLICE(""), 1));
    url[FILTER_URL_MAX] = 0;
    ck_assert(filter_request_init(&request, slice_from(url), SLICE(""), 1));
    ck_assert(!filter_request_init(&request, SLICE("/path"), SLICE(""), 1));
    ck_assert(!filter_request_init(&request, SLICE(""), SLICE(""), 1));
    struct filter *filter = filter_of("a*b*c*d*e*f\n");
    ck_assert(filter_request_init(&request, slice_from(url), SLICE(""), FILTER_TYPE_PARTS));
    ck_assert_int_eq(filter_match(filter, &request), FILTER_PASS);
    filter_free(&filter);
    free(url);
}
END_TEST

START_TEST(files) {
    char path[] = "/tmp/filter_XXXXXX", error[200];
    int fd = mkstemp(path);
    static const char contents[] = "||a.example^\r\n||b.example^\n||c.example^";
    ck_assert_int_eq(write(fd, contents, sizeof contents - 1), (ssize_t)sizeof contents - 1);
    struct filter *filter = filter_create();
    uint64_t before = filter_fingerprint(filter);
    ck_assert(filter_load(filter, path, error, sizeof error));
    ck_assert_uint_ne(before, filter_fingerprint(filter));
    ck_assert(!filter_load(filter, "/nonexistent/list", error, sizeof error));
    ck_assert_ptr_nonnull(strstr(error, "/nonexistent/list"));
    filter_seal(filter);
    ck_assert_uint_eq(filter_counts(filter)->hosts, 3);
    filter_free(&filter);
    close(fd);
    unlink(path);
}
END_TEST

Suite *filter_suite(void) {
    const TTest *const tests[] = {hosts,
                                  patterns,
                                  separators,
                                  exceptions,
                                  types,
                                  parties_and_pages,
                                  case_matters_where_asked,
                                  what_is_no_rule_is_counted,
                                  the_index_loses_nothing,
                                  bad_requests_are_refused,
                                  files};
    return suite_of("filter", tests, COUNT_OF(tests));
}
