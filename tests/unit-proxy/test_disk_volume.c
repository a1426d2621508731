/* Volumes: what is written is read, removed and replaced; the ring turns; lists of purges. */
#include "volume_bench.h"

START_TEST(what_is_stored_is_read) {
    static const size_t sizes[] = {0, 1, 511, 100000, 262144, LARGE, 3000000};
    start_volume("stored");
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; round == 0 && i < COUNT_OF(sizes); i++)
            store_object(numbered_url(i), 1, sizes[i]);
        volume_flush(the_volume);
        for (unsigned i = 0; i < COUNT_OF(sizes); i++)
            ck_assert(has_object(numbered_url(i), 1, sizes[i]));
        ck_assert_uint_eq(count_of_url("http://a/nothing"), 0);
        struct object *small = read_object(numbered_url(3)), *large = read_object(numbered_url(5));
        ck_assert_int_eq(small->body->kind, BODY_HELD);
        ck_assert_int_eq(large->body->kind, BODY_BACKED);
        ck_assert_int_eq(object_freshness(small).lifetime, 60);
        object_release(&small);
        object_release(&large);
        restart_volume();
    }
    stop_volume();
}
END_TEST

START_TEST(variants_are_apart) {
    start_volume("variants");
    for (uint32_t variant = 1; variant <= 3; variant++)
        store_variant("http://v/", variant, variant, variant == 2 ? LARGE : 10);
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of_url("http://v/"), 3);
    ck_assert_uint_eq(volume_remove(the_volume, key_of_url("http://v/"), 2), 1);
    ck_assert_uint_eq(count_of_url("http://v/"), 2);
    restart_volume();
    ck_assert_uint_eq(count_of_url("http://v/"), 2);
    ck_assert_uint_eq(volume_remove(the_volume, key_of_url("http://v/"), DISK_ANY_VARIANT), 2);
    restart_volume();
    ck_assert_uint_eq(count_of_url("http://v/"), 0);
    stop_volume();
}
END_TEST

START_TEST(the_removed_and_the_replaced_do_not_come_back) {
    start_volume("removed");
    for (unsigned i = 0; i < 10; i++)
        store_object(numbered_url(i), 1, i % 2 == 0 ? 1000 : LARGE);
    volume_flush(the_volume);
    for (unsigned i = 0; i < 10; i += 3)
        ck_assert_uint_eq(volume_remove(the_volume, key_of_url(numbered_url(i)), DISK_ANY_VARIANT),
                          1);
    for (unsigned i = 1; i < 10; i += 3)
        store_object(numbered_url(i), 2, i % 2 == 0 ? LARGE : 1000);
    volume_flush(the_volume);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 10; i++) {
            if (i % 3 == 0)
                ck_assert_uint_eq(count_of_url(numbered_url(i)), 0);
            else if (i % 3 == 1)
                ck_assert(has_object(numbered_url(i), 2, i % 2 == 0 ? LARGE : 1000));
            else
                ck_assert(has_object(numbered_url(i), 1, i % 2 == 0 ? 1000 : LARGE));
        }
        restart_volume();
    }
    stop_volume();
}
END_TEST

/* The writer is not there: everything waits. */
START_TEST(what_waits_can_be_removed) {
    start_volume("waits");
    volume_stop(the_volume);
    store_object("http://a/", 1, 1000);
    store_object("http://b/", 1, 1000);
    ck_assert_uint_eq(volume_remove(the_volume, key_of_url("http://a/"), DISK_ANY_VARIANT), 1);
    ck_assert_uint_eq(volume_remove(the_volume, key_of_url("http://a/"), DISK_ANY_VARIANT), 0);
    the_volume->stopping = false;
    ck_assert(volume_start(the_volume));
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of_url("http://a/"), 0);
    ck_assert(has_object("http://b/", 1, 1000));
    stop_volume();
}
END_TEST

