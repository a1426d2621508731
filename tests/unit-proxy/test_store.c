/* The cache's index: variants, eviction, purges, bans, pins, and all of it from several threads. */
#include "suites.h"

#include "cache/content.h"

#include <time.h>

enum { LIMIT = 1 << 20 };

static struct cache *the_cache;

static struct slice url_of(unsigned number, char *text, size_t capacity) {
    return slice_make(text, (size_t)snprintf(text, capacity, "http://a.org/%u", number));
}

static void head_of(struct http_head *head, unsigned status) {
    http_head_init(head);
    head->version = 11;
    head->status = status;
    head->method_id = HTTP_METHOD_GET;
    head->reason = SLICE("OK");
}

/* `name` and `value` may be NULL: a response without such a field. False: it was not stored. */
static bool put_since(const struct cache_moment *since, struct slice url, const char *name,
                      const char *value, const char *kind, size_t size) {
    struct http_head request, response;
    struct freshness freshness = {.lifetime = 60, .response_time = time(NULL)};
    char *bytes = calloc(1, size + 1);
    head_of(&request, 0);
    head_of(&response, 200);
    if (kind != NULL) {
        http_head_add(&request, SLICE("Kind"), slice_from(kind));
        http_head_add(&response, SLICE("Vary"), SLICE("Kind"));
    }
    if (name != NULL)
        http_head_add(&response, slice_from(name), slice_from(value));
    struct body *body = body_of_bytes(slice_make(bytes, size));
    struct object *object =
        object_new(cache_key_of(url), url, &request, &response, &freshness, body);
    struct cache_arrival arrival = {.since = *since};
    bool stored = cache_insert(the_cache, object, &arrival);
    object_release(&object);
    body_release(&body);
    free(bytes);
    return stored;
}

static void put_with(struct slice url, const char *name, const char *value, const char *kind,
                     size_t size) {
    struct cache_moment now = cache_now(the_cache);
    put_since(&now, url, name, value, kind, size);
}

static void put(struct slice url, size_t size) {
    put_with(url, NULL, NULL, NULL, size);
}

static struct object *look(struct slice url, const char *kind) {
    struct http_head request;
    head_of(&request, 0);
    if (kind != NULL)
        http_head_add(&request, SLICE("Kind"), slice_from(kind));
    return cache_lookup(the_cache, cache_key_of(url), &request, OBJECT_FORWARD);
}

static bool has(struct slice url) {
    struct object *object = look(url, NULL);
    bool found = object != NULL;
    object_release(&object);
    return found;
}

/* Without a visit. */
static bool is_there(struct slice url) {
    struct cache_walk walk = {0};
    bool there = cache_walk_key(the_cache, &walk, cache_key_of(url));
    cache_walk_end(&walk);
    return there;
}

static void start(void) {
    the_cache = cache_new(LIMIT);
}

static struct cache_statistics counted(void) {
    struct cache_statistics statistics;
    cache_statistics(the_cache, &statistics);
    return statistics;
}

/* Everything that went in is accounted for when it goes. */
static void stop(void) {
    struct object_filter all = {0};
    content_purge(the_cache, &all, PURGE_REMOVE);
    struct cache_statistics statistics = counted();
    ck_assert_uint_eq(statistics.objects, 0);
    ck_assert_uint_eq(statistics.bytes, 0);
    ck_assert_uint_eq(statistics.pinned, 0);
    cache_free(&the_cache);
}

enum { CHAIN = 7 };

/* What services behind the cache made of `of`. */
static bool put_made(const struct object *of, uint32_t chain, uint32_t tag, struct body *body) {
    struct http_head request, response;
    struct freshness freshness = object_freshness(of);
    const struct object_making making = {body == of->body ? OBJECT_LEFT_ALONE : OBJECT_MADE, chain,
                                         tag};
    const struct cache_arrival arrival = {.since = cache_now(the_cache), .of = of};
    struct slice selector = object_selector(of);
    head_of(&request, 0);
    object_parse_head(of, &response);
    struct object *made = object_new_made(of->key, object_url(of), &request, &response, &freshness,
                                          body, &making, &selector);
    made->scope = of->scope;
    bool stored = cache_insert(the_cache, made, &arrival);
    object_release(&made);
    return stored;
}

