/* Purges and bans: what they hit, from when on, and what is on its way meanwhile. */
#include "store_bench.h"

START_TEST(purges_choose) {
    char text[40];
    struct object_filter filter = {.prefix = SLICE("http://a.org/1")};
    start_cache();
    for (unsigned i = 0; i < 20; i++)
        put_cached(cached_url(i, text, sizeof text), 10);
    put_cached(SLICE("http://b.org/1"), 10);
    put_cached_with(SLICE("http://b.org/t"), "Surrogate-Key", "one  two", NULL, 10);
    put_cached_with(SLICE("http://b.org/u"), "Cache-Tag", "two, three", NULL, 10);
    ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_REMOVE), 11);
    filter = (struct object_filter){.tag = SLICE("tw")};
    ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_REMOVE), 0);
    filter = (struct object_filter){.tag = SLICE("two")};
    ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_REMOVE), 2);
    filter = (struct object_filter){.host = SLICE("B.org")};
    ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_REMOVE), 1);
    ck_assert_uint_eq(counted().objects, 9);
    stop_cache();
}
END_TEST

START_TEST(purges_of_hosts_choose) {
    const char *const urls[] = {"http://a.org/",      "https://a.org/x",  "http://a.org:8080/",
                                "http://a.org.uk/",   "http://xa.org/",   "http://b.org/a.org",
                                "http://[::1]:8080/", "http://[::1]/x:y", "http://[::12]/"};
    const struct {
        const char *host;
        unsigned count;
    } hosts[] = {{"a.or", 0}, {"a.org:8080", 0}, {"a.org/", 0}, {"[::1]", 0}, {"[", 0},
                 {":", 0},    {"::1", 2},        {"A.org", 3},  {"a.org", 0}, {"::12", 1}};
    start_cache();
    for (unsigned i = 0; i < COUNT_OF(urls); i++)
        put_cached(slice_from(urls[i]), 10);
    for (unsigned i = 0; i < COUNT_OF(hosts); i++) {
        struct object_filter filter = {.host = slice_from(hosts[i].host)};
        ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_REMOVE), hosts[i].count);
    }
    ck_assert_uint_eq(counted().objects, 3);
    stop_cache();
}
END_TEST

/* Of more than a batch, in walks that search outside of the lock: all of them, and no other. */
START_TEST(large_purges_by_expression_choose) {
    char text[40];
    struct regexes regex;
    regexes_compile(&regex, (char *[]){"/[0-9]*7$", NULL});
    struct object_filter filter = {
        .prefix = SLICE("http://a.org/1"), .regex = &regex, .regex_text = "/[0-9]*7$"};
    start_cache();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put_cached(cached_url(i, text, sizeof text), 10);
    cache_change_pin(the_cache, NAME_OF(cached_url(17, text, sizeof text)), true);
    ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_STALE), 1111);
    ck_assert_uint_eq(counted().objects, 20000);
    ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_REMOVE), 1111);
    ck_assert_uint_eq(counted().objects, 20000 - 1111);
    ck_assert_uint_eq(counted().pinned, 0);
    ck_assert(is_found(cached_url(27, text, sizeof text)) &&
              !is_found(cached_url(10007, text, sizeof text)));
    regexes_release(&regex);
    stop_cache();
}
END_TEST

START_TEST(bans_hit_older_objects_only) {
    char error[200];
    struct slice css = SLICE("http://a.org/a.css"), html = SLICE("http://a.org/a.html");
    start_cache();
    put_cached(css, 10);
    put_cached(html, 10);
    ck_assert_uint_eq(cache_ban(the_cache, "(", error, sizeof error), 0);
    ck_assert_uint_eq(cache_ban(the_cache, "\\.css$", error, sizeof error), 1);
    ck_assert(!is_found(css));
    ck_assert_uint_eq(cache_bans(the_cache)->count, 1);
    ck_assert(is_found(html));
    /* Nothing is left that has not been compared with it. */
    ck_assert_uint_eq(cache_bans(the_cache)->count, 0);
    put_cached(css, 10);
    ck_assert(is_found(css));
    /* Another lifetime does not make an object newer. */
    ck_assert_uint_eq(cache_ban(the_cache, "html", error, sizeof error), 2);
    struct object_filter all = {0};
    cache_change_purge(the_cache, &all, PURGE_STALE);
    ck_assert(!is_found(html));
    stop_cache();
}
END_TEST

