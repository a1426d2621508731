#include "suites.h"

#include "adremover/filter.h"
#include "adremover/host.h"
#include "adremover/replacement.h"
#include "adremover/request.h"
#include "adremover/rule.h"
#include "adremover/rule_options.h"
#include "adremover/skipped.h"
#include "http/head_parser.h"

#include <unistd.h>

struct question {
    const char *url, *page;
    unsigned types;
    enum filter_verdict verdict;
};

/* Texts that a rule keeps. */
static char *copies[8];
static unsigned copy_count;

static char *keep_copy(void *keeper, const char *bytes, size_t length) {
    ck_assert_uint_lt(copy_count, COUNT_OF(copies));
    char *copy = strndup(bytes, length);
    return copies[copy_count++] = copy;
}

static void release_copies(void) {
    while (copy_count > 0)
        free(copies[--copy_count]);
}

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

static void fill(struct filter_request *request, const struct question *q) {
    ck_assert(filter_request_init(request, slice_from(q->url)));
    filter_request_set_page(request, slice_from(q->page == NULL ? "" : q->page));
    request->types = q->types == 0 ? FILTER_TYPE_PARTS : q->types;
}

static void ask(const char *rules, const struct question *questions, size_t count) {
    static struct filter_request request;
    struct filter *filter = filter_of(rules);
    ck_assert_msg(filter_counts(filter)->bad == 0, "%s", filter_counts(filter)->first_bad);
    for (size_t i = 0; i < count; i++) {
        struct filter_answer answer;
        const struct question *q = &questions[i];
        fill(&request, q);
        enum filter_verdict got = filter_match(filter, &request, &answer);
        EXPECT(got == q->verdict, "%s on %s: %d instead of %d", q->url,
               q->page == NULL ? "-" : q->page, got, q->verdict);
        EXPECT(answer.verdict == got &&
                   (answer.rule.length > 0) == (got == FILTER_BLOCK || got == FILTER_EXCEPTION),
               "%s: the rule", q->url);
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
    ASK("127.0.0.1 localhost  one.example\ttwo.example three.example# four.example\n",
        {"http://one.example/x", NULL, 0, FILTER_BLOCK},
        {"http://two.example/x", NULL, 0, FILTER_BLOCK},
        {"http://three.example/x", NULL, 0, FILTER_BLOCK},
        {"http://four.example/x", NULL, 0, FILTER_PASS},
        {"http://localhost/x", NULL, 0, FILTER_PASS});
}
END_TEST

/* Lists have hosts as people write them, requests as the network has them. */
START_TEST(other_letters) {
    ASK("||at\u0111he.net/pu/\n||B\u00dcCHER.example^\n||\u043f\u0440\u0438\u043c\u0435\u0440."
        "\u0440\u0444^\n0.0.0.0 \u4f8b\u5b50.example\n/b\u00e4nner/*$image\n||ok.example/\u00e9^\n"
        "page-ad$domain=espa\u00f1ol.net\n",
        {"http://xn--athe-1ua.net/pu/x", NULL, 0, FILTER_BLOCK},
        {"http://www.xn--bcher-kva.example/", NULL, 0, FILTER_BLOCK},
        {"http://xn--e1afmkfd.xn--p1ai/x", NULL, 0, FILTER_BLOCK},
        {"http://xn--fsqu00a.example/x", NULL, 0, FILTER_BLOCK},
        {"http://x.example/b%C3%A4nner/1.gif", NULL, FILTER_TYPE_IMAGE, FILTER_BLOCK},
        {"http://ok.example/%c3%a9/", NULL, 0, FILTER_BLOCK},
        {"http://x.example/page-ad", "xn--espaol-zwa.net", 0, FILTER_BLOCK},
        {"http://x.example/page-ad", "espanol.net", 0, FILTER_PASS});
}
END_TEST

/* Lists are texts, but a disk may have put zeros into one. */
START_TEST(zeros_in_lines) {
    static const char lines[] =
        "0.0.0.0 a.example\0\0\0 b.example\n||c\0.example^\nx\0y$domain=d\0\n"
        "0.0.0.0 \u4f8b\0\u5b50.example\n||e.example^\n";
    struct filter *filter = filter_create();
    struct filter_request request;
    struct filter_answer answer;
    for (struct slice rest = slice_make(lines, sizeof lines - 1); rest.length > 0;) {
        size_t length = (size_t)((const char *)memchr(rest.base, '\n', rest.length) - rest.base);
        filter_add(filter, slice_make(rest.base, length), "list");
        rest = slice_make(rest.base + length + 1, rest.length - length - 1);
    }
    filter_seal(filter);
    ck_assert(filter_request_init(&request, SLICE("http://e.example/")));
    ck_assert_int_eq(filter_match(filter, &request, &answer), FILTER_BLOCK);
    filter_free(&filter);
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
        {"http://x/adserver/y", NULL, 0, FILTER_BLOCK}, /* "/.../" is a regular expression */
        {"http://x/yadserver2", NULL, 0, FILTER_BLOCK}, {"http://x/", NULL, 0, FILTER_PASS});
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
        {"http://g.example/x", NULL, FILTER_TYPE_OBJECT, FILTER_PASS},
        {"http://g.example/x", NULL, FILTER_TYPE_MEDIA, FILTER_BLOCK},
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
}
END_TEST

START_TEST(sites) {
    ck_assert(site_is_same(SLICE("a.shop.co.uk"), SLICE("shop.co.uk")));
    ck_assert(!site_is_same(SLICE("a.co.uk"), SLICE("b.co.uk")));
    ck_assert(site_is_same(SLICE("a.b.example.com"), SLICE("example.com")));
    ck_assert(!site_is_same(SLICE("a.github.io"), SLICE("b.github.io")));
    ck_assert(!site_is_same(SLICE("1.2.3.4"), SLICE("5.6.3.4")));
    ck_assert(!site_is_same(SLICE("::1"), SLICE("::2")));
    ck_assert(site_is_same(SLICE("localhost"), SLICE("localhost")));
    ck_assert(!site_is_same(SLICE(""), SLICE("localhost")));
    ck_assert_uint_eq(site_suffix(SLICE("www.example.co.uk")), 6);
    ck_assert_uint_eq(site_suffix(SLICE("example.com")), 4);
    ck_assert_uint_eq(site_suffix(SLICE("1.2.3.4")), 0);
}
END_TEST

