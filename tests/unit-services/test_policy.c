#include "suites.h"

#include "inject/policy.h"
#include "inject/text_cache.h"

START_TEST(policies) {
    static const struct {
        const char *first, *second;
        enum policy_verdict verdict;
        const char *nonce;
    } cases[] = {
        {NULL, NULL, POLICY_FREE, ""},
        {"img-src 'self'", NULL, POLICY_FREE, ""},
        {"default-src 'self'", NULL, POLICY_STRICT, ""},
        {"default-src 'none'; script-src 'self' 'unsafe-inline'", NULL, POLICY_FREE, ""},
        {"script-src 'unsafe-inline'; default-src 'none'", NULL, POLICY_FREE, ""},
        {"script-src 'unsafe-inline' 'sha256-abc='", NULL, POLICY_STRICT, ""},
        {"script-src 'nonce-abc' 'unsafe-inline'", NULL, POLICY_NONCE, "abc"},
        {"SCRIPT-SRC 'Nonce-aBc'", NULL, POLICY_NONCE, "aBc"},
        {"script-src 'nonce-a'", "script-src 'nonce-a'", POLICY_NONCE, "a"},
        {"script-src 'nonce-a'", "script-src 'nonce-b'", POLICY_STRICT, NULL},
        {"script-src 'nonce-a'", "default-src 'self'", POLICY_STRICT, NULL},
        {"img-src x, script-src 'none'", NULL, POLICY_STRICT, ""},
        {"", ";;", POLICY_FREE, ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_head head;
        struct slice nonce, name = SLICE("content-security-policy");
        http_head_init(&head);
        if (cases[i].first != NULL)
            http_head_add(&head, name, guard_put(slice_from(cases[i].first)));
        if (cases[i].second != NULL)
            http_head_add(&head, name, slice_from(cases[i].second));
        enum policy_verdict verdict = policy_of(&head, &nonce);
        EXPECT(verdict == cases[i].verdict, "%zu: %d", i, (int)verdict);
        EXPECT(cases[i].nonce == NULL || slice_equal(nonce, slice_from(cases[i].nonce)),
               "%zu: nonce \"%.*s\"", i, SLICE_PRINT(nonce));
    }
}
END_TEST

START_TEST(what_policies_concern) {
    static const char *const yes[] = {"<SCRIPT src=x>", "a<style>",      "<a onclick=\"x\">",
                                      "<b/onload=x>",   "<p style='x'>", "<a href='javascript:x'>"};
    static const char *const no[] = {"", "<b>one</b>", "<!-- on the way -->", "<meta content=x>",
                                     "<p>once upon a time there was one more thing, a=b</p>"};
    for (size_t i = 0; i < COUNT_OF(yes); i++)
        EXPECT(policy_concerns(guard_put(slice_from(yes[i]))), "%s", yes[i]);
    for (size_t i = 0; i < COUNT_OF(no); i++)
        EXPECT(!policy_concerns(guard_put(slice_from(no[i]))), "%s", no[i]);
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
    const TTest *const tests[] = {policies, what_policies_concern, answers_are_kept_for_a_while};
    return suite_of("policy", tests, COUNT_OF(tests));
}
