#include "suites.h"

#include "inject/answer.h"
#include "inject/policy.h"
#include "inject/tag.h"

/* sha256 of "go()" */
#define HASH   "'sha256-5KYv+PUboo5h+0+YAtGRPbwv5d/QxzHslP4YGnUaxRw='"
#define SCRIPT "<script>go()</script>"
#define NONCED "<script nonce=\"abc\">go()</script>"

static const struct {
    const char *policy, *text;
    enum policy_verdict verdict;
    const char *extended; /* NULL: as it was */
} cases[] = {
    {"", SCRIPT, POLICY_PERMITS, NULL},
    {";;", SCRIPT, POLICY_PERMITS, NULL},
    {"img-src 'self'", SCRIPT, POLICY_PERMITS, NULL},
    {"default-src 'none'", "<b>text</b><!-- <script> --><img src=/x>", POLICY_PERMITS, NULL},
    /* which directive counts */
    {"default-src 'self'", SCRIPT, POLICY_EXTENDABLE,
     "default-src 'self'; script-src 'self' " HASH},
    {"default-src 'none'", SCRIPT, POLICY_EXTENDABLE, "default-src 'none'; script-src " HASH},
    {"default-src 'none'; script-src 'self' 'unsafe-inline'", SCRIPT, POLICY_PERMITS, NULL},
    {"script-src 'unsafe-inline'; default-src 'none'", SCRIPT, POLICY_PERMITS, NULL},
    {"script-src 'none'; img-src x", SCRIPT, POLICY_EXTENDABLE, "script-src " HASH "; img-src x"},
    {"script-src", SCRIPT, POLICY_EXTENDABLE, "script-src " HASH},
    {"script-src;img-src x", SCRIPT, POLICY_EXTENDABLE, "script-src " HASH ";img-src x"},
    {"script-src-elem 'self'; script-src 'unsafe-inline'", SCRIPT, POLICY_EXTENDABLE,
     "script-src-elem 'self' " HASH "; script-src 'unsafe-inline'"},
    {"script-src 'self'; script-src-elem 'unsafe-inline'", SCRIPT, POLICY_PERMITS, NULL},
    {"script-src-attr 'none'", SCRIPT, POLICY_PERMITS, NULL},
    {"script-src 'self'; script-src 'unsafe-inline'", SCRIPT, POLICY_EXTENDABLE,
     "script-src 'self' " HASH "; script-src 'unsafe-inline'"},
    {"\tSCRIPT-SRC\n'self'\t;x", SCRIPT, POLICY_EXTENDABLE, "\tSCRIPT-SRC\n'self' " HASH "\t;x"},
    /* what turns 'unsafe-inline' off; a hash must not do it */
    {"script-src 'unsafe-inline' 'sha256-abc='", SCRIPT, POLICY_EXTENDABLE,
     "script-src 'unsafe-inline' 'sha256-abc=' " HASH},
    {"script-src 'unsafe-inline' 'nonce-x'", SCRIPT, POLICY_EXTENDABLE,
     "script-src 'unsafe-inline' 'nonce-x' " HASH},
    {"script-src 'unsafe-inline' 'strict-dynamic'", SCRIPT, POLICY_EXTENDABLE,
     "script-src 'unsafe-inline' 'strict-dynamic' " HASH},
    {"default-src 'unsafe-inline' 'strict-dynamic'", "<style>go()</style>", POLICY_PERMITS, NULL},
    {"default-src 'UNSAFE-inline'", SCRIPT, POLICY_PERMITS, NULL},
    /* named already */
    {"script-src 'self' " HASH, SCRIPT, POLICY_PERMITS, NULL},
    {"script-src 'nonce-abc' 'strict-dynamic'", NONCED, POLICY_PERMITS, NULL},
    {"default-src 'Nonce-abc'", NONCED, POLICY_PERMITS, NULL},
    {"script-src 'nonce-'", SCRIPT, POLICY_EXTENDABLE, "script-src 'nonce-' " HASH},
    {"script-src 'nonce-a", SCRIPT, POLICY_EXTENDABLE, "script-src 'nonce-a " HASH},
    {"script-src 'unsafe-inline' 'nonce-'", SCRIPT, POLICY_PERMITS, NULL},
    {"script-src 'nonce-ABC'", NONCED, POLICY_EXTENDABLE, "script-src 'nonce-ABC' " HASH},
    /* styles */
    {"style-src 'self'", SCRIPT, POLICY_PERMITS, NULL},
    {"style-src 'self'", "<style>go()</style>", POLICY_EXTENDABLE, "style-src 'self' " HASH},
    {"default-src 'self'", "<STYLE>go()</STYLE>" SCRIPT, POLICY_EXTENDABLE,
     "default-src 'self'; style-src 'self' " HASH "; script-src 'self' " HASH},
    {"style-src-attr 'none'", "<style>go()</style>", POLICY_PERMITS, NULL},
    {"style-src-attr 'unsafe-inline'; style-src 'self'", "<p style='x'>", POLICY_PERMITS, NULL},
    /* no hash helps */
    {"script-src 'self'", "<a onclick=\"go()\">", POLICY_FORBIDS, NULL},
    {"script-src 'self'", "<b/onload=go()>", POLICY_FORBIDS, NULL},
    {"script-src 'self'", "<a href='javascript:go()'>", POLICY_FORBIDS, NULL},
    {"script-src 'self'", "<a href='/a?b=1&c=d' data-on=x>once upon a = b</a>", POLICY_PERMITS,
     NULL},
    {"script-src-attr 'unsafe-inline'; script-src 'self'", "<a onclick=x>", POLICY_PERMITS, NULL},
    {"style-src 'self'", "<p style=x>", POLICY_FORBIDS, NULL},
    {"script-src 'self' 'unsafe-inline'", "<script src=/a.js></script>", POLICY_FORBIDS, NULL},
    {"script-src 'nonce-abc'", "<script src=/a.js nonce=abc></script>", POLICY_PERMITS, NULL},
    {"sandbox; script-src 'unsafe-inline'", SCRIPT, POLICY_FORBIDS, NULL},
    {"sandbox", "<b>x</b>", POLICY_PERMITS, NULL},
    {"sandbox allow-forms Allow-Scripts", SCRIPT, POLICY_PERMITS, NULL},
    {"script-src 'self'", "<script>go()", POLICY_FORBIDS, NULL},
    {"script-src 'self'", "<script>go()</SCRIPT>" SCRIPT, POLICY_EXTENDABLE,
     "script-src 'self' " HASH},
};

