/* Verdicts of services on requests, and what permits to keep them. */
#include "suites.h"

#include "adapt/verdicts.h"
#include "icap/permission.h"

#include <pthread.h>
#include <stdio.h>

enum { PLENTY = 16 << 20, NOW = 1000, LATER = 2000, TAG = 7 };

static struct slice key_of(unsigned number) {
    static char text[32];
    return slice_make(text, (size_t)snprintf(text, sizeof text, "GET /%u", number));
}

static struct verdict verdict_of(enum adapter_verdict kind, struct slice head) {
    return (struct verdict){.kind = kind, .head = head, .tag = TAG, .expires = LATER};
}

static unsigned keep(struct verdicts *verdicts, unsigned number, struct verdict verdict) {
    bool kept;
    unsigned evicted = verdicts_keep(verdicts, key_of(number), &verdict, NOW, &kept);
    ck_assert(kept);
    return evicted;
}

static bool is_there(struct verdicts *verdicts, unsigned number, uint64_t tag, uint64_t now) {
    struct verdict verdict;
    struct arena arena;
    arena_init(&arena);
    bool found = verdicts_find(verdicts, key_of(number), tag, now, &arena, &verdict);
    arena_release(&arena);
    return found;
}

static uint64_t count_of(struct verdicts *verdicts) {
    struct verdicts_statistics statistics;
    verdicts_statistics(verdicts, &statistics);
    ck_assert_uint_eq(verdicts_any(verdicts), statistics.count > 0);
    ck_assert_uint_eq(statistics.bytes > 0, statistics.count > 0);
    ck_assert_uint_le(statistics.bytes, statistics.limit);
    return statistics.count;
}

START_TEST(comes_back_as_it_was) {
    struct verdicts *verdicts = verdicts_new(PLENTY);
    struct verdict verdict = verdict_of(ADAPTER_SATISFIED, SLICE("HTTP/1.1 403 No\r\n\r\n")), seen;
    struct arena arena;
    arena_init(&arena);
    verdict.has_body = verdict.routed = true;
    verdict.body = slice_make("a\0b", 3);
    verdict.next_services = SLICE("one, two");
    ck_assert(!verdicts_any(verdicts));
    ck_assert(!verdicts_find(verdicts, key_of(1), TAG, NOW, &arena, &seen));
    keep(verdicts, 1, verdict);
    ck_assert(verdicts_find(verdicts, key_of(1), TAG, NOW, &arena, &seen));
    verdicts_free(&verdicts); /* what was found is a copy */
    ck_assert_int_eq(seen.kind, ADAPTER_SATISFIED);
    ck_assert(seen.has_body && seen.routed);
    ck_assert(slice_equal(seen.head, verdict.head));
    ck_assert(slice_equal(seen.body, verdict.body));
    ck_assert(slice_equal(seen.next_services, verdict.next_services));
    ck_assert_uint_eq(seen.tag, TAG);
    ck_assert_uint_eq(seen.expires, LATER);
    arena_release(&arena);
}
END_TEST

START_TEST(ends_with_its_time_and_its_tag) {
    struct verdicts *verdicts = verdicts_new(PLENTY);
    struct verdict verdict = verdict_of(ADAPTER_UNMODIFIED, SLICE(""));
    keep(verdicts, 1, verdict);
    ck_assert(is_there(verdicts, 1, TAG, LATER - 1));
    ck_assert(!is_there(verdicts, 1, TAG, LATER));
    ck_assert_uint_eq(count_of(verdicts), 0);
    keep(verdicts, 1, verdict);
    ck_assert(!is_there(verdicts, 1, TAG + 1, NOW));
    ck_assert(!is_there(verdicts, 1, TAG, NOW));
    ck_assert_uint_eq(count_of(verdicts), 0);
    verdicts_free(&verdicts);
}
END_TEST

START_TEST(takes_the_place_of_the_same) {
    struct verdicts *verdicts = verdicts_new(PLENTY);
    struct verdict seen;
    struct arena arena;
    arena_init(&arena);
    keep(verdicts, 1, verdict_of(ADAPTER_UNMODIFIED, SLICE("")));
    keep(verdicts, 1, verdict_of(ADAPTER_MODIFIED, SLICE("GET / HTTP/1.1\r\n\r\n")));
    ck_assert_uint_eq(count_of(verdicts), 1);
    ck_assert(verdicts_find(verdicts, key_of(1), TAG, NOW, &arena, &seen));
    ck_assert_int_eq(seen.kind, ADAPTER_MODIFIED);
    arena_release(&arena);
    verdicts_free(&verdicts);
}
END_TEST