START_TEST(what_is_left_out_takes_the_old_one_with_it) {
    start_volume("left_out");
    store_object("http://a/", 1, 1000);
    volume_flush(the_volume);
    volume_stop(the_volume);
    the_settings.write_queue = 3000;
    store_object("http://b/", 1, 2000);
    store_object("http://a/", 2, 2000);
    ck_assert_uint_eq(count_of_url("http://a/"), 0);
    the_volume->stopping = false;
    ck_assert(volume_start(the_volume));
    volume_flush(the_volume);
    restart_volume();
    ck_assert_uint_eq(count_of_url("http://a/"), 0);
    ck_assert(has_object("http://b/", 1, 2000));
    stop_volume();
}
END_TEST

START_TEST(one_larger_than_the_queue_may_be_is_written) {
    start_volume("queue");
    the_settings.write_queue = 1000;
    store_object("http://a/", 1, 100000);
    volume_flush(the_volume);
    ck_assert(has_object("http://a/", 1, 100000));
    stop_volume();
}
END_TEST

START_TEST(the_oldest_goes_when_the_ring_turns) {
    start_volume("ring");
    turn_the_ring(0);
    ck_assert_uint_eq(count_of_url(numbered_url(0)), 0);
    ck_assert(has_object(numbered_url(79), 1, 400 * 1000));
    ck_assert_uint_gt(units_left, 0);
    uint64_t count = disk_index_count(the_volume->index);
    ck_assert_uint_gt(count, 50);
    restart_volume();
    ck_assert_uint_eq(disk_index_count(the_volume->index), count);
    for (unsigned i = 0; i < 80; i++)
        ck_assert(count_of_url(numbered_url(i)) == 0 || has_object(numbered_url(i), 1, 400 * 1000));
    stop_volume();
}
END_TEST

START_TEST(what_was_used_is_written_again) {
    start_volume("used");
    store_object("http://used/", 1, 1000);
    store_object("http://purged/!", 1, 1000);
    store_object("http://unused/", 1, 1000);
    volume_flush(the_volume);
    for (unsigned round = 0; round < 3; round++) {
        ck_assert(has_object("http://used/", 1, 1000));
        if (round == 0)
            ck_assert(has_object("http://purged/!", 1, 1000));
        turn_the_ring(round * 100);
    }
    ck_assert(has_object("http://used/", 1, 1000));
    ck_assert_uint_eq(count_of_url("http://unused/"), 0);
    ck_assert_uint_eq(count_of_url("http://purged/!"), 0);
    restart_volume();
    ck_assert(has_object("http://used/", 1, 1000));
    stop_volume();
}
END_TEST

/* Removed in one place, the record lies on in another until the ring comes there. */
START_TEST(removals_outlive_what_they_remove) {
    start_volume("outlive");
    store_object("http://a/", 1, 1000);
    for (unsigned i = 0; i < 40; i++)
        store_object(numbered_url(i), 1, 400 * 1000);
    volume_flush(the_volume);
    volume_remove(the_volume, key_of_url("http://a/"), DISK_ANY_VARIANT);
    for (unsigned i = 40; i < 160; i++) {
        store_object(numbered_url(i), 1, 400 * 1000);
        volume_flush(the_volume);
        if (i % 10 == 0)
            restart_volume();
        ck_assert_uint_eq(count_of_url("http://a/"), 0);
    }
    stop_volume();
}
END_TEST

START_TEST(a_body_in_use_is_not_written_over) {
    start_volume("pinned");
    store_object("http://large/", 1, LARGE);
    volume_flush(the_volume);
    struct object *object = read_object("http://large/");
    ck_assert_ptr_nonnull(object);
    turn_the_ring(0);
    turn_the_ring(100);
    ck_assert_uint_eq(count_of_url("http://large/"), 0);
    ck_assert(is_body_right(object->body, "http://large/", 1, LARGE));
    object_release(&object);
    stop_volume();
}
END_TEST

