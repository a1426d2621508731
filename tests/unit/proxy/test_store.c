/* The cache's index: variants, eviction, lifetimes, pins, walks, and all of it from several
 * threads. */
#include "store_bench.h"

enum { CHAIN = 7 };

/* What services behind the cache made of `of`. */
static bool put_made(const struct object *of, uint32_t chain, uint32_t tag, struct body *body) {
    struct http_head request, response;
    struct freshness freshness = object_freshness(of);
    const struct object_provenance provenance = {
        .kind = body == of->body ? OBJECT_LEFT_ALONE : OBJECT_MADE, .chain = chain, .tag = tag};
    const struct cache_arrival arrival = {.since = cache_now(the_cache), .of = of};
    struct slice selector = object_selector(of);
    plain_head(&request, 0);
    object_parse_head(of, &response);
    struct object *made = object_new_made(of->key, object_url(of), &request, &response, &freshness,
                                          body, &provenance, &selector);
    made->scope = of->scope;
    bool stored = cache_insert(the_cache, made, &arrival);
    object_release(&made);
    return stored;
}

static struct object *look_made(struct slice url, const char *kind, uint32_t chain,
                                struct object **made) {
    struct http_head request;
    plain_head(&request, 0);
    if (kind != NULL)
        http_head_add(&request, SLICE("Kind"), slice_from(kind));
    return cache_lookup_made(the_cache, NAME_OF(url), &request, OBJECT_FOR_ALL, chain, made);
}

START_TEST(what_services_made_is_for_those_who_pass_them) {
    struct slice url = SLICE("http://a.org/");
    struct object *made, *stored, *plain;
    struct body *body = body_of_bytes(SLICE("made"));
    start_cache();
    put_cached_with(url, NULL, NULL, "red", 10);
    plain = look_up(url, "red");
    ck_assert(put_made(plain, CHAIN, 1, body));
    ck_assert(put_made(plain, CHAIN + 1, 1, plain->body));
    ck_assert(put_made(plain, CHAIN, 2, body)); /* in the place of the first */
    ck_assert_uint_eq(counted().objects, 3);
    object_release(&plain);
    plain = look_up(url, "red");
    ck_assert_uint_eq(object_provenance(plain).kind, OBJECT_UNSEEN);
    stored = look_made(url, "red", CHAIN, &made);
    ck_assert_ptr_eq(stored, plain);
    ck_assert_uint_eq(object_provenance(made).kind, OBJECT_MADE);
    ck_assert_uint_eq(object_provenance(made).tag, 2);
    object_release(&made);
    object_release(&stored);
    stored = look_made(url, "red", CHAIN + 1, &made);
    ck_assert_uint_eq(object_provenance(made).kind, OBJECT_LEFT_ALONE);
    object_release(&made);
    object_release(&stored);
    ck_assert_ptr_null(look_made(url, "blue", CHAIN, &made));
    ck_assert_ptr_null(made);
    object_release(&plain);
    body_release(&body);
    stop_cache();
}
END_TEST

START_TEST(what_services_made_goes_with_what_it_was_made_of) {
    struct slice url = SLICE("http://a.org/");
    struct object *made, *plain, *again;
    struct body *body = body_of_bytes(SLICE("made"));
    start_cache();
    put_cached_with(url, NULL, NULL, "blue", 10);
    put_cached_with(url, NULL, NULL, "red", 10);
    plain = look_up(url, "red");
    ck_assert(put_made(plain, CHAIN, 1, body));
    put_cached_with(url, NULL, NULL, "blue",
                    20); /* another variant of the origin's: not concerned */
    ck_assert_uint_eq(counted().objects, 3);
    put_cached_with(url, NULL, NULL, "red", 10);
    ck_assert_uint_eq(counted().objects, 2);
    ck_assert(!put_made(plain, CHAIN, 1, body)); /* of what is no more */
    object_release(&plain);
    plain = look_up(url, "red");
    ck_assert(put_made(plain, CHAIN, 1, body));
    cache_drop(the_cache, plain);
    ck_assert_uint_eq(counted().objects, 1);
    object_release(&plain);
    put_cached_with(url, NULL, NULL, "red", 10);
    plain = look_up(url, "red");
    ck_assert(put_made(plain, CHAIN, 1, body));
    cache_remove(the_cache, plain); /* as eviction does: the variant is still good */
    again = look_made(url, "red", CHAIN, &made);
    ck_assert_ptr_null(again);
    ck_assert_ptr_nonnull(made);
    object_release(&made);
    object_release(&plain);
    body_release(&body);
    stop_cache();
}
END_TEST

