/* Volumes: what is written is read, removed and replaced; the ring turns; lists of purges. */
#include "volume_bench.h"

#include <unistd.h>

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

static struct purge_log the_log, found;

/* As a restart finds them. */
static void read_purges(void) {
    purge_log_release(&found);
    purge_log_init(&found);
    volume_read_purges(the_volume, &found);
}

static void start_purges(const char *name) {
    start_volume(name);
    purge_log_init(&the_log);
    purge_log_init(&found);
    read_purges();
}

static void stop_purges(void) {
    purge_log_release(&the_log);
    purge_log_release(&found);
    stop_volume();
}

static bool rewrite_purges(void) {
    struct purge_slots all = {0};
    purge_log_sum_up(&the_log, 0, volume_purges_room(the_volume), &all);
    bool kept = volume_rewrite_purges(the_volume, &all, purge_log_floor(&the_log),
                                      purge_log_newest(&the_log));
    purge_slots_release(&all);
    return kept;
}

/* By so many prefixes, as one call. */
static bool purge(const char *text, unsigned count) {
    struct purge_slots slots = {0};
    char prefix[100];
    for (unsigned i = 0; i < count; i++) {
        snprintf(prefix, sizeof prefix, "http://%s/%u/", text, i);
        struct object_filter filter = {.prefix = slice_from(prefix)};
        purge_log_add(&the_log, &filter, PURGE_REMOVE, &slots);
    }
    bool kept =
        volume_append_purges(the_volume, &slots, 0, purge_log_newest(&the_log)) || rewrite_purges();
    purge_slots_release(&slots);
    return kept;
}

static bool is_purged(const char *url, uint64_t number) {
    struct object *object = make_object(url, 1, 10);
    bool purged = purge_log_judge(&found, object, number) != PURGE_NOTHING;
    object_release(&object);
    return purged;
}

/* Of a purge that was kept, and nothing else is. */
static bool has_purge(const char *text, unsigned number) {
    char url[100];
    snprintf(url, sizeof url, "http://%s/%u/x", text, number);
    return is_purged(url, 0) && !is_purged("http://others/", 0) &&
           !is_purged(url, purge_log_newest(&found));
}

START_TEST(purges_have_a_twin) {
    start_purges("purges");
    ck_assert_uint_eq(purge_log_newest(&found), 0);
    ck_assert(purge("one", 1));
    ck_assert(purge("two", 50));
    restart_volume();
    read_purges();
    ck_assert(has_purge("one", 0) && has_purge("two", 49));
    ck_assert_uint_eq(purge_log_newest(&found), purge_log_newest(&the_log));
    ck_assert(purge("three", 1));
    read_purges();
    ck_assert(has_purge("one", 0) && has_purge("two", 49) && has_purge("three", 0));
    ck_assert(purge("four", 1));
    /* Where one is damaged, its twin is there. */
    uint64_t area = VOLUME_HEADER_SIZE + the_volume->purges.area * 2 * PURGES_LEAST;
    unsigned last = the_volume->purges.used - 1;
    overwrite(area, 200);
    read_purges();
    ck_assert(has_purge("one", 0) && has_purge("four", 0));
    ck_assert_uint_eq(atomic_load(&the_volume->count.corrupt), 0);
    /* Without that what the purges before the next ones concern counts as purged. */
    log_set_level(LOG_LEVEL_ERROR + 1);
    overwrite(area + PURGE_SECTOR, 200);
    overwrite(area + PURGE_SECTOR + PURGES_LEAST, 200);
    read_purges();
    ck_assert(is_purged("http://others/", 0));
    ck_assert_uint_le(purge_log_floor(&found), purge_log_newest(&the_log));
    ck_assert_uint_eq(atomic_load(&the_volume->count.corrupt), 1);
    overwrite(area + last * PURGE_SECTOR, 200);
    overwrite(area + last * PURGE_SECTOR + PURGES_LEAST, 200);
    read_purges();
    ck_assert_uint_gt(purge_log_floor(&found), purge_log_newest(&the_log));
    ck_assert_uint_eq(purge_log_floor(&found), purge_log_newest(&found));
    /* Once written anew, it is whole. */
    ck_assert(purge("five", 1));
    read_purges();
    ck_assert(has_purge("one", 0) && has_purge("five", 0));
    stop_purges();
}
END_TEST

