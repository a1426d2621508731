/* Names and keys: URLs that were made to have one key under a hash without a secret are kept apart,
 * and so is what has one key all the same. */
#include "store_bench.h"

#include "base/secret_hash.h"
#include "cache/shared_fetch.h"

#include <time.h>
#include <xxhash.h>

/* How to compute, for a URL of another host, one on a host of one's own that has the same XXH3.
 * It multiplies halves of the text with which a constant was mixed. Where the text has a half of
 * the constant a factor is 0, and the other half is free. */

enum { SHORT = 128, LONG = 600, LANE = 8, STRIPE = 64 };

/* The first bytes of XXH3's constant; 32 to 47 and 56 to 63 may stand in a URL. */
static const unsigned char constant[128] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
};

static uint64_t at(const void *bytes, size_t offset) {
    uint64_t number;
    memcpy(&number, (const char *)bytes + offset, sizeof number);
    return number;
}

static void put(char *text, size_t offset, uint64_t number, size_t length) {
    memcpy(text + offset, &number, length);
}

static bool is_for_urls(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)bytes[i] <= 0x20 || memchr("#%?./\\;\x7f", bytes[i], 8) != NULL)
            return false;
    return true;
}

/* Another page of the same host. */
static void vary(char *text, uint32_t turn) {
    for (size_t i = 0; i < LANE; i++, turn >>= 4)
        text[i] = (char)('a' + (turn & 15));
}

static void begin(char *victim, char *forged, size_t length) {
    static const char victims[] = "http://bank.org/", own[] = "http://evil.org/";
    memset(victim, 'x', length);
    memcpy(victim, victims, sizeof victims - 1);
    memcpy(forged, victim, length);
    memcpy(forged, own, sizeof own - 1);
}

/* Up to 128 bytes. The state takes up the 16 bytes at `first` and at `second`. */

struct state {
    uint64_t low, high;
};