START_TEST(variants_are_selected_and_replaced) {
    struct slice url = SLICE("http://a.org/");
    start_cache();
    put_cached_with(url, NULL, NULL, "red", 10);
    put_cached_with(url, NULL, NULL, "blue", 20);
    put_cached_with(url, NULL, NULL, "red", 30);
    ck_assert_uint_eq(counted().objects, 2);
    struct object *red = look_up(url, "red"), *blue = look_up(url, "blue"),
                  *green = look_up(url, "green");
    ck_assert_uint_eq(body_length(red->body), 30);
    ck_assert_uint_eq(body_length(blue->body), 20);
    ck_assert_ptr_null(green);
    ck_assert_uint_eq(red->hits, 1);
    object_release(&red);
    object_release(&blue);
    ck_assert_uint_eq(cache_change_purge_name(the_cache, NAME_OF(url), PURGE_REMOVE), 2);
    stop_cache();
}
END_TEST

START_TEST(the_limit_holds) {
    char text[40];
    start_cache();
    for (unsigned i = 0; i < 1000; i++) {
        put_cached(cached_url(i, text, sizeof text), 10000);
        ck_assert_uint_le(counted().bytes, LIMIT);
    }
    ck_assert_uint_gt(counted().bytes, LIMIT - LIMIT / 16);
    cache_set_limit(the_cache, LIMIT / 2);
    ck_assert_uint_le(counted().bytes, LIMIT / 2);
    stop_cache();
}
END_TEST

/* What has been announced counts, though no byte of it is there. */
START_TEST(others_go_before_a_body_arrives) {
    char text[40];
    struct slice url = SLICE("http://a.org/large");
    struct http_head request, response;
    struct freshness freshness = {.lifetime = 60, .response_time = time(NULL)};
    start_cache();
    for (unsigned i = 0; i < 100; i++)
        put_cached(cached_url(i, text, sizeof text), 10000);
    unsigned before = (unsigned)counted().objects;
    plain_head(&request, 0);
    plain_head(&response, 200);
    struct body *body = body_new(NULL, BODY_SHARED, LIMIT / 2);
    struct object *object =
        object_new(cache_key_of(url), url, &request, &response, &freshness, body);
    struct cache_arrival arrival = {.since = cache_now(the_cache)};
    ck_assert(cache_insert(the_cache, object, &arrival));
    ck_assert_uint_lt(counted().objects, before * 2 / 3);
    ck_assert(is_cached(url));
    body_finish(body, BODY_FAILED);
    object_release(&object);
    body_release(&body);
    stop_cache();
}
END_TEST

START_TEST(a_scan_does_not_displace_what_is_used) {
    char text[40];
    unsigned left = 0;
    start_cache();
    for (unsigned i = 0; i < 50; i++)
        put_cached(cached_url(i, text, sizeof text), 10000);
    for (unsigned i = 0; i < 1000; i++) {
        if (i % 20 == 0)
            for (unsigned j = 0; j < 50; j++)
                is_found(cached_url(j, text, sizeof text));
        put_cached(cached_url(1000 + i, text, sizeof text), 10000);
    }
    for (unsigned i = 0; i < 50; i++)
        left += is_found(cached_url(i, text, sizeof text));
    ck_assert_uint_eq(left, 50);
    stop_cache();
}
END_TEST

/* What would have happened to the same requests with other orders of eviction: objects of one size,
 * `capacity` of them; entering anew at a hit makes it LRU, else it is FIFO. */
enum { KEYS = 40000, REQUESTS = 120000 };

struct model {
    unsigned capacity, count;
    bool to_front;
    struct list_link order; /* newest first */
    struct list_link links[KEYS];
    unsigned hits;
};