START_TEST(regular_expressions) {
    ASK("/ad[0-9]+\\.js/\n/^https?:\\/\\/(www\\.)?trk\\./$script,domain=a.example\n"
        "/Case\\d/$match-case\n@@/ad7\\.js$/\n/x{2}y?z/$image\n/\\.(bid|top)\\//$ping\n",
        {"http://x/ad12.js", NULL, 0, FILTER_BLOCK}, {"http://x/ad.js", NULL, 0, FILTER_PASS},
        {"http://x/AD3.js?y", NULL, 0, FILTER_BLOCK},
        {"http://x/ad7.js", NULL, 0, FILTER_EXCEPTION},
        {"http://trk.example/", "a.example", FILTER_TYPE_SCRIPT, FILTER_BLOCK},
        {"http://trk.example/", "b.example", FILTER_TYPE_SCRIPT, FILTER_PASS},
        {"http://trk.example/", "a.example", FILTER_TYPE_IMAGE, FILTER_PASS},
        {"http://x/Case5", NULL, 0, FILTER_BLOCK}, {"http://x/case5", NULL, 0, FILTER_PASS},
        {"http://x/axxz", NULL, FILTER_TYPE_IMAGE, FILTER_BLOCK},
        {"http://x/axz", NULL, FILTER_TYPE_IMAGE, FILTER_PASS},
        {"http://a.top/", NULL, FILTER_TYPE_PING, FILTER_BLOCK});
    struct filter *filter = filter_of("/(unclosed/\n/a$/\n");
    ck_assert_uint_eq(filter_counts(filter)->bad, 1);
    ck_assert_uint_eq(filter_counts(filter)->regexes, 1);
    filter_free(&filter);
}
END_TEST

/* Of a long URL only the beginning is looked at. Its cut is not the end that "$" stands for, and no
 * end of a word. */
START_TEST(the_cut_is_no_end) {
    enum { LONG = 2048 };
    static const char *const rules[] = {"/ad$/", "/ad\\b/", "/ad(?![a-z])/", "/[a-z]+$/"};
    static struct filter_request request;
    struct filter_answer answer;
    char url[LONG + 100];
    memset(url, '/', sizeof url);
    memcpy(url, "http://x.example/", 17);
    memcpy(url + LONG - 2, "advert", 7);
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        struct filter *filter = filter_of(rules[i]);
        ck_assert_uint_eq(filter_counts(filter)->regexes, 1);
        ck_assert(filter_request_init(&request, slice_from(url)));
        EXPECT(filter_match(filter, &request, &answer) == FILTER_PASS, "%s", rules[i]);
        filter_free(&filter);
    }
    struct filter *filter = filter_of("/example.*\\/\\/.*/\n");
    ck_assert_int_eq(filter_match(filter, &request, &answer), FILTER_BLOCK);
    filter_free(&filter);
    memset(url + 17, 'a', LONG); /* one word */
    url[17 + LONG] = '\0';
    filter = filter_of("/a{9}$/\n");
    ck_assert(filter_request_init(&request, slice_from(url)));
    ck_assert_int_eq(filter_match(filter, &request, &answer), FILTER_PASS);
    filter_free(&filter);
}
END_TEST

/* It must not hang, whatever the expression. */
START_TEST(dear_expressions_match_nothing) {
    ASK("/(a+)+b/\n",
        {"http://x/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", NULL, 0, FILTER_PASS});
}
END_TEST

START_TEST(hosts_and_entities) {
    ASK("/pix.$denyallow=ok.example|fine.example\n/to.$to=t.example|~no.t.example\n"
        "/ent.$domain=shop.*|~shop.fr\n"
        "/re.$domain=/^(www|cdn)[0-9]*\\.(a|b)\\./|~www7.a.example|c.example\n"
        "no.gif$domain=~/^safe\\./\nat.gif$to=/^img[0-9]/\n",
        {"http://a.example/pix.gif", NULL, 0, FILTER_BLOCK},
        {"http://ok.example/pix.gif", NULL, 0, FILTER_PASS},
        {"http://sub.fine.example/pix.gif", NULL, 0, FILTER_PASS},
        {"http://a.t.example/to.gif", NULL, 0, FILTER_BLOCK},
        {"http://no.t.example/to.gif", NULL, 0, FILTER_PASS},
        {"http://u.example/to.gif", NULL, 0, FILTER_PASS},
        {"http://x/ent.gif", "www.shop.co.uk", 0, FILTER_BLOCK},
        {"http://x/ent.gif", "shop.com", 0, FILTER_BLOCK},
        {"http://x/ent.gif", "shop.fr", 0, FILTER_PASS},
        {"http://x/ent.gif", "workshop.com", 0, FILTER_PASS},
        {"http://x/re.gif", "CDN12.a.example", 0, FILTER_BLOCK},
        {"http://x/re.gif", "www.b.example", 0, FILTER_BLOCK},
        {"http://x/re.gif", "www7.a.example", 0, FILTER_PASS},
        {"http://x/re.gif", "x.c.example", 0, FILTER_BLOCK},
        {"http://x/re.gif", "a.example", 0, FILTER_PASS},
        {"http://x/re.gif", NULL, 0, FILTER_UNDECIDED},
        {"http://x/no.gif", "safe.example", 0, FILTER_PASS},
        {"http://x/no.gif", "other.example", 0, FILTER_BLOCK},
        {"http://img7.example/at.gif", NULL, 0, FILTER_BLOCK},
        {"http://x/at.gif", NULL, 0, FILTER_PASS});
    struct filter *filter = filter_of("a$domain=/(/\nb$domain=/x\nc$domain=/x/|/y/\n");
    ck_assert_uint_eq(filter_counts(filter)->rules, 1);
    filter_free(&filter);
}
END_TEST