static struct object *look_made(struct slice url, const char *kind, uint32_t chain,
                                struct object **made) {
    struct http_head request;
    head_of(&request, 0);
    if (kind != NULL)
        http_head_add(&request, SLICE("Kind"), slice_from(kind));
    return cache_lookup_made(the_cache, cache_key_of(url), &request, OBJECT_FOR_ALL, chain, made);
}

START_TEST(what_services_made_is_for_those_who_pass_them) {
    struct slice url = SLICE("http://a.org/");
    struct object *made, *stored, *plain;
    struct body *body = body_of_bytes(SLICE("made"));
    start();
    put_with(url, NULL, NULL, "red", 10);
    plain = look(url, "red");
    ck_assert(put_made(plain, CHAIN, 1, body));
    ck_assert(put_made(plain, CHAIN + 1, 1, plain->body));
    ck_assert(put_made(plain, CHAIN, 2, body)); /* in the place of the first */
    ck_assert_uint_eq(counted().objects, 3);
    object_release(&plain);
    plain = look(url, "red");
    ck_assert_uint_eq(object_making(plain).kind, OBJECT_UNSEEN);
    stored = look_made(url, "red", CHAIN, &made);
    ck_assert_ptr_eq(stored, plain);
    ck_assert_uint_eq(object_making(made).kind, OBJECT_MADE);
    ck_assert_uint_eq(object_making(made).tag, 2);
    object_release(&made);
    object_release(&stored);
    stored = look_made(url, "red", CHAIN + 1, &made);
    ck_assert_uint_eq(object_making(made).kind, OBJECT_LEFT_ALONE);
    object_release(&made);
    object_release(&stored);
    ck_assert_ptr_null(look_made(url, "blue", CHAIN, &made));
    ck_assert_ptr_null(made);
    object_release(&plain);
    body_release(&body);
    stop();
}
END_TEST

START_TEST(what_services_made_goes_with_what_it_was_made_of) {
    struct slice url = SLICE("http://a.org/");
    struct object *made, *plain, *again;
    struct body *body = body_of_bytes(SLICE("made"));
    start();
    put_with(url, NULL, NULL, "blue", 10);
    put_with(url, NULL, NULL, "red", 10);
    plain = look(url, "red");
    ck_assert(put_made(plain, CHAIN, 1, body));
    put_with(url, NULL, NULL, "blue", 20); /* another variant of the origin's: not concerned */
    ck_assert_uint_eq(counted().objects, 3);
    put_with(url, NULL, NULL, "red", 10);
    ck_assert_uint_eq(counted().objects, 2);
    ck_assert(!put_made(plain, CHAIN, 1, body)); /* of what is no more */
    object_release(&plain);
    plain = look(url, "red");
    ck_assert(put_made(plain, CHAIN, 1, body));
    cache_drop(the_cache, plain);
    ck_assert_uint_eq(counted().objects, 1);
    object_release(&plain);
    put_with(url, NULL, NULL, "red", 10);
    plain = look(url, "red");
    ck_assert(put_made(plain, CHAIN, 1, body));
    cache_remove(the_cache, plain); /* as eviction does: the variant is still good */
    again = look_made(url, "red", CHAIN, &made);
    ck_assert_ptr_null(again);
    ck_assert_ptr_nonnull(made);
    object_release(&made);
    object_release(&plain);
    body_release(&body);
    stop();
}
END_TEST