START_TEST(policies) {
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct snippet snippet;
        struct slice policy = guard_put(slice_from(cases[i].policy));
        snippet_read(slice_from(cases[i].text), &snippet);
        enum policy_verdict verdict = policy_judge(policy, &snippet);
        EXPECT(verdict == cases[i].verdict, "%zu %s: %d", i, cases[i].policy, (int)verdict);
        if (verdict == POLICY_FORBIDS)
            continue;
        struct slice extended = policy_extend(policy, &snippet, &arena);
        const char *expected = cases[i].extended == NULL ? cases[i].policy : cases[i].extended;
        EXPECT(slice_equal(extended, slice_from(expected)), "%zu: \"%.*s\" for \"%s\"", i,
               SLICE_PRINT(extended), expected);
        EXPECT(policy_judge(extended, &snippet) == POLICY_PERMITS, "%zu: not enough: %.*s", i,
               SLICE_PRINT(extended));
    }
    arena_release(&arena);
}
END_TEST

START_TEST(nonces_of_policies) {
    static const char *const known[][2] = {{"script-src 'nonce-abc' 'nonce-d'", "abc"},
                                           {"default-src 'x' 'NONCE-aBc'", "aBc"},
                                           {"style-src 'nonce-abc'; script-src 'self'", ""},
                                           {"script-src 'nonce-'", ""},
                                           {"script-src 'nonce-a\"/onx=y'", ""},
                                           {"script-src 'nonce-a\"' 'nonce-+/-_9='", "+/-_9="},
                                           {"", ""}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        struct slice nonce = policy_nonce(guard_put(slice_from(known[i][0])));
        EXPECT(slice_equal(nonce, slice_from(known[i][1])), "%s: \"%.*s\"", known[i][0],
               SLICE_PRINT(nonce));
    }
}
END_TEST