static void model_init(struct model *model, unsigned capacity, bool to_front) {
    *model = (struct model){.capacity = capacity, .to_front = to_front};
    list_init(&model->order);
    for (unsigned i = 0; i < KEYS; i++)
        list_init(&model->links[i]);
}

static void model_request(struct model *model, unsigned key) {
    struct list_link *link = &model->links[key];
    if (!list_empty(link)) {
        model->hits++;
        if (!model->to_front)
            return;
        list_remove(link);
    } else if (model->count == model->capacity) {
        list_remove(model->order.prev);
    } else {
        model->count++;
    }
    list_prepend(&model->order, link);
}

/* Some pages are asked for all the time, by Zipf's law, and every so often a crawler asks for a run
 * of others that nobody wants. */
static unsigned next_key(unsigned request, unsigned *seed) {
    enum { POPULAR = 8000, EVERY = 10000, SCAN = 4000 };
    if (request % EVERY >= EVERY - SCAN)
        return POPULAR + (request / EVERY * SCAN + request % EVERY) % (KEYS - POPULAR);
    *seed = *seed * 1103515245u + 12345u;
    double part = (double)(*seed >> 8 & 0xffff) / 0x10000;
    return (unsigned)(__builtin_exp(part * __builtin_log(POPULAR))) - 1;
}

START_TEST(more_is_found_than_with_lru_or_fifo) {
    enum { SIZE = 2500 };
    char text[40];
    struct model *lru = malloc(sizeof *lru), *fifo = malloc(sizeof *fifo);
    unsigned seed = 1, hits = 0;
    start_cache();
    for (unsigned i = 0; i < 2000; i++) /* until it is full */
        put_cached(cached_url(KEYS + i, text, sizeof text), SIZE);
    unsigned capacity = (unsigned)counted().objects;
    model_init(lru, capacity, true);
    model_init(fifo, capacity, false);
    for (unsigned i = 0; i < REQUESTS; i++) {
        unsigned key = next_key(i, &seed);
        struct slice url = cached_url(key, text, sizeof text);
        model_request(lru, key);
        model_request(fifo, key);
        if (is_found(url))
            hits++;
        else
            put_cached(url, SIZE);
    }
    printf("%u requests, %u objects: SIEVE %u hits, LRU %u, FIFO %u\n", REQUESTS, capacity, hits,
           lru->hits, fifo->hits);
    ck_assert_uint_gt(hits, lru->hits + REQUESTS / 100);
    ck_assert_uint_gt(hits, fifo->hits + REQUESTS / 50);
    free(lru);
    free(fifo);
    stop_cache();
}
END_TEST

START_TEST(pinned_objects_are_not_evicted) {
    char text[40];
    struct slice pinned = SLICE("http://a.org/pinned");
    start_cache();
    put_cached(pinned, 10000);
    ck_assert_uint_eq(cache_change_pin(the_cache, NAME_OF(pinned), true), 1);
    ck_assert_uint_eq(counted().pinned, 1);
    put_cached(pinned, 20000); /* what takes its place is pinned, too */
    for (unsigned i = 0; i < 300; i++)
        put_cached(cached_url(i, text, sizeof text), 10000);
    ck_assert(is_cached(pinned));
    ck_assert_uint_le(counted().bytes, LIMIT);
    ck_assert_uint_eq(cache_change_pin(the_cache, NAME_OF(pinned), false), 1);
    ck_assert_uint_eq(counted().pinned, 0);
    for (unsigned i = 0; i < 600; i++)
        put_cached(cached_url(i, text, sizeof text), 10000);
    ck_assert(!is_found(pinned));
    stop_cache();
}
END_TEST

static void push_out(void) {
    char text[40];
    for (unsigned i = 0; i < 300; i++)
        put_cached(cached_url(1000 + i, text, sizeof text), 10000);
}