static uint64_t mix(const char *text, size_t offset, size_t place) {
    uint64_t a = at(text, offset) ^ at(constant, place);
    uint64_t b = at(text, offset + LANE) ^ at(constant, place + LANE);
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t sum(const char *text, size_t offset) {
    return at(text, offset) + at(text, offset + LANE);
}

static struct state step(struct state state, const char *text, size_t first, size_t second,
                         size_t place) {
    return (struct state){
        .low = (state.low + mix(text, first, place)) ^ sum(text, second),
        .high = (state.high + mix(text, second, place + 16)) ^ sum(text, first),
    };
}

/* The state before the last step at 0 and 112, which leads to `state`. */
static struct state step_back(struct state state, const char *text) {
    return (struct state){
        .low = (state.low ^ sum(text, 112)) - mix(text, 0, 0),
        .high = (state.high ^ sum(text, 0)) - mix(text, 112, 16),
    };
}

static void forge_short(char victim[SHORT], char forged[SHORT]) {
    struct state state = {.low = SHORT * UINT64_C(0x9E3779B185EBCA87)};
    begin(victim, forged, SHORT);
    state = step(state, victim, 48, 64, 96);
    state = step(state, victim, 32, 80, 64);
    struct state end = step(step(state, victim, 16, 96, 32), victim, 0, 112, 0);
    for (uint32_t turn = 0;; turn++) {
        vary(forged + 112, turn);
        struct state before = step_back(end, forged);
        uint64_t fixed = at(constant, 32), also_fixed = at(constant, 56);
        put(forged, 16, fixed, LANE);
        put(forged, 24, (before.high ^ state.high) - fixed, LANE);
        put(forged, 96, (before.low ^ state.low) - also_fixed, LANE);
        put(forged, 104, also_fixed, LANE);
        if (is_for_urls(forged + 16, 16) && is_for_urls(forged + 96, 16))
            return;
    }
}

/* Longer ones. What lanes 0 and 1 of the stripes come to is added up, each in the other's place. */

static void add_stripes(const char *text, uint64_t sums[2]) {
    static const size_t stripes[] = {0, 3, 4, 5, 6};
    sums[0] = sums[1] = 0;
    for (size_t i = 0; i < COUNT_OF(stripes); i++)
        for (size_t lane = 0; lane < 2; lane++) {
            uint64_t data = at(text, stripes[i] * STRIPE + lane * LANE);
            uint64_t keyed = data ^ at(constant, (stripes[i] + lane) * LANE);
            sums[1 - lane] += data;
            sums[lane] += (keyed & UINT32_MAX) * (keyed >> 32);
        }
}

static void forge_long(char victim[LONG], char forged[LONG]) {
    enum { A = 4 * STRIPE + 4, B = 5 * STRIPE, C = 3 * STRIPE + LANE + 4, D = 4 * STRIPE + LANE };
    uint64_t wanted[2], have[2];
    begin(victim, forged, LONG);
    add_stripes(victim, wanted);
    for (uint32_t turn = 0;; turn++) {
        vary(forged + 6 * STRIPE, turn);
        put(forged, A - 4, at(constant, 32) & UINT32_MAX, LANE);
        put(forged, B, at(constant, 40) >> 32 << 32, LANE);
        put(forged, C - 4, at(constant, 32) & UINT32_MAX, LANE);
        put(forged, D, at(constant, 40) >> 32 << 32, LANE);
        add_stripes(forged, have);
        put(forged, A, (wanted[1] - have[1]) >> 32, 4);
        put(forged, B, wanted[1] - have[1], 4);
        put(forged, C, (wanted[0] - have[0]) >> 32, 4);
        put(forged, D, wanted[0] - have[0], 4);
        if (is_for_urls(forged + A, 4) && is_for_urls(forged + B, 4) &&
            is_for_urls(forged + C, 4) && is_for_urls(forged + D, 4))
            return;
    }
}

static bool same_without_secret(struct slice a, struct slice b) {
    return XXH128_isEqual(XXH3_128bits(a.base, a.length), XXH3_128bits(b.base, b.length));
}

static void check_forged(struct slice victim, struct slice forged) {
    ck_assert(!slice_equal(victim, forged));
    ck_assert(is_for_urls(forged.base + 16, forged.length - 16));
    ck_assert(same_without_secret(victim, forged));
    ck_assert(!cache_key_equal(cache_key_of(victim), cache_key_of(forged)));
}

START_TEST(forged_urls_have_keys_of_their_own) {
    char victim[LONG], forged[LONG];
    forge_short(victim, forged);
    check_forged(slice_make(victim, SHORT), slice_make(forged, SHORT));
    forge_long(victim, forged);
    check_forged(slice_make(victim, LONG), slice_make(forged, LONG));
}
END_TEST

START_TEST(keys_are_of_the_secret) {
    struct cache_secret kept = *cache_secret(), other = kept;
    struct cache_key key = cache_key_of(SLICE("http://a/"));
    for (size_t i = 0; i < CACHE_SECRET; i++)
        other.bytes[i] = (unsigned char)(other.bytes[i] + 7 * i + 1);
    cache_set_secret(&other);
    ck_assert(!cache_key_equal(cache_key_of(SLICE("http://a/")), key));
    cache_set_secret(&kept);
    ck_assert(cache_key_equal(cache_key_of(SLICE("http://a/")), key));
}
END_TEST

/* Nor can keys of other tables be chosen so that all fall into one chain. */
START_TEST(tables_have_a_secret) {
    struct slice text = SLICE("a.example");
    ck_assert_uint_ne(secret_hash(text), XXH3_64bits(text.base, text.length));
    ck_assert_uint_ne(secret_hash(text), cache_hash(text));
    ck_assert_uint_eq(secret_hash(text), secret_hash(slice_from("a.example")));
}
END_TEST

/* What has one key all the same. */

static const struct cache_name one = {{"http://one/", 11}, {1, 2}};
static const struct cache_name two = {{"http://two/", 11}, {1, 2}};

static struct object *new_object(const struct cache_name *name, unsigned status,
                                 const struct object_provenance *provenance, struct body *body) {
    struct http_head request, response;
    struct freshness freshness = {.lifetime = 60, .response_time = time(NULL)};
    plain_head(&request, 0);
    plain_head(&response, status);
    return object_new_made(name->key, name->url, &request, &response, &freshness, body, provenance,
                           NULL);
}

static struct object *insert(const struct cache_name *name, unsigned status,
                             const struct object *of) {
    const struct cache_arrival arrival = {
        .since = cache_now(the_cache), .max_variants = 1, .of = of};
    const struct object_provenance provenance = {
        .kind = of != NULL ? OBJECT_MADE : OBJECT_UNSEEN, .chain = 7, .tag = 1};
    struct body *body = body_of_bytes(SLICE("bytes"));
    struct object *object = new_object(name, status, &provenance, body);
    ck_assert(cache_insert(the_cache, object, &arrival));
    body_release(&body);
    return object;
}

static struct object *find(const struct cache_name *name) {
    struct http_head request;
    plain_head(&request, 0);
    return cache_lookup(the_cache, name, &request, OBJECT_FORWARD);
}

static void check_found(const struct cache_name *name, const struct object *expected) {
    struct object *object = find(name);
    ck_assert_ptr_eq(object, expected);
    object_release(&object);
}

START_TEST(names_of_one_key_in_memory) {
    start_cache();
    struct object *first = insert(&one, 200, NULL);
    check_found(&two, NULL);
    struct object *second = insert(&two, 206, NULL);
    check_found(&one, first);
    check_found(&two, second);
    ck_assert_uint_eq(cache_change_set_lifetime(the_cache, &two, 1), 1);
    ck_assert_int_eq(object_freshness(first).lifetime, 60);
    ck_assert_uint_eq(cache_change_pin(the_cache, &two, true), 1);
    ck_assert(!first->pinned);
    cache_remove(the_cache, first);
    object_release(&first);
    first = insert(&one, 200, NULL);
    ck_assert_uint_eq(cache_remove_name(the_cache, &one), 1);
    check_found(&one, NULL);
    check_found(&two, second);
    ck_assert_uint_eq(cache_change_purge_name(the_cache, &one, PURGE_REMOVE), 0);
    ck_assert_uint_eq(cache_change_purge_name(the_cache, &two, PURGE_REMOVE), 1);
    object_release(&first);
    object_release(&second);
    stop_cache();
}
END_TEST

/* Neither does a variant of one stand for a variant of the other, nor does it go with that. */
START_TEST(variants_of_one_key) {
    struct http_head request;
    struct object *made;
    plain_head(&request, 0);
    start_cache();
    struct object *first = insert(&one, 200, NULL), *second = insert(&two, 200, NULL);
    struct object *of_first = insert(&one, 200, first);
    struct object *found = cache_lookup_made(the_cache, &two, &request, OBJECT_FORWARD, 7, &made);
    ck_assert_ptr_eq(found, second);
    ck_assert_ptr_null(made);
    object_release(&found);
    cache_drop(the_cache, second);
    found = cache_lookup_made(the_cache, &one, &request, OBJECT_FORWARD, 7, &made);
    ck_assert_ptr_eq(found, first);
    ck_assert_ptr_eq(made, of_first);
    object_release(&found);
    object_release(&made);
    object_release(&first);
    object_release(&second);
    object_release(&of_first);
    stop_cache();
}
END_TEST

START_TEST(flights_of_one_key) {
    struct shared_fetches *fetches = shared_fetches_new();
    struct shared_fetch *first, *second;
    ck_assert_int_eq(shared_fetch_join(fetches, &one, 100, &first), SHARED_FETCH_LEADS);
    ck_assert(!shared_fetch_may_refresh(fetches, &one, 100));
    ck_assert(shared_fetch_may_refresh(fetches, &two, 100));
    ck_assert_int_eq(shared_fetch_join(fetches, &two, 100, &second), SHARED_FETCH_LEADS);
    shared_fetch_finish(&first, SHARED_FETCH_UNSTORED, 100, NULL);
    shared_fetch_finish(&second, SHARED_FETCH_STORED, 100, NULL);
    ck_assert_int_eq(shared_fetch_join(fetches, &one, 100, &first), SHARED_FETCH_ALONE);
    ck_assert_int_eq(shared_fetch_join(fetches, &two, 100, &second), SHARED_FETCH_LEADS);
    shared_fetch_finish(&second, SHARED_FETCH_STORED, 100, NULL);
    shared_fetch_note_failure(fetches, &one, 100, 60);
    ck_assert(!shared_fetch_may_refresh(fetches, &one, 100));
    ck_assert(shared_fetch_may_refresh(fetches, &two, 100));
    shared_fetch_note_success(fetches, &two);
    ck_assert(!shared_fetch_may_refresh(fetches, &one, 100));
    shared_fetches_free(&fetches);
}
END_TEST

Suite *name_suite(void) {
    const TTest *const tests[] = {
        forged_urls_have_keys_of_their_own, keys_are_of_the_secret, tables_have_a_secret,
        names_of_one_key_in_memory,         variants_of_one_key,    flights_of_one_key,
    };
    return suite_of("name", tests, COUNT_OF(tests));
}
