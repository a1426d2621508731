/* Bodies that pass by on their way to a volume. */
#include "volume_bench.h"

START_TEST(streams_are_found_when_they_are_whole) {
    static const size_t sizes[] = {0, 1000, LARGE, 2500000};
    start_volume("stream");
    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        struct volume_stream *stream = open_stream(numbered_url(i), sizes[i]);
        put_bytes(stream, numbered_url(i), 1, 0, sizes[i]);
        volume_flush(the_volume);
        ck_assert_uint_eq(count_of_url(numbered_url(i)), 0);
        volume_stream_close(&stream, true);
        ck_assert_ptr_null(stream);
        volume_flush(the_volume);
        ck_assert(has_object(numbered_url(i), 1, sizes[i]));
    }
    restart_volume();
    for (unsigned i = 0; i < COUNT_OF(sizes); i++)
        ck_assert(has_object(numbered_url(i), 1, sizes[i]));
    stop_volume();
}
END_TEST

START_TEST(streams_that_break_off_are_not) {
    start_volume("stream_short");
    store_object("http://a/", 1, 1000);
    for (unsigned i = 0; i < 60; i++) {
        struct volume_stream *stream = open_stream(numbered_url(i), LARGE);
        put_bytes(stream, numbered_url(i), 1, 0,
                  i % 3 == 0   ? LARGE
                  : i % 3 == 1 ? LARGE - 1
                               : LARGE + 1);
        volume_stream_close(&stream, i % 3 != 0);
        volume_flush(the_volume);
        ck_assert_uint_eq(count_of_url(numbered_url(i)), 0);
    }
    ck_assert(has_object("http://a/", 1, 1000)); /* they have not used up the ring */
    struct volume_stream *stream = open_stream("http://killed/", LARGE);
    put_bytes(stream, "http://killed/", 1, 0, LARGE);
    volume_flush(the_volume);
    restart_volume(); /* in the middle of it */
    ck_assert_uint_eq(count_of_url("http://killed/"), 0);
    ck_assert_uint_eq(disk_index_count(the_volume->index), 1);
    stop_volume();
}
END_TEST

/* The writer is not there: everything waits. */
START_TEST(what_broke_off_while_it_waited_is_not_written) {
    start_volume("stream_in_vain");
    volume_stop(the_volume);
    uint64_t before = the_volume->count.bytes_written;
    struct volume_stream *stream = open_stream("http://a/", LARGE);
    put_bytes(stream, "http://a/", 1, 0, LARGE / 2);
    volume_stream_close(&stream, false);
    the_volume->stopping = false;
    ck_assert(volume_start(the_volume));
    volume_flush(the_volume);
    ck_assert_uint_eq(the_volume->count.bytes_written, before);
    ck_assert_uint_eq(the_volume->passing, 0);
    stop_volume();
}
END_TEST

START_TEST(streams_that_wait_leave_room_for_others) {
    enum { SHORT = 100000, STREAMS = 20 };
    struct volume_stream *streams[STREAMS];
    unsigned found = 0;
    start_volume("stream_wait");
    the_settings.write_queue = 10 * SHORT;
    for (unsigned i = 0; i < STREAMS; i++) {
        streams[i] = open_stream(numbered_url(i), SHORT);
        volume_flush(the_volume);
        put_bytes(streams[i], numbered_url(i), 1, 0, SHORT);
    }
    volume_flush(the_volume);
    store_object("http://a/", 1, SHORT);
    volume_flush(the_volume);
    ck_assert(has_object("http://a/", 1, SHORT));
    for (unsigned i = 0; i < STREAMS; i++)
        volume_stream_close(&streams[i], true);
    volume_flush(the_volume);
    for (unsigned i = 0; i < STREAMS; i++)
        found += has_object(numbered_url(i), 1, SHORT);
    ck_assert_uint_ge(found, 4);
    ck_assert_uint_le(found, 5);
    ck_assert_uint_eq(the_volume->gathered, 0);
    ck_assert_uint_eq(the_volume->count.dropped, STREAMS - found);
    stop_volume();
}
END_TEST

START_TEST(a_removal_reaches_what_streams) {
    start_volume("stream_removed");
    for (unsigned i = 0; i < 3; i++) {
        const char *url = numbered_url(i);
        struct volume_stream *stream = open_stream(url, LARGE);
        put_bytes(stream, url, 1, 0, 1000);
        if (i == 1)
            volume_flush(the_volume);
        ck_assert_uint_eq(volume_remove(the_volume, key_of_url(url), i == 2 ? 7 : DISK_ANY_VARIANT),
                          i == 2 ? 0 : 1);
        put_bytes(stream, url, 1, 1000, LARGE);
        volume_stream_close(&stream, true);
        volume_flush(the_volume);
        ck_assert_uint_eq(count_of_url(url), i == 2);
    }
    restart_volume();
    ck_assert_uint_eq(disk_index_count(the_volume->index), 1);
    stop_volume();
}
END_TEST

/* A stream's segment is older than what was written while it went on; and a response that came
 * after it had begun is newer than it, whichever is whole first. */
START_TEST(what_came_last_counts) {
    start_volume("serials");
    struct volume_stream *first = open_stream("http://first/", LARGE);
    struct volume_stream *last = open_stream("http://last/", LARGE);
    put_bytes(first, "http://first/", 1, 0, LARGE);
    put_bytes(last, "http://last/", 1, 0, LARGE);
    store_object("http://last/", 2, 1000);
    volume_stream_close(&first, true);
    volume_flush(the_volume);
    store_object("http://first/", 2, 1000);
    for (unsigned i = 0; i < 10; i++)
        store_object(numbered_url(i), 1, 400 * 1000);
    volume_stream_close(&last, true);
    volume_flush(the_volume);
    for (unsigned round = 0; round < 3; round++) {
        ck_assert(has_object("http://first/", 2, 1000));
        ck_assert(has_object("http://last/", 2, 1000));
        restart_volume();
    }
    stop_volume();
}
END_TEST

START_TEST(what_finds_no_room_costs_nothing_else) {
    struct volume_stream *streams[4];
    start_volume("room");
    for (unsigned i = 0; i < 4; i++) {
        streams[i] = open_stream(numbered_url(1000 + i), LARGE);
        for (unsigned j = 0; j < 12 && i < 3; j++)
            store_object(numbered_url(i * 12 + j), 1, 400 * 1000);
        volume_flush(the_volume);
    }
    uint64_t count = disk_index_count(the_volume->index);
    ck_assert_uint_gt(count, 20);
    store_object("http://huge/", 1, 12 << 20); /* there are never seven together */
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of_url("http://huge/"), 0);
    ck_assert_uint_eq(disk_index_count(the_volume->index), count);
    for (unsigned i = 0; i < 4; i++)
        volume_stream_close(&streams[i], false);
    stop_volume();
}
END_TEST

Suite *disk_stream_suite(void) {
    const TTest *tests[] = {
        streams_are_found_when_they_are_whole,
        streams_that_break_off_are_not,
        what_broke_off_while_it_waited_is_not_written,
        streams_that_wait_leave_room_for_others,
        a_removal_reaches_what_streams,
        what_came_last_counts,
        what_finds_no_room_costs_nothing_else,
    };
    return suite_of("disk_stream", tests, COUNT_OF(tests));
}