/* So many that each part's index has to grow, and chains are long on the way. */
START_TEST(finds_one_of_many) {
    enum { MANY = 20000 };
    struct verdicts *verdicts = verdicts_new(PLENTY);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_uint_eq(keep(verdicts, i, verdict_of(ADAPTER_UNMODIFIED, SLICE(""))), 0);
    ck_assert_uint_eq(count_of(verdicts), MANY);
    for (unsigned i = 0; i < MANY; i++)
        ck_assert(is_there(verdicts, i, TAG, NOW));
    ck_assert(!is_there(verdicts, MANY, TAG, NOW));
    for (unsigned i = 0; i < MANY; i += 2)
        ck_assert(!is_there(verdicts, i, TAG + 1, NOW));
    ck_assert_uint_eq(count_of(verdicts), MANY / 2);
    for (unsigned i = 1; i < MANY; i += 2)
        ck_assert(is_there(verdicts, i, TAG, NOW));
    verdicts_free(&verdicts);
}
END_TEST

/* What is asked for again and again stays; what was only written once goes. */
START_TEST(keeps_what_is_used) {
    enum { USED = 50, MANY = 5000 };
    struct verdicts *verdicts = verdicts_new(256 << 10);
    unsigned evicted = 0;
    for (unsigned i = 0; i < USED; i++)
        keep(verdicts, i, verdict_of(ADAPTER_UNMODIFIED, SLICE("")));
    for (unsigned i = USED; i < MANY; i++) {
        for (unsigned j = 0; j < USED; j++)
            ck_assert(is_there(verdicts, j, TAG, NOW));
        evicted += keep(verdicts, i, verdict_of(ADAPTER_UNMODIFIED, SLICE("")));
    }
    ck_assert_uint_eq(count_of(verdicts), MANY - evicted);
    ck_assert_uint_lt(count_of(verdicts), MANY / 2);
    verdicts_free(&verdicts);
}
END_TEST

/* Used or not. */
START_TEST(what_has_expired_goes_first) {
    struct verdicts *verdicts = verdicts_new(PLENTY);
    struct verdict verdict = verdict_of(ADAPTER_UNMODIFIED, SLICE(""));
    for (unsigned i = 0; i < 1000; i++) {
        verdict.expires = i % 2 == 0 ? LATER : UINT64_MAX;
        keep(verdicts, i, verdict);
        ck_assert(is_there(verdicts, i, TAG, NOW));
    }
    struct verdicts_statistics statistics;
    verdicts_statistics(verdicts, &statistics);
    verdicts_set_limit(verdicts, statistics.bytes + 16 * 50);
    for (unsigned i = 1000; i < 1100; i++) {
        bool kept;
        verdicts_keep(verdicts, key_of(i), &verdict, LATER, &kept);
        ck_assert(kept);
        ck_assert(is_there(verdicts, i, TAG, LATER));
    }
    unsigned left = 0;
    for (unsigned i = 1; i < 1000; i += 2)
        left += is_there(verdicts, i, TAG, LATER);
    ck_assert_uint_ge(left, 400); /* how many parts are full is by chance */
    verdicts_free(&verdicts);
}
END_TEST

START_TEST(holds_its_limit) {
    static char large[VERDICT_BODY_MAX];
    struct verdicts *verdicts = verdicts_new(16 * 1024);
    struct verdict verdict = verdict_of(ADAPTER_SATISFIED, SLICE("HTTP/1.1 403 No\r\n\r\n"));
    bool kept = true;
    verdict.body = slice_make(large, sizeof large);
    ck_assert_uint_eq(verdicts_keep(verdicts, key_of(1), &verdict, NOW, &kept), 0);
    ck_assert(!kept);
    verdict.body.length = 500;
    for (unsigned i = 0; i < 100; i++)
        keep(verdicts, i, verdict);
    ck_assert_uint_ge(count_of(verdicts), 8);
    verdicts_set_limit(verdicts, 0);
    ck_assert_uint_eq(count_of(verdicts), 0);
    verdicts_keep(verdicts, key_of(1), &verdict, NOW, &kept);
    ck_assert(!kept);
    verdicts_set_limit(verdicts, PLENTY);
    keep(verdicts, 1, verdict);
    verdicts_free(&verdicts);
}
END_TEST