START_TEST(variants_are_selected_and_replaced) {
    struct slice url = SLICE("http://a.org/");
    start();
    put_with(url, NULL, NULL, "red", 10);
    put_with(url, NULL, NULL, "blue", 20);
    put_with(url, NULL, NULL, "red", 30);
    ck_assert_uint_eq(counted().objects, 2);
    struct object *red = look(url, "red"), *blue = look(url, "blue"), *green = look(url, "green");
    ck_assert_uint_eq(body_length(red->body), 30);
    ck_assert_uint_eq(body_length(blue->body), 20);
    ck_assert_ptr_null(green);
    ck_assert_uint_eq(red->hits, 1);
    object_release(&red);
    object_release(&blue);
    ck_assert_uint_eq(content_purge_key(the_cache, cache_key_of(url), PURGE_REMOVE), 2);
    stop();
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

START_TEST(the_limit_holds) {
    char text[40];
    start();
    for (unsigned i = 0; i < 1000; i++) {
        put(url_of(i, text, sizeof text), 10000);
        ck_assert_uint_le(counted().bytes, LIMIT);
    }
    ck_assert_uint_gt(counted().bytes, LIMIT - LIMIT / 16);
    cache_set_limit(the_cache, LIMIT / 2);
    ck_assert_uint_le(counted().bytes, LIMIT / 2);
    stop();
}
END_TEST

/* What has been announced counts, though no byte of it is there. */
START_TEST(others_go_before_a_body_arrives) {
    char text[40];
    struct slice url = SLICE("http://a.org/large");
    struct http_head request, response;
    struct freshness freshness = {.lifetime = 60, .response_time = time(NULL)};
    start();
    for (unsigned i = 0; i < 100; i++)
        put(url_of(i, text, sizeof text), 10000);
    unsigned before = (unsigned)counted().objects;
    head_of(&request, 0);
    head_of(&response, 200);
    struct body *body = body_new(NULL, BODY_SHARED, LIMIT / 2);
    struct object *object =
        object_new(cache_key_of(url), url, &request, &response, &freshness, body);
    struct cache_arrival arrival = {.since = cache_now(the_cache)};
    ck_assert(cache_insert(the_cache, object, &arrival));
    ck_assert_uint_lt(counted().objects, before * 2 / 3);
    ck_assert(is_there(url));
    body_finish(body, BODY_FAILED);
    object_release(&object);
    body_release(&body);
    stop();
}
END_TEST

START_TEST(a_scan_does_not_displace_what_is_used) {
    char text[40];
    unsigned left = 0;
    start();
    for (unsigned i = 0; i < 50; i++)
        put(url_of(i, text, sizeof text), 10000);
    for (unsigned i = 0; i < 1000; i++) {
        if (i % 20 == 0)
            for (unsigned j = 0; j < 50; j++)
                has(url_of(j, text, sizeof text));
        put(url_of(1000 + i, text, sizeof text), 10000);
    }
    for (unsigned i = 0; i < 50; i++)
        left += has(url_of(i, text, sizeof text));
    ck_assert_uint_eq(left, 50);
    stop();
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
    start();
    for (unsigned i = 0; i < 2000; i++) /* until it is full */
        put(url_of(KEYS + i, text, sizeof text), SIZE);
    unsigned capacity = (unsigned)counted().objects;
    model_init(lru, capacity, true);
    model_init(fifo, capacity, false);
    for (unsigned i = 0; i < REQUESTS; i++) {
        unsigned key = next_key(i, &seed);
        struct slice url = url_of(key, text, sizeof text);
        model_request(lru, key);
        model_request(fifo, key);
        if (has(url))
            hits++;
        else
            put(url, SIZE);
    }
    printf("%u requests, %u objects: SIEVE %u hits, LRU %u, FIFO %u\n", REQUESTS, capacity, hits,
           lru->hits, fifo->hits);
    ck_assert_uint_gt(hits, lru->hits + REQUESTS / 100);
    ck_assert_uint_gt(hits, fifo->hits + REQUESTS / 50);
    free(lru);
    free(fifo);
    stop();
}
END_TEST

START_TEST(pinned_objects_are_not_evicted) {
    char text[40];
    struct slice pinned = SLICE("http://a.org/pinned");
    start();
    put(pinned, 10000);
    ck_assert_uint_eq(content_pin(the_cache, cache_key_of(pinned), true), 1);
    ck_assert_uint_eq(counted().pinned, 1);
    put(pinned, 20000); /* what takes its place is pinned, too */
    for (unsigned i = 0; i < 300; i++)
        put(url_of(i, text, sizeof text), 10000);
    ck_assert(is_there(pinned));
    ck_assert_uint_le(counted().bytes, LIMIT);
    ck_assert_uint_eq(content_pin(the_cache, cache_key_of(pinned), false), 1);
    ck_assert_uint_eq(counted().pinned, 0);
    for (unsigned i = 0; i < 600; i++)
        put(url_of(i, text, sizeof text), 10000);
    ck_assert(!has(pinned));
    stop();
}
END_TEST

START_TEST(nothing_but_pinned_objects_is_no_endless_loop) {
    struct slice big = SLICE("http://a.org/big");
    start();
    put(big, LIMIT / 2);
    content_pin(the_cache, cache_key_of(big), true);
    cache_set_limit(the_cache, 1000);
    ck_assert(has(big));
    put(SLICE("http://a.org/small"), 10);
    ck_assert(!has(SLICE("http://a.org/small")));
    stop();
}
END_TEST

START_TEST(purges_choose) {
    char text[40];
    struct object_filter filter = {.prefix = SLICE("http://a.org/1")};
    start();
    for (unsigned i = 0; i < 20; i++)
        put(url_of(i, text, sizeof text), 10);
    put(SLICE("http://b.org/1"), 10);
    put_with(SLICE("http://b.org/t"), "Surrogate-Key", "one  two", NULL, 10);
    put_with(SLICE("http://b.org/u"), "Cache-Tag", "two, three", NULL, 10);
    ck_assert_uint_eq(content_purge(the_cache, &filter, PURGE_REMOVE), 11);
    filter = (struct object_filter){.tag = SLICE("tw")};
    ck_assert_uint_eq(content_purge(the_cache, &filter, PURGE_REMOVE), 0);
    filter = (struct object_filter){.tag = SLICE("two")};
    ck_assert_uint_eq(content_purge(the_cache, &filter, PURGE_REMOVE), 2);
    filter = (struct object_filter){.host = SLICE("B.org")};
    ck_assert_uint_eq(content_purge(the_cache, &filter, PURGE_REMOVE), 1);
    ck_assert_uint_eq(counted().objects, 9);
    stop();
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
    start();
    for (unsigned i = 0; i < COUNT_OF(urls); i++)
        put(slice_from(urls[i]), 10);
    for (unsigned i = 0; i < COUNT_OF(hosts); i++) {
        struct object_filter filter = {.host = slice_from(hosts[i].host)};
        ck_assert_uint_eq(content_purge(the_cache, &filter, PURGE_REMOVE), hosts[i].count);
    }
    ck_assert_uint_eq(counted().objects, 3);
    stop();
}
END_TEST

/* Of more than a batch, in walks that search outside of the lock: all of them, and no other. */
START_TEST(large_purges_by_expression_choose) {
    char text[40];
    struct regexes regex;
    regexes_compile(&regex, (char *[]){"/[0-9]*7$", NULL});
    struct object_filter filter = {
        .prefix = SLICE("http://a.org/1"), .regex = &regex, .regex_text = "/[0-9]*7$"};
    start();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put(url_of(i, text, sizeof text), 10);
    content_pin(the_cache, cache_key_of(url_of(17, text, sizeof text)), true);
    ck_assert_uint_eq(content_purge(the_cache, &filter, PURGE_STALE), 1111);
    ck_assert_uint_eq(counted().objects, 20000);
    ck_assert_uint_eq(content_purge(the_cache, &filter, PURGE_REMOVE), 1111);
    ck_assert_uint_eq(counted().objects, 20000 - 1111);
    ck_assert_uint_eq(counted().pinned, 0);
    ck_assert(has(url_of(27, text, sizeof text)) && !has(url_of(10007, text, sizeof text)));
    regexes_release(&regex);
    stop();
}
END_TEST

START_TEST(lifetimes_change_and_bytes_do_not) {
    struct slice url = SLICE("http://a.org/");
    start();
    put_with(url, "ETag", "\"e\"", NULL, 100);
    uint64_t bytes = counted().bytes;
    struct object *object = look(url, NULL);
    ck_assert_uint_eq(content_set_lifetime(the_cache, cache_key_of(url), 3600), 1);
    ck_assert(slice_equal(object_etag(object), SLICE("\"e\"")));
    ck_assert(slice_equal(object_url(object), url));
    ck_assert_int_ge(object_freshness(object).lifetime, 3600);
    ck_assert_uint_eq(counted().bytes, bytes);
    ck_assert_uint_eq(counted().objects, 1);
    ck_assert_uint_eq(content_purge_key(the_cache, cache_key_of(url), PURGE_STALE), 1);
    struct freshness freshness = object_freshness(object);
    ck_assert_int_le(freshness.lifetime, freshness_age(&freshness, time(NULL)));
    object_release(&object);
    stop();
}
END_TEST

START_TEST(bans_hit_older_objects_only) {
    char error[200];
    struct slice css = SLICE("http://a.org/a.css"), html = SLICE("http://a.org/a.html");
    start();
    put(css, 10);
    put(html, 10);
    ck_assert_uint_eq(cache_ban(the_cache, "(", error, sizeof error), 0);
    ck_assert_uint_eq(cache_ban(the_cache, "\\.css$", error, sizeof error), 1);
    ck_assert(!has(css));
    ck_assert_uint_eq(cache_bans(the_cache)->count, 1);
    ck_assert(has(html));
    /* Nothing is left that has not been compared with it. */
    ck_assert_uint_eq(cache_bans(the_cache)->count, 0);
    put(css, 10);
    ck_assert(has(css));
    /* Another lifetime does not make an object newer. */
    ck_assert_uint_eq(cache_ban(the_cache, "html", error, sizeof error), 2);
    struct object_filter all = {0};
    content_purge(the_cache, &all, PURGE_STALE);
    ck_assert(!has(html));
    stop();
}
END_TEST

START_TEST(many_bans_are_carried_out) {
    char error[200], text[40];
    start();
    for (unsigned i = 0; i < 200; i++)
        put(url_of(i, text, sizeof text), 10);
    for (unsigned i = 0; i < 128; i++) {
        snprintf(text, sizeof text, "/%u$", i);
        ck_assert_uint_gt(cache_ban(the_cache, text, error, sizeof error), 0);
    }
    ck_assert_uint_eq(counted().objects, 72);
    ck_assert_uint_eq(cache_bans(the_cache)->count, 0);
    stop();
}
END_TEST

/* On their way while the purge comes. */
START_TEST(purges_hit_what_is_on_its_way) {
    struct slice url = SLICE("http://a.org/a.css"), other = SLICE("http://b.org/a.css");
    struct object_filter filters[] = {
        {.prefix = SLICE("http://a.org/")}, {.host = SLICE("a.org")}, {.tag = SLICE("two")}};
    start();
    for (unsigned i = 0; i < COUNT_OF(filters); i++) {
        struct cache_moment before = cache_now(the_cache);
        content_purge(the_cache, &filters[i], PURGE_REMOVE);
        ck_assert(!put_since(&before, url, "Cache-Tag", "one,two", NULL, 10));
        ck_assert(!is_there(url));
        ck_assert(put_since(&before, other, "Cache-Tag", "one", NULL, 10));
        struct cache_moment after = cache_now(the_cache);
        ck_assert(put_since(&after, url, "Cache-Tag", "one,two", NULL, 10));
    }
    stop();
}
END_TEST

static bool is_stale(struct slice url) {
    struct object *object = look(url, NULL);
    ck_assert_ptr_nonnull(object);
    struct freshness freshness = object_freshness(object);
    object_release(&object);
    return freshness.lifetime <= freshness_age(&freshness, time(NULL));
}

/* Before anything was walked through; what is asked for from then on is left alone. */
START_TEST(purges_are_in_force_at_once) {
    struct slice css = SLICE("http://a.org/a.css"), other = SLICE("http://b.org/a.css");
    struct object_filter filter = {.host = SLICE("a.org")};
    start();
    put(css, 10);
    put(other, 10);
    struct cache_moment before = cache_now(the_cache);
    uint32_t number = cache_purge_begin(the_cache, &filter, PURGE_REMOVE);
    ck_assert(!has(css) && has(other));
    ck_assert(!put_since(&before, css, NULL, NULL, NULL, 10));
    struct cache_moment after = cache_now(the_cache);
    ck_assert(put_since(&after, css, NULL, NULL, NULL, 10));
    ck_assert(has(css));
    struct cache_walk walk = {.filter = &filter, .number = number};
    ck_assert(!cache_walk(the_cache, &walk, 100));
    cache_walk_end(&walk);
    ck_assert_uint_eq(cache_purge_end(the_cache, number), 1);
    ck_assert(has(css) && has(other));
    stop();
}
END_TEST

START_TEST(soft_purges_are_in_force_at_once) {
    struct slice url = SLICE("http://a.org/a.css"), other = SLICE("http://a.org/b.css");
    struct object_filter filter = {.prefix = SLICE("http://a.org/a")};
    start();
    put(url, 10);
    put(other, 10);
    content_set_lifetime(the_cache, cache_key_of(url), 3600);
    content_set_lifetime(the_cache, cache_key_of(other), 3600);
    uint32_t number = cache_purge_begin(the_cache, &filter, PURGE_STALE);
    ck_assert(is_stale(url) && !is_stale(other));
    /* It has been compared: what is said of it from here on counts. */
    ck_assert_uint_eq(content_set_lifetime(the_cache, cache_key_of(url), 3600), 1);
    ck_assert(!is_stale(url));
    ck_assert_uint_eq(cache_purge_end(the_cache, number), 1);
    ck_assert(!is_stale(url));
    stop();
}
END_TEST

/* Nobody looks at the bans meanwhile: numbers come round, but no object is taken for a newer one.
 */
START_TEST(numbers_of_purges_come_round) {
    char error[200];
    struct object_filter elsewhere = {.host = SLICE("b.org")};
    struct slice old = SLICE("http://a.org/old"), css = SLICE("http://a.org/a.css");
    start();
    put(old, 10);
    put(css, 10);
    for (unsigned i = 0; i < 2 * BANS_COUNTED + 10; i++)
        ck_assert_uint_eq(content_purge(the_cache, &elsewhere, PURGE_REMOVE), 0);
    ck_assert(has(old));
    ck_assert_uint_gt(cache_ban(the_cache, "css", error, sizeof error), 0);
    ck_assert(has(old) && !has(css));
    ck_assert_uint_eq(cache_bans(the_cache)->count, 0);
    ck_assert_uint_eq(cache_bans(the_cache)->due, 0);
    stop();
}
END_TEST

/* What a purge took is what was there, each once, whoever found it first. */
static void *find_all(void *arg) {
    char text[40];
    for (unsigned i = 0; i < 20000; i++)
        has(url_of((i * 7919u + (unsigned)(uintptr_t)arg) % 20000, text, sizeof text));
    return NULL;
}

START_TEST(purges_count_what_others_look_up) {
    char text[40];
    pthread_t threads[2];
    struct object_filter all = {.host = SLICE("a.org")};
    start();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put(url_of(i, text, sizeof text), 10);
    for (uintptr_t i = 0; i < COUNT_OF(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, find_all, (void *)i), 0);
    uint64_t stale = content_purge(the_cache, &all, PURGE_STALE);
    uint64_t removed = content_purge(the_cache, &all, PURGE_REMOVE);
    for (unsigned i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(stale, 20000);
    ck_assert_uint_eq(removed, 20000);
    stop();
}
END_TEST

START_TEST(soft_purges_make_stale_what_is_on_its_way) {
    struct slice url = SLICE("http://a.org/a.css");
    struct object_filter all = {0};
    start();
    struct cache_moment before = cache_now(the_cache);
    content_purge(the_cache, &all, PURGE_STALE);
    ck_assert(put_since(&before, url, NULL, NULL, NULL, 10));
    struct object *object = look(url, NULL);
    struct freshness freshness = object_freshness(object);
    ck_assert_int_le(freshness.lifetime, freshness_age(&freshness, time(NULL)));
    object_release(&object);
    stop();
}
END_TEST

START_TEST(removals_of_a_key_hit_what_is_on_its_way) {
    struct slice url = SLICE("http://a.org/a"), other = SLICE("http://a.org/b");
    start();
    struct cache_moment before = cache_now(the_cache);
    cache_remove_key(the_cache, cache_key_of(url));
    ck_assert(!put_since(&before, url, NULL, NULL, NULL, 10));
    ck_assert(put_since(&before, other, NULL, NULL, NULL, 10));
    struct cache_moment after = cache_now(the_cache);
    ck_assert(put_since(&after, url, NULL, NULL, NULL, 10));
    stop();
}
END_TEST

START_TEST(bans_hit_what_is_on_its_way) {
    char error[200], text[40];
    struct slice url = SLICE("http://a.org/a.css"), late = SLICE("http://a.org/late");
    start();
    struct cache_moment before = cache_now(the_cache);
    ck_assert_uint_gt(cache_ban(the_cache, "css", error, sizeof error), 0);
    ck_assert(!put_since(&before, url, NULL, NULL, NULL, 10) || !has(url));
    /* So late that the bans it would have to be compared with are gone: then it isn't stored. */
    for (unsigned i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "/%u$", i);
        ck_assert_uint_gt(cache_ban(the_cache, text, error, sizeof error), 0);
    }
    ck_assert(!put_since(&before, late, NULL, NULL, NULL, 10));
    stop();
}
END_TEST

START_TEST(purges_long_past_are_not_forgiven) {
    struct object_filter elsewhere = {.prefix = SLICE("http://b.org/")};
    struct slice url = SLICE("http://a.org/a");
    start();
    struct cache_moment before = cache_now(the_cache);
    for (unsigned i = 0; i < PURGES_KEPT; i++)
        content_purge(the_cache, &elsewhere, PURGE_REMOVE);
    ck_assert(put_since(&before, url, NULL, NULL, NULL, 10));
    content_purge(the_cache, &elsewhere, PURGE_REMOVE);
    ck_assert(!put_since(&before, url, NULL, NULL, NULL, 10));
    stop();
}
END_TEST

START_TEST(a_walk_sees_everything) {
    char text[40];
    struct cache_walk walk = {0};
    unsigned seen = 0;
    start();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put(url_of(i, text, sizeof text), 10);
    while (cache_walk(the_cache, &walk, 100)) {
        ck_assert_uint_lt(walk.count, 200);
        seen += (unsigned)walk.count;
    }
    cache_walk_end(&walk);
    ck_assert_uint_eq(seen, 20000);
    stop();
}
END_TEST

/* Each page by a walk of its own, from where the last one stopped. */
START_TEST(a_walk_goes_on_where_another_stopped) {
    char text[40];
    struct object_filter filter = {.host = SLICE("a.org")};
    start();
    cache_set_limit(the_cache, (size_t)64 << 20);
    for (unsigned i = 0; i < 20000; i++)
        put(url_of(i, text, sizeof text), 10);
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
    stop();
}
END_TEST

/* Threads. */

/* Each its own keys, more of them than there is room for. */
static void *put_many(void *arg) {
    char text[40];
    for (unsigned i = 0; i < 5000; i++)
        put(url_of(i * 4 + (unsigned)(uintptr_t)arg, text, sizeof text), i * 37 % 9000);
    return NULL;
}

START_TEST(threads_insert_at_once) {
    pthread_t threads[4];
    start();
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, put_many, (void *)i), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_le(counted().bytes, LIMIT);
    ck_assert_uint_gt(counted().evictions, 10000);
    stop();
}
END_TEST