START_TEST(all_in_use_is_no_endless_loop) {
    struct object *objects[15];
    start_volume("all_pinned");
    for (unsigned i = 0; i < 15; i++)
        store_object(numbered_url(i), 1, LARGE);
    volume_flush(the_volume);
    for (unsigned i = 0; i < 15; i++)
        objects[i] = read_object(numbered_url(i));
    unsigned before = units_left;
    store_object("http://no/", 1, LARGE);
    store_object("http://room/", 1, 1000);
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of_url("http://no/") + count_of_url("http://room/"), 0);
    ck_assert_uint_gt(the_volume->count.dropped, 0);
    /* Those that come into memory late are asked to go again. */
    ck_assert_uint_gt(units_left - before, 15);
    for (unsigned i = 0; i < 15; i++) {
        ck_assert(is_body_right(objects[i]->body, numbered_url(i), 1, LARGE));
        object_release(&objects[i]);
    }
    store_object("http://room/", 1, 1000);
    volume_flush(the_volume);
    ck_assert(has_object("http://room/", 1, 1000));
    stop_volume();
}
END_TEST

/* Else each would leave two thirds of a segment of its own empty. */
START_TEST(records_of_a_third_share_segments) {
    enum { THIRD = SEGMENT / 3, COUNT = SIZE / SEGMENT + 8 };
    start_volume("thirds");
    for (unsigned i = 0; i < COUNT; i++) {
        store_object(numbered_url(i), 1, THIRD);
        volume_flush(the_volume);
    }
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < COUNT; i++)
            ck_assert(has_object(numbered_url(i), 1, THIRD));
        restart_volume();
    }
    stop_volume();
}
END_TEST

START_TEST(runs_of_segments_go_round) {
    start_volume("runs");
    for (unsigned i = 0; i < 40; i++) {
        store_object(numbered_url(i), 1, i % 3 == 0 ? 1000 : 1500000 + 700000 * (i % 3));
        volume_flush(the_volume);
        ck_assert(has_object(numbered_url(i), 1, i % 3 == 0 ? 1000 : 1500000 + 700000 * (i % 3)));
        if (i % 7 == 0)
            restart_volume();
    }
    restart_volume();
    ck_assert(has_object(numbered_url(38), 1, 2900000));
    stop_volume();
}
END_TEST

/* Purges. */

static bool has_purges(const char *text, uint64_t newest) {
    uint64_t floor, found;
    struct slice slice = volume_read_purges(the_volume, &floor, &found);
    bool same = slice.base != NULL && slice_equal(slice, slice_from(text)) && found == newest;
    free((char *)slice.base);
    return same;
}

START_TEST(the_list_of_purges_has_a_twin) {
    uint64_t floor, newest;
    start_volume("purges");
    ck_assert_ptr_null(volume_read_purges(the_volume, &floor, &newest).base);
    ck_assert(volume_write_purges(the_volume, SLICE("one"), 0, 1));
    ck_assert(volume_write_purges(the_volume, SLICE("two"), 0, 2));
    restart_volume();
    ck_assert(has_purges("two", 2));
    ck_assert(volume_write_purges(the_volume, SLICE("three"), 0, 3));
    restart_volume();
    ck_assert(has_purges("three", 3));
    /* Where one is damaged, its twin is there; without that all counts as purged. */
    overwrite(VOLUME_HEADER_SIZE + 2 * PURGES_SIZE, 200);
    restart_volume();
    ck_assert(has_purges("three", 3));
    log_set_level(LOG_LEVEL_ERROR + 1);
    overwrite(VOLUME_HEADER_SIZE + 3 * PURGES_SIZE, 200);
    restart_volume();
    free((char *)volume_read_purges(the_volume, &floor, &newest).base);
    ck_assert_uint_gt(newest, 3);
    ck_assert_uint_eq(floor, newest);
    ck_assert_uint_gt(atomic_load(&the_volume->count.corrupt), 0);
    stop_volume();
}
END_TEST

START_TEST(a_list_that_was_not_written_leaves_the_other) {
    log_set_level(LOG_LEVEL_ERROR + 1);
    start_volume("purges_fail");
    ck_assert(volume_write_purges(the_volume, SLICE("one"), 0, 1));
    fail_behind(100);
    ck_assert(!volume_write_purges(the_volume, SLICE("two"), 0, 2));
    fail_behind(0);
    uint64_t sequence = the_volume->purges_sequence;
    ck_assert(volume_write_purges(the_volume, SLICE("three"), 0, 3));
    ck_assert_uint_eq(the_volume->purges_sequence, sequence + 1);
    overwrite(VOLUME_HEADER_SIZE, 200); /* as if torn */
    restart_volume();
    ck_assert(has_purges("three", 3));
    stop_volume();
}
END_TEST