static void *work(void *arg) {
    struct verdicts *verdicts = arg;
    struct verdict verdict = verdict_of(ADAPTER_MODIFIED, SLICE("GET / HTTP/1.1\r\n\r\n")), seen;
    struct arena arena;
    bool kept;
    arena_init(&arena);
    for (unsigned i = 0; i < 20000; i++) {
        char text[8];
        struct slice key = slice_make(text, (size_t)snprintf(text, sizeof text, "%u", i % 300));
        verdict.tag = i / 5000 + 1;
        if (!verdicts_find(verdicts, key, verdict.tag, NOW, &arena, &seen))
            verdicts_keep(verdicts, key, &verdict, NOW, &kept);
        else
            ck_assert(slice_equal(seen.head, verdict.head));
        if (i % 1000 == 0)
            verdicts_set_limit(verdicts, i % 2000 == 0 ? 16 << 10 : 32 << 10);
        arena_reset(&arena);
    }
    arena_release(&arena);
    return NULL;
}

START_TEST(serves_several_threads) {
    struct verdicts *verdicts = verdicts_new(32 << 10);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, verdicts), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    count_of(verdicts);
    verdicts_free(&verdicts);
}
END_TEST

/* Sun, 06 Nov 1994 08:49:37 GMT */
enum { THEN = 784111777 };

static const struct {
    const char *fields;
    int64_t seconds;
} permissions[] = {
    {"", 0},
    {"Cache-Control: max-age=60\n", 60},
    {"Cache-Control: max-age=60, s-maxage=5\n", 5},
    {"Cache-Control: max-age=99999999999999999999\n", INT32_MAX},
    {"Cache-Control: max-age=60\nAge: 20\n", 40},
    {"Cache-Control: max-age=60\nAge: 20\nAge: 30\n", 40},
    {"Cache-Control: max-age=60\nDate: Sun, 06 Nov 1994 08:49:07 GMT\n", 30},
    {"Cache-Control: max-age=60\nDate: Sun, 06 Nov 1994 09:49:07 GMT\n", 60},
    {"Cache-Control: max-age=60\nDate: then\n", 60},
    {"Expires: Sun, 06 Nov 1994 08:50:07 GMT\n", 30},
    {"Expires: Sun, 06 Nov 1994 08:50:07 GMT\nDate: Sun, 06 Nov 1994 08:49:37 GMT\n", 30},
    {"Expires: Sun, 06 Nov 1994 08:49:37 GMT\n", 0},
    {"Expires: Sun, 06 Nov 1994 08:50:07 GMT\nCache-Control: max-age=0\n", 0},
    {"Expires: soon\n", 0},
    {"Cache-Control: public\nLast-Modified: Sun, 06 Nov 1983 08:49:37 GMT\n", 0},
    {"Cache-Control: max-age=60, private\n", 0},
    {"Cache-Control: max-age=60, no-cache\nETag: \"1\"\n", 0},
    {"Cache-Control: max-age=60, no-store\n", 0},
    {"Cache-Control: max-age=0\nETag: \"1\"\n", 0},
    {"Cache-Control: max-age=60\nVary: *\n", 0},
    {"Cache-Control: max-age=60\nVary: Accept\n", 60},
};

START_TEST(permits_what_is_stated) {
    static const unsigned statuses[] = {200, 204};
    struct http_head head;
    for (size_t i = 0; i < COUNT_OF(permissions); i++)
        for (size_t j = 0; j < COUNT_OF(statuses); j++) {
            head_from(&head, permissions[i].fields);
            head.status = statuses[j];
            ck_assert_msg(icap_permission(&head, THEN) == permissions[i].seconds, "%s",
                          permissions[i].fields);
        }
}
END_TEST

Suite *verdicts_suite(void) {
    const TTest *const tests[] = {comes_back_as_it_was,
                                  ends_with_its_time_and_its_tag,
                                  takes_the_place_of_the_same,
                                  finds_one_of_many,
                                  keeps_what_is_used,
                                  what_has_expired_goes_first,
                                  holds_its_limit,
                                  serves_several_threads,
                                  permits_what_is_stated};
    return suite_of("verdicts", tests, COUNT_OF(tests));
}