/* Exceptions from element hiding are counted with it, unless they say more. */
START_TEST(hiding_is_not_ours) {
    struct filter *filter = filter_of("@@||a.example^$generichide\n@@||b.example^$ehide,shide\n"
                                      "@@||c.example^$elemhide,document\nx##.ad\n||d^$csp=x\n");
    const struct filter_counts *counts = filter_counts(filter);
    ck_assert_uint_eq(counts->cosmetic, 3);
    ck_assert_uint_eq(counts->rules, 1);
    ck_assert_uint_eq(counts->unsupported, 1);
    filter_free(&filter);
}
END_TEST

START_TEST(badfilter_withdraws) {
    ASK("||a.example^$script,third-party\n||a.example^$third-party,script,badfilter\n"
        "||b.example^\n||b.example^$image,badfilter\n@@||c.example^\n||c.example^\n"
        "@@||c.example^$badfilter\n",
        {"http://a.example/", "x.example", FILTER_TYPE_SCRIPT, FILTER_PASS},
        {"http://b.example/", "x.example", FILTER_TYPE_IMAGE, FILTER_BLOCK},
        {"http://c.example/", "x.example", FILTER_TYPE_IMAGE, FILTER_BLOCK});
    struct filter *filter = filter_of("||a.example^\n||a.example^$badfilter\n");
    ck_assert_uint_eq(filter_counts(filter)->withdrawn, 1);
    ck_assert_uint_eq(filter_counts(filter)->rules, 0);
    filter_free(&filter);
}
END_TEST

START_TEST(pages_are_let_alone) {
    ASK("||ads.example^\n||bad.example^$important\n@@||quiet.example^$document\n",
        {"http://ads.example/", "news.example", 0, FILTER_BLOCK},
        {"http://ads.example/", "www.quiet.example", 0, FILTER_EXCEPTION},
        {"http://bad.example/", "quiet.example", 0, FILTER_BLOCK});
}
END_TEST

START_TEST(methods) {
    static struct filter_request request;
    struct filter_answer answer;
    struct filter *filter = filter_of("/a.$method=post|head\n/b.$method=~get\n");
    static const struct {
        const char *url;
        unsigned method;
        enum filter_verdict verdict;
    } cases[] = {{"http://x/a.b", FILTER_METHOD_GET, FILTER_PASS},
                 {"http://x/a.c", FILTER_METHOD_POST, FILTER_BLOCK},
                 {"http://x/a.c", FILTER_METHOD_HEAD, FILTER_BLOCK},
                 {"http://x/b.c", FILTER_METHOD_GET, FILTER_PASS},
                 {"http://x/b.c", FILTER_METHOD_OTHER, FILTER_BLOCK},
                 {"http://x/a.c", FILTER_METHOD_OTHER, FILTER_PASS}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        ck_assert(filter_request_init(&request, slice_from(cases[i].url)));
        request.method = cases[i].method;
        ck_assert_int_eq(filter_match(filter, &request, &answer), cases[i].verdict);
    }
    filter_free(&filter);
}
END_TEST

static void expect_resource(const struct filter *filter, const char *url, const char *resource) {
    static struct filter_request request;
    struct filter_answer answer;
    ck_assert(filter_request_init(&request, slice_from(url)));
    request.types = FILTER_TYPE_SCRIPT;
    ck_assert_int_eq(filter_match(filter, &request, &answer), FILTER_BLOCK);
    EXPECT(slice_equal(answer.resource, slice_from(resource)), "%s: %.*s instead of %s", url,
           SLICE_PRINT(answer.resource), resource);
}

/* What a text replaces in bodies is no pattern, whatever stands in its expression. */
START_TEST(replace_is_passed_over) {
    static const char rules[] =
        "||a.example^$replace=/a\\,b/c/\n||b.example^$xhr,1p,replace=/\"x\"[^}]*\\},?\\,\"/$1\\,/\n"
        "||c.example^$replace=/a/b\\,1p=c\\,/,domain=d.example\n||e.example^$replace\n"
        "/f.example/$replace=/x\\,/y\\,{}/i\n";
    struct filter *filter = filter_of(rules);
    ck_assert_uint_eq(filter_counts(filter)->rules, 0);
    ck_assert_uint_eq(filter_counts(filter)->bad, 0);
    filter_free(&filter);
    static const char others[] = "||a.example/x,y$z\n||b.example/a$b,c=d,e:f/"
                                 "\n||c.example^$removeparam=/^a\\,b$/,~third-party\n";
    filter = filter_of(others);
    ck_assert_uint_eq(filter_counts(filter)->rules, 2);
    filter_free(&filter);
}
END_TEST

START_TEST(addresses_of_version_6) {
    static const struct question questions[] = {
        {"http://[2001:db8::1]/x", NULL, 0, FILTER_BLOCK},
        {"http://[2001:db8::1]:8080/x", NULL, 0, FILTER_BLOCK},
        {"http://[2001:DB8::1]?x", NULL, 0, FILTER_BLOCK},
        {"http://[2001:db8::12]/x", NULL, 0, FILTER_PASS},
        {"http://[1:2001:db8::1]/x", NULL, 0, FILTER_PASS},
        {"http://a.example/?[2001:db8::1]/", NULL, 0, FILTER_PASS},
        {"http://[2001:db8::2]/", NULL, 0, FILTER_PASS},
        {"http://[2001:db8::2]/ad/x", NULL, 0, FILTER_BLOCK},
        {"http://[2001:db8::3]/x", NULL, 0, FILTER_BLOCK},
        {"http://ads.example/", "2001:db8::5", 0, FILTER_BLOCK},
        {"http://ads.example/", "2001:db8::6", 0, FILTER_PASS},
        {"http://track.example/", "2001:db8::7", 0, FILTER_EXCEPTION},
    };
    ask("||[2001:db8::1]^\n||[2001:db8::2]/ad/\n||[2001:DB8:0:0::3]^\n||track.example^\n"
        "||ads.example^$domain=[2001:db8::5]\n@@||[2001:db8::7]^$document\n",
        questions, COUNT_OF(questions));
}
END_TEST