/* Who holds an object knows whether it is still the newest one: it leaves for no other reason. */
START_TEST(held_objects_leave_only_for_others) {
    struct slice url = SLICE("http://a.org/held"), other = SLICE("http://a.org/other");
    start_cache();
    put_cached(url, 1000);
    struct object *first = look_up(url, NULL);
    ck_assert(cache_hold(the_cache, first) && cache_hold(the_cache, first));
    push_out();
    ck_assert(cache_has(the_cache, first));
    cache_unhold(the_cache, first);
    push_out();
    ck_assert(cache_has(the_cache, first));
    put_cached(url, 1000);
    ck_assert(!cache_has(the_cache, first) && !cache_hold(the_cache, first));
    cache_unhold(the_cache, first);
    put_cached(other, 1000);
    struct cache_walk walk = {0};
    cache_walk_name(the_cache, &walk, NAME_OF(other));
    ck_assert(cache_hold(the_cache, walk.objects[0]));
    cache_unhold(the_cache, walk.objects[0]);
    push_out();
    ck_assert(!cache_has(the_cache, walk.objects[0]));
    cache_walk_end(&walk);
    object_release(&first);
    stop_cache();
}
END_TEST

/* What has left memory counts as replaced by a newer one, and a variant of another kind is none. */
START_TEST(a_held_variant_is_no_surplus) {
    struct slice url = SLICE("http://a.org/variants");
    start_cache();
    variants_most = 1;
    put_cached_with(url, NULL, NULL, "gzip", 100);
    struct object *first = look_up(url, "gzip");
    ck_assert(cache_hold(the_cache, first));
    put_cached_with(url, NULL, NULL, "plain", 100);
    ck_assert(cache_has(the_cache, first));
    cache_unhold(the_cache, first);
    put_cached_with(url, NULL, NULL, "other", 100);
    ck_assert(!cache_has(the_cache, first));
    struct object *second = look_up(url, "plain");
    ck_assert_ptr_null(second);
    variants_most = 0;
    object_release(&first);
    stop_cache();
}
END_TEST

START_TEST(nothing_but_pinned_objects_is_no_endless_loop) {
    struct slice big = SLICE("http://a.org/big");
    start_cache();
    put_cached(big, LIMIT / 2);
    cache_change_pin(the_cache, NAME_OF(big), true);
    cache_set_limit(the_cache, 1000);
    ck_assert(is_found(big));
    put_cached(SLICE("http://a.org/small"), 10);
    ck_assert(!is_found(SLICE("http://a.org/small")));
    stop_cache();
}
END_TEST

START_TEST(lifetimes_change_and_bytes_do_not) {
    struct slice url = SLICE("http://a.org/");
    start_cache();
    put_cached_with(url, "ETag", "\"e\"", NULL, 100);
    uint64_t bytes = counted().bytes;
    struct object *object = look_up(url, NULL);
    ck_assert_uint_eq(cache_change_set_lifetime(the_cache, NAME_OF(url), 3600), 1);
    ck_assert(slice_equal(object_etag(object), SLICE("\"e\"")));
    ck_assert(slice_equal(object_url(object), url));
    ck_assert_int_ge(object_freshness(object).lifetime, 3600);
    ck_assert_uint_eq(counted().bytes, bytes);
    ck_assert_uint_eq(counted().objects, 1);
    ck_assert_uint_eq(cache_change_purge_name(the_cache, NAME_OF(url), PURGE_STALE), 1);
    struct freshness freshness = object_freshness(object);
    ck_assert_int_le(freshness.lifetime, freshness_age(&freshness, time(NULL)));
    object_release(&object);
    stop_cache();
}
END_TEST

START_TEST(a_walk_sees_everything) {
    char text[40];
    struct cache_walk walk = {0};
    unsigned seen = 0;
    start_cache();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put_cached(cached_url(i, text, sizeof text), 10);
    while (cache_walk(the_cache, &walk, 100)) {
        ck_assert_uint_lt(walk.count, 200);
        seen += (unsigned)walk.count;
    }
    cache_walk_end(&walk);
    ck_assert_uint_eq(seen, 20000);
    stop_cache();
}
END_TEST