START_TEST(many_bans_are_carried_out) {
    char error[200], text[40];
    start_cache();
    for (unsigned i = 0; i < 200; i++)
        put_cached(cached_url(i, text, sizeof text), 10);
    for (unsigned i = 0; i < 128; i++) {
        snprintf(text, sizeof text, "/%u$", i);
        ck_assert_uint_gt(cache_ban(the_cache, text, error, sizeof error), 0);
    }
    ck_assert_uint_eq(counted().objects, 72);
    ck_assert_uint_eq(cache_bans(the_cache)->count, 0);
    stop_cache();
}
END_TEST

/* On their way while the purge comes. */
START_TEST(purges_hit_what_is_on_its_way) {
    struct slice url = SLICE("http://a.org/a.css"), other = SLICE("http://b.org/a.css");
    struct object_filter filters[] = {
        {.prefix = SLICE("http://a.org/")}, {.host = SLICE("a.org")}, {.tag = SLICE("two")}};
    start_cache();
    for (unsigned i = 0; i < COUNT_OF(filters); i++) {
        struct cache_moment before = cache_now(the_cache);
        cache_change_purge(the_cache, &filters[i], PURGE_REMOVE);
        ck_assert(!put_cached_since(&before, url, "Cache-Tag", "one,two", NULL, 10));
        ck_assert(!is_cached(url));
        ck_assert(put_cached_since(&before, other, "Cache-Tag", "one", NULL, 10));
        struct cache_moment after = cache_now(the_cache);
        ck_assert(put_cached_since(&after, url, "Cache-Tag", "one,two", NULL, 10));
    }
    stop_cache();
}
END_TEST

/* For a worker whose clock is a second behind, too. */
static bool is_stale(struct slice url) {
    const struct cache_control control = {.max_age = -1, .min_fresh = -1, .max_stale = -1};
    struct object *object = look_up(url, NULL);
    ck_assert_ptr_nonnull(object);
    struct freshness freshness = object_freshness(object);
    object_release(&object);
    bool stale = freshness_judge(&freshness, &control, time(NULL) - 1) != FRESHNESS_FRESH;
    ck_assert(stale || freshness_judge(&freshness, &control, time(NULL)) == FRESHNESS_FRESH);
    return stale;
}

/* Before anything was walked through; what is asked for from then on is left alone. */
START_TEST(purges_are_in_force_at_once) {
    struct slice css = SLICE("http://a.org/a.css"), other = SLICE("http://b.org/a.css");
    struct object_filter filter = {.host = SLICE("a.org")};
    start_cache();
    put_cached(css, 10);
    put_cached(other, 10);
    struct cache_moment before = cache_now(the_cache);
    uint64_t number = cache_purge_begin(the_cache, &filter, PURGE_REMOVE);
    ck_assert(!is_found(css) && is_found(other));
    ck_assert(!put_cached_since(&before, css, NULL, NULL, NULL, 10));
    struct cache_moment after = cache_now(the_cache);
    ck_assert(put_cached_since(&after, css, NULL, NULL, NULL, 10));
    ck_assert(is_found(css));
    ck_assert(cache_purge_walk(the_cache, true));
    ck_assert_uint_eq(cache_purge_count(the_cache, &filter, number), 1);
    ck_assert_uint_eq(cache_purges(the_cache)->due, 0);
    ck_assert(is_found(css) && is_found(other));
    stop_cache();
}
END_TEST

START_TEST(soft_purges_are_in_force_at_once) {
    struct slice url = SLICE("http://a.org/a.css"), other = SLICE("http://a.org/b.css");
    struct object_filter filter = {.prefix = SLICE("http://a.org/a")};
    start_cache();
    put_cached(url, 10);
    put_cached(other, 10);
    cache_change_set_lifetime(the_cache, NAME_OF(url), 3600);
    cache_change_set_lifetime(the_cache, NAME_OF(other), 3600);
    uint64_t number = cache_purge_begin(the_cache, &filter, PURGE_STALE);
    ck_assert(is_stale(url) && !is_stale(other));
    /* It has been compared: what is said of it from here on counts. */
    ck_assert_uint_eq(cache_change_set_lifetime(the_cache, NAME_OF(url), 3600), 1);
    ck_assert(!is_stale(url));
    ck_assert(cache_purge_walk(the_cache, true));
    ck_assert_uint_eq(cache_purge_count(the_cache, &filter, number), 1);
    ck_assert(!is_stale(url));
    stop_cache();
}
END_TEST