START_TEST(resources) {
    struct filter *filter = filter_of(
        "||a.example^$redirect=noopjs\n||b.example^\n||b.example/x$redirect-rule=1x1.gif:5\n"
        "||b.example/x/y$redirect-rule=noop.txt:10\n||c.example^$redirect-rule=noopjs\n"
        "||d.example^$empty\n||e.example^$rewrite=abp-resource:blank-js\n"
        "||f.example^$redirect=noopjs\n@@||f.example/z$redirect-rule=noopjs\n"
        "||g.example^\n*$redirect-rule=1x1.gif,domain=g.example,image\n"
        "@@||b.example/x/y/z$redirect-rule\n@@||f.example/all^$redirect-rule,script\n");
    expect_resource(filter, "http://b.example/x/y/z", "");
    expect_resource(filter, "http://f.example/all/", "");
    expect_resource(filter, "http://a.example/", "noopjs");
    expect_resource(filter, "http://b.example/", "");
    expect_resource(filter, "http://b.example/x", "1x1.gif");
    expect_resource(filter, "http://b.example/x/y", "noop.txt");
    expect_resource(filter, "http://d.example/", "empty");
    expect_resource(filter, "http://e.example/", "abp-resource:blank-js");
    expect_resource(filter, "http://f.example/", "noopjs");
    expect_resource(filter, "http://f.example/z", "");
    static struct filter_request request;
    struct filter_answer answer;
    ck_assert(filter_request_init(&request, SLICE("http://c.example/")));
    ck_assert_int_eq(filter_match(filter, &request, &answer), FILTER_PASS);
    filter_free(&filter);
}
END_TEST

static void expect_replacement(unsigned asked, const char *resource, const char *name) {
    const struct neutral *neutral = replacement_of(asked, slice_from(resource));
    EXPECT(slice_equal(neutral->name, slice_from(name)), "%x %s: %.*s instead of %s", asked,
           resource, SLICE_PRINT(neutral->name), name);
}

START_TEST(replacements) {
    expect_replacement(FILTER_TYPE_IMAGE, "", "blank.gif");
    expect_replacement(FILTER_TYPE_IMAGE, "2x2.png", "blank-2x2.png");
    expect_replacement(FILTER_TYPE_SCRIPT, "", "empty.js");
    expect_replacement(FILTER_TYPE_SCRIPT, "abp-resource:blank-js", "empty.js");
    expect_replacement(FILTER_TYPE_SCRIPT, "unheard.js", "empty.js");
    expect_replacement(FILTER_TYPE_STYLESHEET, "none", "empty.css");
    expect_replacement(FILTER_TYPE_DOCUMENT | FILTER_TYPE_SUBDOCUMENT, "", "empty.html");
    expect_replacement(FILTER_TYPE_MEDIA, "", "empty.mp4");
    expect_replacement(FILTER_TYPE_XMLHTTPREQUEST, "", "empty.txt");
    expect_replacement(FILTER_TYPE_PARTS, "", "empty.txt");
}
END_TEST

static void expect_stripped(const char *rules, const char *url, const char *wanted) {
    static struct filter_request request;
    char out[200];
    struct slice rule;
    struct filter *filter = filter_of(rules);
    ck_assert_msg(filter_counts(filter)->bad == 0, "%s", filter_counts(filter)->first_bad);
    ck_assert(filter_request_init(&request, slice_from(url)));
    request.types = FILTER_TYPE_DOCUMENT;
    filter_request_set_page(&request, SLICE("page.example"));
    size_t length = filter_strip(filter, &request, out, sizeof out, &rule);
    EXPECT(slice_equal(slice_make(out, length), slice_from(wanted)), "%s: %.*s instead of %s", url,
           (int)length, out, wanted);
    filter_free(&filter);
}

START_TEST(parameters) {
    static const char one[] = "||x.example^$removeparam=utm\n";
    expect_stripped(one, "http://x.example/?utm=1&a=2", "http://x.example/?a=2");
    expect_stripped(one, "http://x.example/?a=2&utm=1&utm=3", "http://x.example/?a=2");
    expect_stripped(one, "http://x.example/?utm", "http://x.example/");
    expect_stripped(one, "http://x.example/y?utm=1#part", "http://x.example/y");
    expect_stripped(one, "http://x.example/?utmx=1", "");
    expect_stripped(one, "http://x.example/utm=1", "");
    expect_stripped(one, "http://y.example/?utm=1", "");
    expect_stripped("$removeparam=/^utm_[a-z]+=/\n",
                    "http://a/?utm_id=1&b=utm_id=3&utm_x=", "http://a/?b=utm_id=3");
    expect_stripped("||a^$removeparam\n", "http://a/?b&c=1", "http://a/");
    expect_stripped("||a^$removeparam=~b\n", "http://a/?c&b=1&d", "http://a/?b=1");
    expect_stripped("$removeparam=a\n$removeparam=b\n@@||x.example^$removeparam=a\n",
                    "http://x.example/?a=1&b=2&c=3", "http://x.example/?a=1&c=3");
    expect_stripped("$removeparam=a\n@@||x.example^$removeparam\n", "http://x.example/?a=1", "");
    expect_stripped("||x.example^$removeparam=a,image\n", "http://x.example/?a=1", "");
}
END_TEST