/* Its time is over from the beginning on, so each walk makes one round. */
START_TEST(a_walk_stops_when_its_time_is_over) {
    char text[40];
    struct object_filter none = {.host = SLICE("nothing.example")};
    start_cache();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 50000; i++)
        put_cached(cached_url(i, text, sizeof text), 10);
    for (unsigned step = 0; step < 2; step++) {
        uint64_t position = 0;
        unsigned seen = 0, walks = 0;
        for (bool over = false; !over; walks++) {
            struct cache_walk walk = {
                .filter = step == 0 ? NULL : &none, .until = 1, .position = position};
            cache_walk(the_cache, &walk, SIZE_MAX);
            seen += (unsigned)walk.count;
            position = walk.position;
            over = cache_walk_is_over(&walk);
            cache_walk_end(&walk);
        }
        ck_assert_uint_eq(seen, step == 0 ? 50000 : 0);
        ck_assert_uint_ge(walks, 3);
    }
    stop_cache();
}
END_TEST

/* Each page by a walk of its own, from where the last one stopped. */
START_TEST(a_walk_goes_on_where_another_stopped) {
    char text[40];
    struct object_filter filter = {.host = SLICE("a.org")};
    start_cache();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put_cached(cached_url(i, text, sizeof text), 10);
    for (unsigned step = 0; step < 2; step++) {
        uint64_t position = 0;
        unsigned seen = 0, last;
        do {
            struct cache_walk walk = {.filter = step == 0 ? NULL : &filter, .position = position};
            cache_walk(the_cache, &walk, 1 + seen % 90);
            last = (unsigned)walk.count;
            position = walk.position;
            seen += last;
            cache_walk_end(&walk);
        } while (last > 0);
        ck_assert_uint_eq(seen, 20000);
    }
    stop_cache();
}
END_TEST

/* Threads. */

/* Each its own keys, more of them than there is room for. */
static void *put_many(void *arg) {
    char text[40];
    for (unsigned i = 0; i < 5000; i++)
        put_cached(cached_url(i * 4 + (unsigned)(uintptr_t)arg, text, sizeof text), i * 37 % 9000);
    return NULL;
}

START_TEST(threads_insert_at_once) {
    pthread_t threads[4];
    start_cache();
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, put_many, (void *)i), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_le(counted().bytes, LIMIT);
    ck_assert_uint_gt(counted().evictions, 10000);
    stop_cache();
}
END_TEST

static void *use(void *arg) {
    char text[40];
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < 20000; i++) {
        seed = seed * 1103515245u + 12345u;
        struct slice url = cached_url(seed >> 16 & 255, text, sizeof text);
        struct object *object = look_up(url, NULL);
        if (object == NULL)
            put_cached(url, seed >> 8 & 16383);
        else if (i % 50 == 0)
            cache_remove(the_cache, object);
        object_release(&object);
    }
    return NULL;
}

static void *look_after(void *arg) {
    char text[40], error[200];
    (void)arg;
    for (unsigned i = 0; i < 300; i++) {
        struct object_filter filter = {.prefix = SLICE("http://a.org/1")};
        const struct cache_name *name = NAME_OF(cached_url(i & 255, text, sizeof text));
        cache_change_pin(the_cache, name, i % 3 != 0);
        cache_change_set_lifetime(the_cache, name, i);
        cache_change_purge(the_cache, &filter, i % 2 == 0 ? PURGE_STALE : PURGE_REMOVE);
        snprintf(text, sizeof text, "/2%u$", i % 10);
        ck_assert_uint_gt(cache_ban(the_cache, text, error, sizeof error), 0);
    }
    return NULL;
}

START_TEST(threads_get_along) {
    pthread_t threads[4];
    start_cache();
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, i == 3 ? look_after : use, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    stop_cache();
}
END_TEST

Suite *store_suite(void) {
    const TTest *tests[] = {
        what_services_made_is_for_those_who_pass_them,
        what_services_made_goes_with_what_it_was_made_of,
        variants_are_selected_and_replaced,
        the_limit_holds,
        others_go_before_a_body_arrives,
        a_scan_does_not_displace_what_is_used,
        more_is_found_than_with_lru_or_fifo,
        pinned_objects_are_not_evicted,
        held_objects_leave_only_for_others,
        a_held_variant_is_no_surplus,
        nothing_but_pinned_objects_is_no_endless_loop,
        lifetimes_change_and_bytes_do_not,
        a_walk_sees_everything,
        a_walk_stops_when_its_time_is_over,
        a_walk_goes_on_where_another_stopped,
        threads_insert_at_once,
        threads_get_along,
    };
    return suite_of("store", tests, COUNT_OF(tests));
}