START_TEST(a_lost_beginning_costs_all_once) {
    log_set_level(LOG_LEVEL_ERROR + 1);
    start_purges("purges_begin");
    ck_assert(purge("one", 1));
    uint64_t area = VOLUME_HEADER_SIZE + the_volume->purges.area * 2 * PURGES_LEAST;
    overwrite(area, 200);
    overwrite(area + PURGES_LEAST, 200);
    read_purges();
    uint64_t floor = purge_log_floor(&found);
    ck_assert_uint_gt(floor, purge_log_newest(&the_log));
    for (unsigned round = 0; round < 2; round++) {
        ck_assert(purge("two", 1));
        read_purges();
        ck_assert_uint_eq(purge_log_floor(&found), 0);
        ck_assert(has_purge("two", 0));
    }
    stop_purges();
}
END_TEST

START_TEST(purges_that_were_not_written_leave_the_others) {
    log_set_level(LOG_LEVEL_ERROR + 1);
    start_purges("purges_fail");
    ck_assert(purge("one", 1));
    fail_behind(100);
    ck_assert(!purge("two", 1));
    fail_behind(0);
    read_purges();
    ck_assert(has_purge("one", 0));
    ck_assert(purge("three", 1));
    read_purges();
    ck_assert(has_purge("one", 0) && has_purge("two", 0) && has_purge("three", 0));
    stop_purges();
}
END_TEST

enum { PURGES_ALL = PURGES_AREAS * PURGES_LEAST };

static char *purges_image(void) {
    char *image = malloc(PURGES_ALL);
    ck_assert_int_eq(pread(the_volume->fd, image, PURGES_ALL, VOLUME_HEADER_SIZE), PURGES_ALL);
    return image;
}

/* Sectors that a write had reached, in any order, when the machine stopped. */
static void lay_mixture(const char *before, const char *after, unsigned seed) {
    char *image = malloc(PURGES_ALL);
    for (size_t at = 0; at < PURGES_ALL; at += PURGE_SECTOR) {
        seed = seed * 1103515245u + 12345u;
        memcpy(image + at, ((seed >> 16) % 3 == 0 ? before : after) + at, PURGE_SECTOR);
    }
    ck_assert_int_eq(pwrite(the_volume->fd, image, PURGES_ALL, VOLUME_HEADER_SIZE), PURGES_ALL);
    free(image);
}

/* Those that it had reached in order, and the last one of these in part or as a whole. */
static void lay_beginning(const char *before, const char *after, unsigned sectors) {
    char *image = malloc(PURGES_ALL);
    memcpy(image, before, PURGES_ALL);
    for (size_t at = 0; at < PURGES_ALL && sectors > 0; at += PURGE_SECTOR)
        if (memcmp(image + at, after + at, PURGE_SECTOR) != 0) {
            memcpy(image + at, after + at, PURGE_SECTOR);
            sectors--;
        }
    ck_assert_int_eq(pwrite(the_volume->fd, image, PURGES_ALL, VOLUME_HEADER_SIZE), PURGES_ALL);
    free(image);
}

/* Both kinds of writes. What was answered before is there, and nothing is lost. */
START_TEST(purges_outlive_a_stop_at_any_moment) {
    start_purges("purges_stop");
    for (unsigned writes = 0, changes = 0; changes < 3; writes++) {
        char name[30], *before = purges_image();
        unsigned area = the_volume->purges.area;
        snprintf(name, sizeof name, "%u", writes % 50);
        ck_assert(purge(name, 100));
        bool changed = area != the_volume->purges.area;
        changes += changed;
        char *after = purges_image();
        struct volume_purges kept = the_volume->purges;
        for (unsigned stop = 0; writes > 0 && (changed || writes < 5) && stop < 30; stop++) {
            snprintf(name, sizeof name, "%u", (writes - 1) % 50);
            if (stop % 2 == 0)
                lay_mixture(before, after, stop);
            else
                lay_beginning(before, after, stop * (changed ? 37 : 1));
            read_purges();
            ck_assert_msg(has_purge("0", 0) && has_purge(name, 99) && purge_log_floor(&found) == 0,
                          "write %u, stop %u", writes, stop);
        }
        ck_assert_int_eq(pwrite(the_volume->fd, after, PURGES_ALL, VOLUME_HEADER_SIZE), PURGES_ALL);
        the_volume->purges = kept;
        free(before);
        free(after);
    }
    stop_purges();
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
        purges_have_a_twin,
        a_lost_beginning_costs_all_once,
        purges_that_were_not_written_leave_the_others,
        purges_outlive_a_stop_at_any_moment,
        the_oldest_number_is_known,
        another_size_starts_empty,
        a_volume_has_one_user,
        threads_get_along,
    };
    return suite_of("disk_volume", tests, COUNT_OF(tests));
}