/* An important rule yields to an important exception only, whatever the rule does. */
START_TEST(important_rules_yield_to_important_exceptions) {
    static const char strips[] =
        "$removeparam=a,important\n@@||x.example^$removeparam=a\n"
        "@@||y.example^$removeparam\n@@||z.example^$removeparam,important\n"
        "@@||page.example^$document\n";
    expect_stripped(strips, "http://x.example/?a=1", "http://x.example/");
    expect_stripped(strips, "http://y.example/?a=1", "http://y.example/");
    expect_stripped(strips, "http://z.example/?a=1", "");
    expect_stripped("$removeparam=a\n@@||page.example^$document\n", "http://x.example/?a=1", "");
    expect_stripped("$removeparam=a,important\n@@||page.example^$document,important\n",
                    "http://x.example/?a=1", "");
    struct filter *filter = filter_of(
        "||a.example^\n||a.example^$redirect-rule=noopjs,important\n@@||a.example^$redirect-rule\n"
        "||b.example^\n||b.example^$redirect-rule=noopjs:9\n||b.example^$redirect-rule=1x1.gif\n"
        "@@||b.example^$redirect-rule=noopjs\n");
    expect_resource(filter, "http://a.example/", "noopjs");
    expect_resource(filter, "http://b.example/", "1x1.gif");
    filter_free(&filter);
    ASK("||x.example^$important\n@@||a.example^$document\n@@||b.example^$document,important\n",
        {"http://x.example/", "a.example", 0, FILTER_BLOCK},
        {"http://x.example/", "b.example", 0, FILTER_EXCEPTION});
}
END_TEST

/* Writes the rules with the option where "%s" stands. */
static void replace_mark(char *out, size_t size, const char *rules, const char *option) {
    const char *mark = strstr(rules, "%s");
    snprintf(out, size, "%.*s%s%s", (int)(mark - rules), rules, option, mark + 2);
}

/* What becomes of a request: the verdict, and what is answered or asked for in its place. */
static const char *decision(const char *rules, const struct question *q, unsigned method) {
    static struct filter_request request;
    static char text[400];
    char out[200];
    struct filter_answer answer;
    struct slice rule;
    struct filter *filter = filter_of(rules);
    ck_assert_msg(filter_counts(filter)->bad == 0, "%s", filter_counts(filter)->first_bad);
    EXPECT(filter_counts(filter)->unsupported == 0, "not supported: %s", rules);
    fill(&request, q);
    request.method = method;
    enum filter_verdict verdict = filter_match(filter, &request, &answer);
    size_t length = filter_strip(filter, &request, out, sizeof out, &rule);
    snprintf(text, sizeof text, "%d %.*s %.*s", verdict, SLICE_PRINT(answer.resource), (int)length,
             out);
    filter_free(&filter);
    return text;
}

/* They are the first names, before "domain". */
static bool is_type(const char *name) {
    for (size_t i = 0; rule_options_name(i).length > 0; i++) {
        if (slice_equal(rule_options_name(i), SLICE("domain")))
            return false;
        if (slice_equal(rule_options_name(i), slice_from(name)))
            return true;
    }
    return false;
}

/* Each option changes what becomes of a request: "_" in its place changes nothing. */
START_TEST(each_option_has_its_effect) {
    static const struct {
        const char *name, *rules, *option;
        const char *url, *page;
        unsigned types, method;
    } cases[] = {
#define X                              "http://x.example/"
#define CASE(name, rules, option, ...) {name, rules, option, __VA_ARGS__}
        CASE("domain", "/x$%s", "domain=a.example", X, "b.example", 0, 0),
        CASE("from", "/x$%s", "from=a.example", X, "b.example", 0, 0),
        CASE("to", "/x$%s", "to=a.example", X, NULL, 0, 0),
        CASE("to", "/x$%s", "to=~x.*", X, NULL, 0, 0),
        CASE("denyallow", "/x$%s", "denyallow=x.example", X, NULL, 0, 0),
        CASE("denyallow", "/x$%s", "denyallow=x.*", X, NULL, 0, 0),
        CASE("method", "/x$%s", "method=post", X, NULL, 0, 0),
        CASE("method", "/x$%s", "method=patch", X, NULL, 0, FILTER_METHOD_OPTIONS),
        CASE("third-party", "/x$%s", "third-party", X, "x.example", 0, 0),
        CASE("3p", "/x$%s", "3p", X, "x.example", 0, 0),
        CASE("first-party", "/x$%s", "first-party", X, "a.test", 0, 0),
        CASE("1p", "/x$%s", "1p", X, "a.test", 0, 0),
        CASE("match-case", "/xA$%s", "match-case", X "xa", NULL, 0, 0),
        CASE("important", "/x$%s\n@@/x", "important", X, NULL, 0, 0),
        CASE("badfilter", "/x\n/x$%s", "badfilter", X, NULL, 0, 0),
        CASE("redirect", "/x$%s", "redirect=noopjs", X, NULL, 0, 0),
        CASE("rewrite", "/x$%s", "rewrite=abp-resource:blank-js", X, NULL, 0, 0),
        CASE("redirect-rule", "/x$%s", "redirect-rule=noopjs", X, NULL, 0, 0),
        CASE("empty", "/x$%s", "empty", X, NULL, 0, 0),
        CASE("mp4", "/x$%s", "mp4", X, NULL, 0, 0),
        CASE("removeparam", "/x$%s", "removeparam=a", X "?a", NULL, FILTER_TYPE_DOCUMENT, 0),
        CASE("queryprune", "/x$%s", "queryprune=a", X "?a", NULL, FILTER_TYPE_DOCUMENT, 0),
        /* Of element hiding there is nothing to see. */
        CASE("elemhide", "@@/x$%s\n/x", "elemhide", X, NULL, 0, 0),
        CASE("ehide", "@@/x$%s\n/x", "ehide", X, NULL, 0, 0),
        CASE("generichide", "@@/x$%s\n/x", "generichide", X, NULL, 0, 0),
        CASE("ghide", "@@/x$%s\n/x", "ghide", X, NULL, 0, 0),
        CASE("specifichide", "@@/x$%s\n/x", "specifichide", X, NULL, 0, 0),
        CASE("shide", "@@/x$%s\n/x", "shide", X, NULL, 0, 0),
#undef CASE
    };
    for (size_t at = 0; rule_options_name(at).length > 0; at++) {
        char name[40], with[200], without[200], first[400];
        snprintf(name, sizeof name, "%.*s", SLICE_PRINT(rule_options_name(at)));
        unsigned found = is_type(name) || strcmp(name, "collapse") == 0 || strcmp(name, "_") == 0;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            if (strcmp(cases[i].name, name) != 0)
                continue;
            const struct question q = {cases[i].url, cases[i].page, cases[i].types, 0};
            unsigned method = cases[i].method == 0 ? FILTER_METHOD_GET : cases[i].method;
            replace_mark(with, sizeof with, cases[i].rules, cases[i].option);
            replace_mark(without, sizeof without, cases[i].rules, "_");
            snprintf(first, sizeof first, "%s", decision(with, &q, method));
            EXPECT(strcmp(first, decision(without, &q, method)) != 0, "%s changes nothing", with);
            found++;
        }
        EXPECT(found > 0, "%s has no case", name);
    }
}
END_TEST