/* Nobody looks at the bans meanwhile: numbers come round, but no object is taken for a newer one.
 */
START_TEST(numbers_of_purges_come_round) {
    char error[200];
    struct object_filter elsewhere = {.host = SLICE("b.org")};
    struct slice old = SLICE("http://a.org/old"), css = SLICE("http://a.org/a.css");
    start_cache();
    put_cached(old, 10);
    put_cached(css, 10);
    for (unsigned i = 0; i < 2 * BANS_COUNTED + 10; i++)
        ck_assert_uint_eq(cache_change_purge(the_cache, &elsewhere, PURGE_REMOVE), 0);
    ck_assert(is_found(old));
    ck_assert_uint_gt(cache_ban(the_cache, "css", error, sizeof error), 0);
    ck_assert(is_found(old) && !is_found(css));
    ck_assert_uint_eq(cache_bans(the_cache)->count, 0);
    ck_assert_uint_eq(cache_bans(the_cache)->due, 0);
    stop_cache();
}
END_TEST

/* Objects keep a part of a number only: those before and behind the moment when that comes round
 * are compared with what is newer than they are, and with nothing else. */
START_TEST(numbers_of_bans_never_come_round) {
    static const uint64_t limits[] = {UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(5) << 31};
    char error[200], text[40];
    struct object_filter elsewhere = {.host = SLICE("b.org")}, all = {0};
    for (unsigned round = 0; round < COUNT_OF(limits); round++)
        for (unsigned below = 1; below <= 6; below++) {
            start_cache();
            struct bans *bans = cache_bans(the_cache);
            atomic_store(&bans->newest, limits[round] - below);
            put_cached(SLICE("http://a.org/first.css"), 10);
            for (unsigned i = 0; i < 6; i++) {
                struct cache_moment before = cache_now(the_cache);
                put_cached(cached_url(i, text, sizeof text), 10);
                snprintf(text, sizeof text, "/%u$", i);
                uint64_t number = cache_ban(the_cache, text, error, sizeof error);
                ck_assert_uint_gt(number, before.bans);
                ck_assert(!is_found(cached_url(i, text, sizeof text)));
                ck_assert(!put_cached_since(&before, cached_url(i, text, sizeof text), NULL, NULL,
                                            NULL, 10) ||
                          !is_found(cached_url(i, text, sizeof text)));
                put_cached(cached_url(i, text, sizeof text), 10);
                ck_assert_uint_eq(cache_change_purge(the_cache, &elsewhere, PURGE_REMOVE), 0);
            }
            for (unsigned i = 0; i < 6; i++)
                ck_assert(is_found(cached_url(i, text, sizeof text)));
            ck_assert(is_found(SLICE("http://a.org/first.css")));
            ck_assert_uint_eq(cache_bans(the_cache)->count, 0);
            ck_assert_uint_eq(cache_change_purge(the_cache, &all, PURGE_STALE), 7);
            ck_assert_uint_eq(cache_change_purge(the_cache, &all, PURGE_REMOVE), 7);
            stop_cache();
        }
}
END_TEST

/* What a purge took is what was there, each once, whoever found it first. */
static void *find_all(void *arg) {
    char text[40];
    for (unsigned i = 0; i < 20000; i++)
        is_found(cached_url((i * 7919u + (unsigned)(uintptr_t)arg) % 20000, text, sizeof text));
    return NULL;
}

START_TEST(purges_count_what_others_look_up) {
    char text[40];
    pthread_t threads[2];
    struct object_filter all = {.host = SLICE("a.org")};
    start_cache();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put_cached(cached_url(i, text, sizeof text), 10);
    for (uintptr_t i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, find_all, (void *)i), 0);
    uint64_t stale = cache_change_purge(the_cache, &all, PURGE_STALE);
    uint64_t removed = cache_change_purge(the_cache, &all, PURGE_REMOVE);
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(stale, 20000);
    ck_assert_uint_eq(removed, 20000);
    stop_cache();
}
END_TEST