START_TEST(snippets_are_read) {
    struct snippet snippet;
    snippet_read(guard_put(SLICE("<script nonce = 'a b' src>x</script>")), &snippet);
    ck_assert_uint_eq(snippet.count, 1);
    ck_assert(slice_equal(snippet.parts[0].nonce, SLICE("a b")) && snippet.parts[0].is_external);
    snippet_read(guard_put(SLICE("<script>a\r\nb\rc</script><script>a\nb\nc</script>")), &snippet);
    ck_assert_uint_eq(snippet.count, 2);
    ck_assert_str_eq(snippet.parts[0].hash, snippet.parts[1].hash);
    ck_assert(snippet.is_ascii && !snippet.is_unclear);
    snippet_read(guard_put(SLICE("<script>\xc3\xa4</script>")), &snippet);
    ck_assert(!snippet.is_ascii);
    snippet_read(guard_put(SLICE("<p style><p style><p style><p style><p style><p style><p style>"
                                 "<p style><p style>")),
                 &snippet);
    ck_assert(snippet.is_unclear);
    static const char *const cut[] = {"<",         "<s",         "<script",     "<script ",
                                      "<script a", "<script a=", "<script a='", "<script></scrip",
                                      "<!--",      "<p a=b"};
    for (size_t i = 0; i < COUNT_OF(cut); i++)
        snippet_read(guard_put(slice_from(cut[i])), &snippet);
}
END_TEST

START_TEST(policies_of_metas) {
    static const char *const tags[][3] = {
        {"<meta http-equiv=\"Content-Security-Policy\" content=\"a 'b'\">", "a 'b'",
         "<meta http-equiv=\"Content-Security-Policy\" content=\"&quot;&amp;\">"},
        {"<META content=a HTTP-EQUIV=content-security-policy/>", NULL, NULL},
        {"<META content=a HTTP-EQUIV=content-security-policy>", "a",
         "<META content=\"&quot;&amp;\" HTTP-EQUIV=content-security-policy>"},
        {"<meta http-equiv='content-security-policy' content='a &#39;b&#x27; &amp;' content=c >",
         "a 'b' &",
         "<meta http-equiv='content-security-policy' content=\"&quot;&amp;\" content=c >"},
        {"<meta http-equiv=refresh content=a>", NULL, NULL},
        {"<meta http-equiv=content-security-policy>", NULL, NULL},
        {"<meta>", NULL, NULL},
    };
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < COUNT_OF(tags); i++) {
        struct slice tag = guard_put(slice_from(tags[i][0])), policy;
        bool found = tag_policy(tag, &arena, &policy);
        EXPECT(found == (tags[i][1] != NULL), "%s", tags[i][0]);
        if (!found)
            continue;
        EXPECT(slice_equal(policy, slice_from(tags[i][1])), "%s: %.*s", tags[i][0],
               SLICE_PRINT(policy));
        struct slice changed = tag_with_policy(tag, SLICE("\"&"), &arena);
        EXPECT(slice_equal(changed, slice_from(tags[i][2])), "%s: %.*s", tags[i][0],
               SLICE_PRINT(changed));
    }
    struct slice policy = SLICE("x");
    ck_assert(tag_policy(SLICE("<meta http-equiv=content-security-policy content='&Tab;'>"), &arena,
                         &policy));
    ck_assert(policy.base == NULL);
    arena_release(&arena);
}
END_TEST

START_TEST(answers_are_kept_for_a_while) {
    struct text_cache *cache = text_cache_create();
    char room[TEXT_CACHE_TEXT_MAX];
    size_t length;
    ck_assert(!text_cache_find(cache, SLICE("a"), 0, room, &length));
    text_cache_store(cache, SLICE("a"), SLICE("text"), 100);
    text_cache_store(cache, SLICE("b"), SLICE(""), 100);
    ck_assert(text_cache_find(cache, SLICE("a"), 99, room, &length));
    ck_assert(slice_equal(slice_make(room, length), SLICE("text")));
    ck_assert(text_cache_find(cache, SLICE("b"), 99, room, &length));
    ck_assert_uint_eq(length, 0);
    ck_assert(!text_cache_find(cache, SLICE("a"), 100, room, &length));
    for (int i = 0; i < 5000; i++) { /* bounded, and never another's answer */
        char key[16];
        struct slice name = slice_make(key, (size_t)snprintf(key, sizeof key, "key %d", i));
        text_cache_store(cache, name, name, 1000);
        ck_assert(text_cache_find(cache, name, 999, room, &length));
        ck_assert(slice_equal(slice_make(room, length), name));
    }
    text_cache_free(&cache);
    ck_assert_ptr_null(cache);
}
END_TEST

Suite *policy_suite(void) {
    const TTest *const tests[] = {policies, nonces_of_policies, snippets_are_read,
                                  policies_of_metas, answers_are_kept_for_a_while};
    return suite_of("policy", tests, COUNT_OF(tests));
}