/* For each type there is a request that the proxy knows to be of this type and of no other. */
START_TEST(each_type_has_its_requests) {
    static const struct {
        const char *name, *fields;
    } cases[] = {
        {"script", "Sec-Fetch-Dest: worker"},
        {"image", "Sec-Fetch-Dest: image"},
        {"stylesheet", "Sec-Fetch-Dest: style"},
        {"css", "Sec-Fetch-Dest: style"},
        {"object", "Sec-Fetch-Dest: embed"},
        {"object-subrequest", "Sec-Fetch-Dest: object"},
        {"xmlhttprequest", "Sec-Fetch-Dest: empty"},
        {"xhr", "Sec-Fetch-Dest: empty\r\nSec-Fetch-Mode: cors"},
        {"subdocument", "Sec-Fetch-Dest: iframe"},
        {"frame", "Sec-Fetch-Dest: fencedframe"},
        {"ping", "Sec-Fetch-Dest: empty\r\nPing-To: http://a.example/"},
        {"beacon", "Ping-To: http://a.example/"},
        {"websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="},
        {"font", "Sec-Fetch-Dest: font"},
        {"media", "Sec-Fetch-Dest: track"},
        {"other", "Sec-Fetch-Dest: report"},
        {"document", "Sec-Fetch-Dest: document"},
        {"doc", "Sec-Fetch-Dest: document"},
        {"all", "Sec-Fetch-Dest: document"},
    };
    for (size_t at = 0; rule_options_name(at).length > 0; at++) {
        char name[40], rule[60], head_text[200];
        snprintf(name, sizeof name, "%.*s", SLICE_PRINT(rule_options_name(at)));
        if (!is_type(name))
            continue;
        size_t i = 0;
        while (i < COUNT_OF(cases) && strcmp(cases[i].name, name) != 0)
            i++;
        snprintf(rule, sizeof rule, "/x$%s", name);
        struct filter *filter = filter_of(rule);
        if (i == COUNT_OF(cases)) {
            EXPECT(filter_counts(filter)->unsupported == 1, "%s has no request", name);
            filter_free(&filter);
            continue;
        }
        static struct filter_request request;
        struct filter_answer answer;
        struct http_head head;
        snprintf(head_text, sizeof head_text, "GET / HTTP/1.1\r\n%s\r\n\r\n", cases[i].fields);
        ck_assert_int_gt(http_head_parse_request(&head, head_text, strlen(head_text), 0), 0);
        ck_assert(filter_request_init(&request, SLICE("http://x.example/")));
        request.types = request_kind_types(&head, SLICE("/"));
        EXPECT(filter_match(filter, &request, &answer) == FILTER_BLOCK, "%s", rule);
        filter_free(&filter);
    }
}
END_TEST

/* An option in a form that has no meaning is not taken for another form. */
START_TEST(other_forms_are_not_supported) {
    static const char *const rules[] = {
        "/x$image,~important",
        "/x$image,~badfilter",
        "/x$~redirect=noopjs",
        "/x$~redirect-rule=noopjs",
        "/x$~rewrite=a",
        "/x$~empty",
        "/x$~mp4",
        "/x$~removeparam=a",
        "/x$~queryprune=a",
        "/x$~method=get",
        "/x$~denyallow=x.example",
        "@@/x$~elemhide",
        "@@/x$~generichide",
        "/x$image=1",
        "/x$third-party=1",
        "/x$important=1",
        "/x$badfilter=1",
        "/x$match-case=1",
        "/x$empty=1",
        "/x$mp4=1",
        "@@/x$elemhide=1",
        "/x$method=nonsense",
        "/x$method=connect|get",
        "/x$domain=a.example,from=b.example",
        "/x$to=a.example,to=b.example",
        "/x$denyallow=a.example,denyallow=b.example",
        "/x$removeparam=a,redirect=noopjs",
        "/x$redirect=noopjs,removeparam=a",
        "/x$redirect=noopjs,redirect-rule=1x1.gif",
        "/x$removeparam=a,removeparam=b",
        "/x$removeparam=|a",
        "/x$removeparam=a|b",
        "/x$removeparam=/a/u",
    };
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        struct filter *filter = filter_of(rules[i]);
        EXPECT(filter_counts(filter)->unsupported == 1 && filter_counts(filter)->rules == 0, "%s",
               rules[i]);
        filter_free(&filter);
    }
    ASK("/x$3p,1p\n", {"http://x.example/", "x.example", 0, FILTER_BLOCK},
        {"http://x.example/", "a.test", 0, FILTER_BLOCK});
}
END_TEST