START_TEST(soft_purges_make_stale_what_is_on_its_way) {
    struct slice url = SLICE("http://a.org/a.css");
    struct object_filter all = {0};
    start_cache();
    struct cache_moment before = cache_now(the_cache);
    cache_change_purge(the_cache, &all, PURGE_STALE);
    ck_assert(put_cached_since(&before, url, NULL, NULL, NULL, 10));
    ck_assert(is_stale(url));
    ck_assert_uint_eq(cache_change_set_lifetime(the_cache, NAME_OF(url), 60), 1);
    ck_assert(!is_stale(url));
    ck_assert_uint_eq(cache_change_purge_name(the_cache, NAME_OF(url), PURGE_STALE), 1);
    ck_assert(is_stale(url));
    stop_cache();
}
END_TEST

START_TEST(purges_of_keys_in_one_place_are_told_apart) {
    struct purges *purges = cache_purges(the_cache = cache_new(LIMIT));
    struct cache_key a = {.high = 1, .low = 7}, b = {.high = 2, .low = 7},
                     c = {.high = 1, .low = 7 + PURGE_KEYS};
    uint64_t start_of_all = purges_newest_key(purges);
    ck_assert(!purges_has_key(purges, a, start_of_all));
    purges_add_key(purges, a);
    uint64_t after_a = purges_newest_key(purges);
    ck_assert(purges_has_key(purges, a, start_of_all));
    ck_assert(!purges_has_key(purges, a, after_a));
    ck_assert(!purges_has_key(purges, b, start_of_all));
    ck_assert(!purges_has_key(purges, c, start_of_all));
    purges_add_key(purges, b);
    ck_assert(purges_has_key(purges, b, after_a));
    ck_assert(!purges_has_key(purges, a, after_a));
    ck_assert_msg(purges_has_key(purges, a, start_of_all), "a is still known");
    purges_add_key(purges, a);
    ck_assert(purges_has_key(purges, a, after_a));
    ck_assert_msg(purges_has_key(purges, b, after_a), "b is still known");
    ck_assert(!purges_has_key(purges, b, purges_newest_key(purges)));
    cache_free(&the_cache);
}
END_TEST

START_TEST(removals_of_a_key_hit_what_is_on_its_way) {
    struct slice url = SLICE("http://a.org/a"), other = SLICE("http://a.org/b");
    start_cache();
    struct cache_moment before = cache_now(the_cache);
    cache_remove_name(the_cache, NAME_OF(url));
    ck_assert(!put_cached_since(&before, url, NULL, NULL, NULL, 10));
    ck_assert(put_cached_since(&before, other, NULL, NULL, NULL, 10));
    struct cache_moment after = cache_now(the_cache);
    ck_assert(put_cached_since(&after, url, NULL, NULL, NULL, 10));
    stop_cache();
}
END_TEST

START_TEST(bans_hit_what_is_on_its_way) {
    char error[200], text[40];
    struct slice url = SLICE("http://a.org/a.css"), late = SLICE("http://a.org/late");
    start_cache();
    struct cache_moment before = cache_now(the_cache);
    ck_assert_uint_gt(cache_ban(the_cache, "css", error, sizeof error), 0);
    ck_assert(!put_cached_since(&before, url, NULL, NULL, NULL, 10) || !is_found(url));
    /* So late that the bans it would have to be compared with are gone: then it isn't stored. */
    for (unsigned i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "/%u$", i);
        ck_assert_uint_gt(cache_ban(the_cache, text, error, sizeof error), 0);
    }
    ck_assert(!put_cached_since(&before, late, NULL, NULL, NULL, 10));
    stop_cache();
}
END_TEST