static void *use(void *arg) {
    char text[40];
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < 20000; i++) {
        seed = seed * 1103515245u + 12345u;
        struct slice url = url_of(seed >> 16 & 255, text, sizeof text);
        struct object *object = look(url, NULL);
        if (object == NULL)
            put(url, seed >> 8 & 16383);
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
        struct cache_key key = cache_key_of(url_of(i & 255, text, sizeof text));
        content_pin(the_cache, key, i % 3 != 0);
        content_set_lifetime(the_cache, key, i);
        content_purge(the_cache, &filter, i % 2 == 0 ? PURGE_STALE : PURGE_REMOVE);
        snprintf(text, sizeof text, "/2%u$", i % 10);
        ck_assert_uint_gt(cache_ban(the_cache, text, error, sizeof error), 0);
    }
    return NULL;
}

START_TEST(threads_get_along) {
    pthread_t threads[4];
    start();
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, i == 3 ? look_after : use, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    stop();
}
END_TEST

Suite *store_suite(void) {
    const TTest *tests[] = {
        variants_are_selected_and_replaced,
        what_services_made_is_for_those_who_pass_them,
        what_services_made_goes_with_what_it_was_made_of,
        purges_of_keys_in_one_place_are_told_apart,
        the_limit_holds,
        others_go_before_a_body_arrives,
        a_scan_does_not_displace_what_is_used,
        more_is_found_than_with_lru_or_fifo,
        pinned_objects_are_not_evicted,
        nothing_but_pinned_objects_is_no_endless_loop,
        purges_choose,
        purges_of_hosts_choose,
        large_purges_by_expression_choose,
        lifetimes_change_and_bytes_do_not,
        bans_hit_older_objects_only,
        many_bans_are_carried_out,
        purges_hit_what_is_on_its_way,
        purges_are_in_force_at_once,
        soft_purges_are_in_force_at_once,
        numbers_of_purges_come_round,
        purges_count_what_others_look_up,
        soft_purges_make_stale_what_is_on_its_way,
        removals_of_a_key_hit_what_is_on_its_way,
        bans_hit_what_is_on_its_way,
        purges_long_past_are_not_forgiven,
        a_walk_sees_everything,
        a_walk_goes_on_where_another_stopped,
        threads_insert_at_once,
        threads_get_along,
    };
    return suite_of("store", tests, COUNT_OF(tests));
}