START_TEST(case_matters_where_asked) {
    ASK("/BannerAd.$match-case\n", {"http://x/BannerAd.gif", NULL, 0, FILTER_BLOCK},
        {"http://x/bannerad.gif", NULL, 0, FILTER_PASS});
    ASK("||Ads.Example/Banner$match-case\n", {"http://ads.example/Banner", NULL, 0, FILTER_BLOCK},
        {"http://ads.example/banner", NULL, 0, FILTER_PASS});
}
END_TEST

START_TEST(what_is_no_rule_is_counted) {
    struct filter *filter =
        filter_of("! comment\n[Adblock Plus 2.0]\nexample.com##.ad\n"
                  "example.com#@#.ad\n##.banner\n\n   \n"
                  "||x.example^$csp=script-src 'self'\n"
                  "||y.example^$elemhide\n||u.example^$inline-font\n||v."
                  "example^$image,Csp=x\n||w.example^$webrtc\n"
                  "||z.example^$nonsense\n||\xff.example^\n0.0.0.0 bad_host!\n$\n*\n|\n||\n"
                  "good\n");
    const struct filter_counts *counts = filter_counts(filter);
    ck_assert_uint_eq(counts->rules, 2); /* "$" is a pattern of one byte */
    ck_assert_uint_eq(counts->cosmetic, 4);
    ck_assert_uint_eq(counts->unsupported, 5);
    ck_assert_uint_eq(counts->option_count, 4);
    ck_assert_str_eq(counts->options[0].name, "csp");
    ck_assert_uint_eq(counts->options[0].rules, 2);
    ck_assert_str_eq(counts->options[2].name, "webrtc");
    ck_assert_str_eq(counts->options[3].name, "nonsense");
    ck_assert_uint_eq(counts->bad, 5);
    ck_assert_ptr_nonnull(strstr(counts->first_bad, "\xff.example"));
    filter_free(&filter);
}
END_TEST

START_TEST(very_many_unknown_options) {
    struct filter *filter = filter_create();
    char line[64];
    for (int i = 0; i < 200; i++) {
        int length =
            snprintf(line, sizeof line, "||x.example^$option-%d-of-a-very-long-name-%d", i, i);
        filter_add(filter, slice_make(line, (size_t)length), "test");
    }
    filter_seal(filter);
    ck_assert_uint_eq(filter_counts(filter)->option_count, FILTER_OPTIONS_MAX);
    ck_assert_uint_eq(filter_counts(filter)->unsupported, 200);
    ck_assert_str_eq(filter_counts(filter)->options[FILTER_OPTIONS_MAX - 1].name, "(others)");
    filter_free(&filter);
}
END_TEST

static unsigned random_number(unsigned *state, unsigned below) {
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) % below;
}

/* Of an alphabet so small that much matches. */
static void random_text(unsigned *state, const char *alphabet, char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        text[i] = alphabet[random_number(state, (unsigned)strlen(alphabet))];
    text[length] = 0;
}

/* The index must never lose a match that the rule alone would give, nor find one more. */
START_TEST(the_index_loses_nothing) {
    static struct filter_request request;
    unsigned state = 99;
    for (int round = 0; round < 40000; round++) {
        char text[16], url[60];
        struct rule rule;
        struct filter *filter = filter_create();
        random_text(&state, round % 2 == 0 ? "ab/.^*|-" : "aabbb./", text,
                    4 + random_number(&state, 11));
        if (random_number(&state, 3) == 0)
            memcpy(text, "||", 2);
        memcpy(url, "http://", 7);
        random_text(&state, "aabbb.", url + 7, 1 + random_number(&state, 9));
        strcat(url, "/");
        random_text(&state, "aabb/.-?", url + strlen(url), 5 + random_number(&state, 25));
        filter_add(filter, slice_from(text), "test");
        filter_add(filter, SLICE("||other.example^"), "test");
        filter_seal(filter);
        struct rule_reading reading = {.keep = keep_copy};
        /* A host with the root's dot is the same host, which a pattern alone does not know. */
        if (filter_request_init(&request, slice_from(url)) &&
            request.host.base[request.host.length] != '.' &&
            rule_parse(&rule, &reading, slice_from(text)) == RULE_GOOD) {
            struct filter_answer answer;
            bool alone = rule_matches(&rule, &request);
            bool found = filter_match(filter, &request, &answer) == FILTER_BLOCK;
            EXPECT(found == alone || rule.exception, "rule %s, url %s: %d", text, url, alone);
            rule_release(&rule);
        }
        release_copies();
        filter_free(&filter);
    }
}
END_TEST

/* A URL that fits the beginning of many rules at many places takes a bounded time, and is left alone: with EasyList the one
 * below took 200 ms. One that has only a part of that is decided. */
START_TEST(the_work_is_bounded) {
    enum { RULES = 5 };
    static struct filter_request request;
    struct filter *filter = filter_create();
    struct filter_answer answer;
    char *url = malloc(FILTER_URL_MAX + 1), rule[64];
    for (int i = 0; i < RULES; i++) {
        snprintf(rule, sizeof rule, "/com/*.%c.%c.", 'a' + i / 26,
                 'a' + i % 26); /* "com" is the only word */
        filter_add(filter, slice_from(rule), "test");
    }
    filter_add(filter, SLICE("/com/*&page=advert"), "test");
    filter_add(filter, SLICE("||a.example^$removeparam=utm"), "test");
    filter_seal(filter);
    for (size_t length = 160; length <= FILTER_URL_MAX; length *= 10) {
        size_t at = (size_t)sprintf(url, "http://a.example");
        while (at + 40 < length)
            at += (size_t)sprintf(url + at, "/com");
        sprintf(url + at, "/com/?utm=1&page=advert");
        EXPECT(filter_request_init(&request, slice_from(url)), "%zu bytes", length);
        enum filter_verdict verdict = filter_match(filter, &request, &answer);
        EXPECT(verdict == (length < 16000 ? FILTER_BLOCK : FILTER_UNDECIDED), "%zu bytes: %d",
               length, verdict);
        char out[FILTER_URL_MAX];
        struct slice by;
        request.types = FILTER_TYPE_DOCUMENT;
        EXPECT((filter_strip(filter, &request, out, sizeof out, &by) > 0) == (length < 16000),
               "%zu bytes: strip", length);
    }
    filter_free(&filter);
    free(url);
}
END_TEST