START_TEST(purges_long_past_are_not_forgiven) {
    struct object_filter elsewhere = {.prefix = SLICE("http://b.org/")};
    struct slice url = SLICE("http://a.org/a");
    start_cache();
    struct cache_moment before = cache_now(the_cache);
    struct purges *purges = cache_purges(the_cache);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(put_cached_since(&before, url, NULL, NULL, NULL, 10));
        purges->turned_at -= PURGES_SECONDS; /* as much time passes */
        cache_change_purge(the_cache, &elsewhere, PURGE_REMOVE);
    }
    ck_assert(!put_cached_since(&before, url, NULL, NULL, NULL, 10));
    stop_cache();
}
END_TEST

/* A purge that is repeated when the one before has become old counts anew. */
START_TEST(purges_count_anew_in_each_table) {
    struct object_filter filter = {.host = SLICE("a.org")}, elsewhere = {.host = SLICE("b.org")};
    start_cache();
    put_cached(SLICE("http://a.org/1"), 10);
    put_cached(SLICE("http://a.org/2"), 10);
    ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_REMOVE), 2);
    cache_purges(the_cache)->turned_at -= PURGES_SECONDS;
    ck_assert_uint_eq(cache_change_purge(the_cache, &elsewhere, PURGE_REMOVE), 0);
    put_cached(SLICE("http://a.org/1"), 10);
    ck_assert_uint_eq(cache_change_purge(the_cache, &filter, PURGE_REMOVE), 1);
    stop_cache();
}
END_TEST

static struct slice numbered(const char *before, unsigned number, char text[64]) {
    return slice_make(text, (size_t)snprintf(text, 64, "%s%u", before, number));
}

/* However many: each is in force at once, and nothing else is lost, be it stored or on its way. */
START_TEST(purges_at_a_rate_concern_what_they_say) {
    enum { OBJECTS = 2000, PURGES = 20000 };
    char tag[64], url[64];
    start_cache();
    cache_set_limit(the_cache, (size_t)64 << 20);
    struct cache_moment before = cache_now(the_cache);
    for (unsigned i = 0; i < OBJECTS; i++)
        put_cached_with(numbered("http://a.org/", i, url), "Surrogate-Key",
                        numbered("all t", i, tag).base, NULL, 10);
    for (unsigned i = 0; i < PURGES; i++) {
        uint64_t count;
        unsigned number = 1000 + i / 2, kind = i % 4;
        struct object_filter filter = {0};
        if (kind == 3)
            filter.prefix = numbered("http://b.org/", i, tag);
        else if (kind == 2)
            filter.host = numbered("h", i, tag);
        else
            filter.tag = numbered("t", number, tag);
        cache_change_purge_soon(the_cache, &filter, PURGE_REMOVE, &count);
        if (kind < 2 && number < OBJECTS)
            ck_assert_msg(!is_found(numbered("http://a.org/", number, url)), "%s", url);
    }
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_msg(is_found(numbered("http://a.org/", i, url)), "%s", url);
    ck_assert(
        put_cached_since(&before, SLICE("http://c.org/"), "Surrogate-Key", "all t5", NULL, 10));
    ck_assert(!put_cached_since(&before, SLICE("http://c.org/2"), "Surrogate-Key", "all t1500",
                                NULL, 10));
    struct object_filter rest = {.tag = SLICE("all")};
    ck_assert_uint_eq(cache_change_purge(the_cache, &rest, PURGE_REMOVE), 1501);
    ck_assert_uint_eq(counted().objects, 0);
    stop_cache();
}
END_TEST

Suite *purge_suite(void) {
    const TTest *tests[] = {
        purges_choose,
        purges_of_hosts_choose,
        large_purges_by_expression_choose,
        bans_hit_older_objects_only,
        many_bans_are_carried_out,
        purges_hit_what_is_on_its_way,
        purges_are_in_force_at_once,
        soft_purges_are_in_force_at_once,
        numbers_of_purges_come_round,
        numbers_of_bans_never_come_round,
        purges_count_what_others_look_up,
        soft_purges_make_stale_what_is_on_its_way,
        purges_of_keys_in_one_place_are_told_apart,
        removals_of_a_key_hit_what_is_on_its_way,
        bans_hit_what_is_on_its_way,
        purges_at_a_rate_concern_what_they_say,
        purges_long_past_are_not_forgiven,
        purges_count_anew_in_each_table,
    };
    return suite_of("purge", tests, COUNT_OF(tests));
}