static void store_with_events(const char *url, uint64_t events, size_t size) {
    struct object *object = make_object(url, 1, size);
    volume_store(the_volume, object, 1, events);
    object_release(&object);
    volume_flush(the_volume);
}

START_TEST(the_oldest_number_is_known) {
    start_volume("oldest");
    ck_assert_uint_eq(volume_oldest(the_volume), UINT64_MAX);
    store_with_events("http://a/", 7, 1000);
    store_with_events("http://b/", 5, LARGE);
    ck_assert_uint_eq(volume_oldest(the_volume), 5);
    restart_volume();
    ck_assert_uint_eq(volume_oldest(the_volume), 5);
    volume_remove(the_volume, key_of_url("http://b/"), DISK_ANY_VARIANT);
    volume_flush(the_volume);
    ck_assert_uint_eq(volume_oldest(the_volume), 7);
    stop_volume();
}
END_TEST

/* Opening. */

START_TEST(another_size_starts_empty) {
    start_volume("size");
    store_object("http://a/", 1, 1000);
    volume_flush(the_volume);
    volume_close(&the_volume);
    the_settings.size = SIZE + (4 << 20);
    open_volume();
    ck_assert(volume_start(the_volume));
    ck_assert_uint_eq(disk_index_count(the_volume->index), 0);
    stop_volume();
}
END_TEST

START_TEST(a_volume_has_one_user) {
    char error[SETTINGS_ERROR] = "";
    start_volume("user");
    ck_assert_ptr_null(volume_open(&the_settings, &the_hooks, error));
    ck_assert_ptr_nonnull(strstr(error, "in use"));
    stop_volume();
}
END_TEST

static void *remove_some(void *arg) {
    for (unsigned i = 0; i < 2000; i++)
        volume_remove(
            the_volume,
            key_of_url(((const char *const[]){"http://t/0", "http://t/1", "http://t/2"})[i % 3]),
            DISK_ANY_VARIANT);
    return arg;
}

START_TEST(threads_get_along) {
    pthread_t thread;
    start_volume("threads");
    ck_assert_int_eq(pthread_create(&thread, NULL, remove_some, NULL), 0);
    for (unsigned i = 0; i < 1000; i++) {
        char url[20];
        snprintf(url, sizeof url, "http://t/%u", i % 6);
        if (i % 5 == 4) {
            struct volume_stream *stream = open_stream(url, 50000);
            if (stream != NULL) /* else the last is still being written */
                put_bytes(stream, url, 1, 0, 50000);
            volume_stream_close(&stream, true);
        } else {
            store_object(url, 1, i % 2 == 0 ? 50000 : 1000);
        }
        struct object *object = read_object(url);
        object_release(&object);
    }
    pthread_join(thread, NULL);
    volume_remove(the_volume, key_of_url("http://t/0"), DISK_ANY_VARIANT);
    restart_volume();
    ck_assert_uint_eq(count_of_url("http://t/0"), 0);
    stop_volume();
}
END_TEST

Suite *disk_volume_suite(void) {
    const TTest *tests[] = {
        what_is_stored_is_read,
        variants_are_apart,
        the_removed_and_the_replaced_do_not_come_back,
        what_waits_can_be_removed,
        what_is_left_out_takes_the_old_one_with_it,
        one_larger_than_the_queue_may_be_is_written,
        the_oldest_goes_when_the_ring_turns,
        what_was_used_is_written_again,
        removals_outlive_what_they_remove,
        a_body_in_use_is_not_written_over,
        all_in_use_is_no_endless_loop,
        records_of_a_third_share_segments,
        runs_of_segments_go_round,
        the_list_of_purges_has_a_twin,
        a_list_that_was_not_written_leaves_the_other,
        the_oldest_number_is_known,
        another_size_starts_empty,
        a_volume_has_one_user,
        threads_get_along,
    };
    return suite_of("disk_volume", tests, COUNT_OF(tests));
}