START_TEST(bad_requests_are_refused) {
    static struct filter_request request;
    struct filter_answer answer;
    char *url = malloc(FILTER_URL_MAX + 2);
    memset(url, 'a', FILTER_URL_MAX + 1);
    memcpy(url, "http://a/", 9);
    url[FILTER_URL_MAX + 1] = 0;
    ck_assert(!filter_request_init(&request, slice_from(url)));
    url[FILTER_URL_MAX] = 0;
    ck_assert(filter_request_init(&request, slice_from(url)));
    ck_assert(!filter_request_init(&request, SLICE("/path")));
    ck_assert(!filter_request_init(&request, SLICE("")));
    ck_assert(!filter_request_init(&request, SLICE("http://")));
    ck_assert(!filter_request_init(&request, SLICE("ftp://a/")));
    struct filter *filter = filter_of("a*b*c*d*e*f\n");
    ck_assert(filter_request_init(&request, slice_from(url)));
    ck_assert_int_eq(filter_match(filter, &request, &answer), FILTER_PASS);
    /* As many words and labels as there can be. */
    for (size_t i = 9; i < FILTER_URL_MAX; i++)
        url[i] = i % 3 == 0 ? '/' : 'a';
    ck_assert(filter_request_init(&request, slice_from(url)));
    ck_assert_int_eq(filter_match(filter, &request, &answer), FILTER_PASS);
    for (size_t i = 7; i < 207; i++)
        url[i] = i % 2 == 0 ? '.' : 'a';
    url[207] = '/';
    ck_assert(filter_request_init(&request, slice_from(url)));
    ck_assert_uint_eq(request.host_labels.count, FILTER_LABELS_MAX);
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

static void write_list(const char *directory, const char *name, const char *rules) {
    char path[100];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(rules, file), 0);
    fclose(file);
}

START_TEST(directories) {
    static const char *const names[] = {"b.txt", "a.txt", ".c.txt", "d.txt.new", "lists.prom"};
    char directory[] = "/tmp/lists_XXXXXX", path[100], error[200] = "";
    ck_assert_ptr_nonnull(mkdtemp(directory));
    struct filter *filter = filter_create();
    ck_assert(filter_load(filter, directory, error, sizeof error));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        write_list(directory, names[i], "||a.example^\n||b.example^\n");
    ck_assert(filter_load(filter, directory, error, sizeof error));

    /* One that can't be read does not keep the others out. */
    snprintf(path, sizeof path, "%s/%s", directory, "aa.txt");
    ck_assert_int_eq(symlink("/nonexistent", path), 0);
    ck_assert(!filter_load(filter, directory, error, sizeof error));
    ck_assert_ptr_nonnull(strstr(error, "aa.txt"));
    filter_seal(filter);
    ck_assert_uint_eq(filter_counts(filter)->hosts, 8);
    filter_free(&filter);
    unlink(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}
END_TEST

static const char *skipped_of(const char *rules, unsigned unread) {
    static char line[SKIPPED_TEXT_MIN];
    struct filter *filter = filter_of(rules);
    memset(line, '#', sizeof line);
    skipped_text(filter_counts(filter), unread, line, sizeof line);
    filter_free(&filter);
    return line;
}

START_TEST(what_is_skipped_is_told) {
    char many[64 * 40], *end = many;
    ck_assert_str_eq(skipped_of("||a.example^\n##.ad\n", 0), "");
    ck_assert_str_eq(skipped_of("a$csp=x\nb$websocket-foo\nc$image,websocket-foo=1\nd$csp=y\n"
                                "e$websocket-foo\n|\n",
                                0),
                     "skipped for options that are not supported: 5 rules (websocket-foo 3, csp 2)"
                     "; bad rules: 1");
    ck_assert_str_eq(skipped_of("", 2), "lists that can't be read: 2");
    for (unsigned i = 0; i < 64; i++)
        end += sprintf(end, "a$an-option-of-thirty-bytes-%03u\n", i);
    ck_assert_str_eq(skipped_of(many, 0), "skipped for options that are not supported: 64 rules "
                                          "(an-option-of-thirty-bytes-000 1 and 63 more)");
}
END_TEST

Suite *filter_suite(void) {
    const TTest *const tests[] = {hosts,
                                  other_letters,
                                  zeros_in_lines,
                                  patterns,
                                  separators,
                                  exceptions,
                                  types,
                                  parties_and_pages,
                                  sites,
                                  regular_expressions,
                                  the_cut_is_no_end,
                                  dear_expressions_match_nothing,
                                  hosts_and_entities,
                                  hiding_is_not_ours,
                                  badfilter_withdraws,
                                  what_is_skipped_is_told,
                                  pages_are_let_alone,
                                  methods,
                                  resources,
                                  replace_is_passed_over,
                                  addresses_of_version_6,
                                  replacements,
                                  parameters,
                                  important_rules_yield_to_important_exceptions,
                                  each_option_has_its_effect,
                                  each_type_has_its_requests,
                                  other_forms_are_not_supported,
                                  case_matters_where_asked,
                                  what_is_no_rule_is_counted,
                                  very_many_unknown_options,
                                  the_index_loses_nothing,
                                  the_work_is_bounded,
                                  bad_requests_are_refused,
                                  files,
                                  directories};
    return suite_of("filter", tests, COUNT_OF(tests));
}
