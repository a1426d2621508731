/* The index of a volume: variants, replacement, segments that go, marks, walks and its memory. */
#include "suites.h"

#include "disk/index.h"

enum { SEGMENTS = 64, BLOCKS = 1 << 16, MOST = 64, VARIANTS = 32 };

static struct disk_index *the_index;

/* Keys spread as hashes do. */
static uint64_t key_of(uint64_t number) {
    return (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void put(uint64_t key, uint32_t variant, uint32_t segment, uint32_t block) {
    struct disk_place place = {
        .variant = variant,
        .at = segment * BLOCKS + block,
        .blocks = 3,
        .segment = segment,
    };
    disk_index_put(the_index, key, &place);
}

static unsigned count_of(uint64_t key) {
    struct disk_place places[MOST];
    return disk_index_find(the_index, key, places, MOST);
}

static void start(void) {
    the_index = disk_index_new(SEGMENTS, BLOCKS, VARIANTS);
}

static void stop(void) {
    disk_index_free(&the_index);
    ck_assert_ptr_null(the_index);
}

START_TEST(variants_stand_side_by_side) {
    struct disk_place places[MOST];
    start();
    put(7, 1, 0, 2);
    put(7, 2, 1, 5);
    put(7 + 16, 1, 1, 9); /* of the same shard */
    ck_assert_uint_eq(disk_index_find(the_index, 7, places, MOST), 2);
    ck_assert_uint_eq(places[0].variant, 2);
    ck_assert_uint_eq(places[0].segment, 1);
    ck_assert_uint_eq(places[0].at, BLOCKS + 5);
    ck_assert_uint_eq(places[0].blocks, 3);
    ck_assert_uint_eq(places[1].variant, 1);
    ck_assert_uint_eq(disk_index_find(the_index, 7, places, 1), 1);
    put(7, 1, 2, 2);
    ck_assert_uint_eq(disk_index_find(the_index, 7, places, MOST), 2);
    ck_assert_uint_eq(places[0].segment, 2);
    ck_assert_uint_eq(disk_index_count(the_index), 3);
    stop();
}
END_TEST

START_TEST(too_many_variants_lose_the_oldest) {
    struct disk_place places[MOST];
    start();
    for (uint32_t variant = 1; variant <= VARIANTS + 10; variant++)
        put(7, variant, variant % SEGMENTS, 2);
    ck_assert_uint_eq(disk_index_find(the_index, 7, places, MOST), VARIANTS);
    for (unsigned i = 0; i < VARIANTS; i++)
        ck_assert_uint_eq(places[i].variant, VARIANTS + 10 - i);
    ck_assert_uint_eq(disk_index_count(the_index), VARIANTS);
    put(7, 15, 0, 9); /* it was there */
    ck_assert_uint_eq(count_of(7), VARIANTS);
    stop();
}
END_TEST

/* Variants whose names are the same are for different requests; the others may have to go. */
START_TEST(what_is_replaced_soon_is_hidden) {
    enum { OTHER_NAMES = 5u << DISK_VARIANT_VALUE_BITS };
    start();
    put(7, 1, 0, 2);
    put(7, 1 | DISK_RENEWAL, 0, 5);
    put(7, 2, 0, 8);
    put(7, OTHER_NAMES | 1, 1, 2);
    put(8, 1, 1, 5);
    disk_index_hide(the_index, 7, 1, true);
    ck_assert_uint_eq(count_of(7), 1);
    ck_assert_uint_eq(count_of(8), 1);
    ck_assert(!disk_index_has_place(the_index, 7, 2));
    disk_index_show(the_index, 7, OTHER_NAMES | 1);
    ck_assert_uint_eq(count_of(7), 2);
    put(7, 1, 2, 2); /* in the place of what is hidden, with what renewed that */
    ck_assert_uint_eq(count_of(7), 3);
    ck_assert_uint_eq(disk_index_count(the_index), 4);
    disk_index_hide(the_index, 7, 1, false);
    ck_assert_uint_eq(count_of(7), 2);
    disk_index_drop_segment(the_index, 1);
    ck_assert_uint_eq(disk_index_count(the_index), 2);
    stop();
}
END_TEST

START_TEST(removal_is_of_a_variant_or_all) {
    start();
    for (uint32_t variant = 1; variant <= 5; variant++)
        put(7, variant, 0, variant);
    ck_assert_uint_eq(disk_index_remove(the_index, 7, 3), 1);
    ck_assert_uint_eq(disk_index_remove(the_index, 7, 3), 0);
    ck_assert_uint_eq(count_of(7), 4);
    ck_assert(disk_index_has_place(the_index, 7, 4));
    ck_assert(disk_index_remove_place(the_index, 7, 4));
    ck_assert(!disk_index_remove_place(the_index, 7, 4));
    ck_assert(!disk_index_has_place(the_index, 7, 4));
    ck_assert_uint_eq(disk_index_remove(the_index, 7, DISK_ANY_VARIANT), 3);
    ck_assert_uint_eq(disk_index_remove(the_index, 8, DISK_ANY_VARIANT), 0);
    ck_assert_uint_eq(disk_index_count(the_index), 0);
    stop();
}
END_TEST

struct seen {
    unsigned count, marked;
};

static void see(void *arg, uint64_t key, const struct disk_place *place, bool marked) {
    struct seen *seen = arg;
    ck_assert_uint_eq(key, key_of(place->at % BLOCKS));
    seen->count++;
    seen->marked += marked;
}

START_TEST(a_segment_goes_at_once) {
    struct seen seen = {0};
    start();
    for (uint32_t i = 0; i < 1000; i++)
        put(key_of(i), 1, i % 4, i);
    disk_index_mark(the_index, key_of(6), 2 * BLOCKS + 6);
    disk_index_mark(the_index, key_of(5), 2 * BLOCKS + 6); /* is not there */
    disk_index_remove(the_index, key_of(2), 1);
    put(key_of(10), 1, 3, 10); /* moved out of it */
    disk_index_each_in(the_index, 2, see, &seen);
    ck_assert_uint_eq(seen.count, 248);
    ck_assert_uint_eq(seen.marked, 1);
    disk_index_drop_segment(the_index, 2);
    ck_assert_uint_eq(disk_index_count(the_index), 999 - 248);
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(count_of(key_of(i)), i % 4 == 2 && i != 10 ? 0 : 1);
    disk_index_drop_segment(the_index, 2);
    stop();
}
END_TEST

START_TEST(places_of_entries_are_used_again) {
    start();
    uint64_t memory = 0;
    for (uint32_t round = 0; round < 50; round++) {
        uint32_t segment = round % SEGMENTS;
        disk_index_drop_segment(the_index, segment);
        for (uint32_t i = 0; i < 5000; i++)
            put(key_of(round * 5000 + i), 1, segment, i);
        if (round >= 1)
            disk_index_drop_segment(the_index, (round - 1) % SEGMENTS);
        if (round == 2)
            memory = disk_index_memory(the_index);
    }
    ck_assert_uint_eq(disk_index_memory(the_index), memory);
    ck_assert_uint_eq(disk_index_count(the_index), 5000);
    stop();
}
END_TEST

START_TEST(a_walk_sees_what_is_there) {
    uint64_t position = 0, keys[7];
    struct disk_place places[7];
    char *seen = calloc(1, 5000);
    unsigned got, count = 0;
    start();
    for (uint32_t i = 0; i < 5000; i++)
        put(key_of(i), 1, i % SEGMENTS, i);
    for (uint32_t i = 0; i < 5000; i += 10)
        disk_index_remove(the_index, key_of(i), 1);
    disk_index_drop_segment(the_index, 1);
    while ((got = disk_index_walk(the_index, &position, keys, places, 7)) > 0)
        for (unsigned i = 0; i < got; i++, count++) {
            uint32_t number = places[i].at % BLOCKS;
            ck_assert_uint_eq(keys[i], key_of(number));
            ck_assert(number % 10 != 0 && number % SEGMENTS != 1 && seen[number]++ == 0);
        }
    ck_assert_uint_eq(count, disk_index_count(the_index));
    free(seen);
    stop();
}
END_TEST

START_TEST(a_million_take_32_bytes_each) {
    enum { MANY = 1000000 };
    start();
    for (uint32_t i = 0; i < MANY; i++)
        put(key_of(i), 1, i / (MANY / SEGMENTS) % SEGMENTS, i % BLOCKS);
    ck_assert_uint_eq(disk_index_count(the_index), MANY);
    ck_assert_uint_le(disk_index_memory(the_index), (uint64_t)MANY * 32);
    for (uint32_t i = 0; i < MANY; i += 997)
        ck_assert_uint_eq(count_of(key_of(i)), 1);
    ck_assert_uint_eq(count_of(key_of(MANY)), 0);
    stop();
}
END_TEST

Suite *disk_index_suite(void) {
    const TTest *tests[] = {
        what_is_replaced_soon_is_hidden,
        variants_stand_side_by_side,
        too_many_variants_lose_the_oldest,
        removal_is_of_a_variant_or_all,
        a_segment_goes_at_once,
        places_of_entries_are_used_again,
        a_walk_sees_what_is_there,
        a_million_take_32_bytes_each,
    };
    return suite_of("disk_index", tests, COUNT_OF(tests));
}
