/* Volumes: what is written is read, removed, replaced and recovered; the ring turns; streams;
 * damage and failing writes. */
#include "suites.h"

#include "disk/reading.h"
#include "disk/segment.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 32 << 20, SEGMENT = SEGMENT_UNIT, LARGE = 1100 * 1000 };

static struct disk_settings the_settings;
static struct volume *the_volume;
static struct reads *the_reads;
static struct purge_log the_purges;
static unsigned left; /* how often bodies of a segment had to go */

static void leave(void *arg, struct volume *volume, uint32_t segment) {
    (void)arg;
    (void)volume;
    (void)segment;
    left++;
}

static bool outdated(void *arg, const struct record *record) {
    (void)arg;
    return record->url.length > 0 && record->url.base[record->url.length - 1] == '!';
}

static bool used(void *arg, uint64_t key) {
    (void)arg;
    (void)key;
    return false;
}

static const struct volume_hooks hooks = {
    .max_variants = 32, .leave = leave, .outdated = outdated, .used = used};

static void open_volume(void) {
    char error[SETTINGS_ERROR] = "";
    the_volume = volume_open(&the_settings, &hooks, error);
    ck_assert_msg(the_volume != NULL, "%s", error);
}

static void start_of_size(const char *name, uint64_t size) {
    char *path;
    ck_assert(asprintf(&path, "%s/%s", scratch(), name) > 0);
    the_settings = (struct disk_settings){
        .path = path,
        .size = size,
        .max_object = size,
        .threads = 1,
        .write_queue = 64 << 20,
    };
    purge_log_init(&the_purges);
    the_reads = reads_new(1, false);
    open_volume();
    ck_assert(volume_start(the_volume));
}

static void start(const char *name) {
    start_of_size(name, SIZE);
}

/* What is not written is lost, as with a process that ends. */
static void restart(void) {
    volume_close(&the_volume);
    open_volume();
    ck_assert(volume_start(the_volume));
}

static void stop(void) {
    reads_free(&the_reads);
    volume_close(&the_volume);
    purge_log_release(&the_purges);
    unlink(the_settings.path);
    free(the_settings.path);
}

static struct cache_key key_of(const char *url) {
    return cache_key_of(slice_from(url));
}

/* Bytes that tell of which object, which version and from where in it they are. */
static char byte_of(const char *url, unsigned version, size_t at) {
    return (char)(key_of(url).low + version * 31 + at / 251 + at);
}

static struct object *make(const char *url, unsigned version, size_t size) {
    struct http_head request, response;
    struct freshness freshness = {.lifetime = 60, .response_time = time(NULL)};
    char *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_of(url, version, i);
    http_head_init(&request);
    http_head_init(&response);
    request.method_id = HTTP_METHOD_GET;
    response.version = 11;
    response.status = 200;
    response.reason = SLICE("OK");
    http_head_add(&response, SLICE("Content-Type"), SLICE("text/plain"));
    struct body *body = body_of_bytes(slice_make(bytes, size));
    struct object *object =
        object_new(key_of(url), slice_from(url), &request, &response, &freshness, body);
    body_release(&body);
    free(bytes);
    return object;
}

static void store_variant(const char *url, uint32_t variant, unsigned version, size_t size) {
    struct object *object = make(url, version, size);
    volume_store(the_volume, object, variant, 0);
    object_release(&object);
}

static void store(const char *url, unsigned version, size_t size) {
    store_variant(url, 1, version, size);
}

static unsigned count_of(const char *url) {
    struct disk_place places[64];
    return disk_index_find(the_volume->index, key_of(url).low, places, 64);
}

static struct object *read_place(const char *url, const struct disk_place *place) {
    struct reading reading;
    if (!reading_begin(&reading, the_volume, place, key_of(url).low))
        return NULL;
    while (reading_wants(&reading))
        reading_got(&reading, volume_read(the_volume, reading.offset, reading.bytes, reading.length,
                                          VOLUME_MAY_WAIT));
    return reading_end(&reading, the_reads, &the_purges, NULL);
}

static struct object *read_one(const char *url) {
    struct disk_place place;
    if (disk_index_find(the_volume->index, key_of(url).low, &place, 1) == 0)
        return NULL;
    return read_place(url, &place);
}

static bool is_body_right(struct body *body, const char *url, unsigned version, size_t size) {
    char *bytes = malloc(size + 1);
    bool right = body_length(body) == size && body_copy(body, 0, bytes, size);
    for (size_t i = 0; right && i < size; i++)
        right = bytes[i] == byte_of(url, version, i);
    free(bytes);
    return right;
}

/* It is there, once, and as it was. */
static bool has(const char *url, unsigned version, size_t size) {
    struct object *object = read_one(url);
    bool right = object != NULL && count_of(url) == 1 &&
                 slice_equal(object_url(object), slice_from(url)) &&
                 is_body_right(object->body, url, version, size);
    object_release(&object);
    return right;
}

static const char *url_of(unsigned number) {
    static char text[40];
    snprintf(text, sizeof text, "http://a/%u", number);
    return text;
}

/* So many small ones that every segment is used again. */
static void turn_the_ring(unsigned from) {
    for (unsigned i = 0; i < 80; i++) {
        store(url_of(from + i), 1, 400 * 1000);
        volume_flush(the_volume);
    }
}

START_TEST(what_is_stored_is_read) {
    static const size_t sizes[] = {0, 1, 511, 100000, 262144, LARGE, 3000000};
    start("stored");
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; round == 0 && i < COUNT_OF(sizes); i++)
            store(url_of(i), 1, sizes[i]);
        volume_flush(the_volume);
        for (unsigned i = 0; i < COUNT_OF(sizes); i++)
            ck_assert(has(url_of(i), 1, sizes[i]));
        ck_assert_uint_eq(count_of("http://a/nothing"), 0);
        struct object *small = read_one(url_of(3)), *large = read_one(url_of(5));
        ck_assert_int_eq(small->body->kind, BODY_HELD);
        ck_assert_int_eq(large->body->kind, BODY_BACKED);
        ck_assert_int_eq(object_freshness(small).lifetime, 60);
        object_release(&small);
        object_release(&large);
        restart();
    }
    stop();
}
END_TEST

START_TEST(variants_are_apart) {
    start("variants");
    for (uint32_t variant = 1; variant <= 3; variant++)
        store_variant("http://v/", variant, variant, variant == 2 ? LARGE : 10);
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of("http://v/"), 3);
    ck_assert_uint_eq(volume_remove(the_volume, key_of("http://v/"), 2), 1);
    ck_assert_uint_eq(count_of("http://v/"), 2);
    restart();
    ck_assert_uint_eq(count_of("http://v/"), 2);
    ck_assert_uint_eq(volume_remove(the_volume, key_of("http://v/"), DISK_ANY_VARIANT), 2);
    restart();
    ck_assert_uint_eq(count_of("http://v/"), 0);
    stop();
}
END_TEST

START_TEST(the_removed_and_the_replaced_do_not_come_back) {
    start("removed");
    for (unsigned i = 0; i < 10; i++)
        store(url_of(i), 1, i % 2 == 0 ? 1000 : LARGE);
    volume_flush(the_volume);
    for (unsigned i = 0; i < 10; i += 3)
        ck_assert_uint_eq(volume_remove(the_volume, key_of(url_of(i)), DISK_ANY_VARIANT), 1);
    for (unsigned i = 1; i < 10; i += 3)
        store(url_of(i), 2, i % 2 == 0 ? LARGE : 1000);
    volume_flush(the_volume);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 10; i++) {
            if (i % 3 == 0)
                ck_assert_uint_eq(count_of(url_of(i)), 0);
            else if (i % 3 == 1)
                ck_assert(has(url_of(i), 2, i % 2 == 0 ? LARGE : 1000));
            else
                ck_assert(has(url_of(i), 1, i % 2 == 0 ? 1000 : LARGE));
        }
        restart();
    }
    stop();
}
END_TEST

/* The writer is not there: everything waits. */
START_TEST(what_waits_can_be_removed) {
    start("waits");
    volume_stop(the_volume);
    store("http://a/", 1, 1000);
    store("http://b/", 1, 1000);
    ck_assert_uint_eq(volume_remove(the_volume, key_of("http://a/"), DISK_ANY_VARIANT), 1);
    ck_assert_uint_eq(volume_remove(the_volume, key_of("http://a/"), DISK_ANY_VARIANT), 0);
    the_volume->stopping = false;
    ck_assert(volume_start(the_volume));
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of("http://a/"), 0);
    ck_assert(has("http://b/", 1, 1000));
    stop();
}
END_TEST

START_TEST(what_is_left_out_takes_the_old_one_with_it) {
    start("left_out");
    store("http://a/", 1, 1000);
    volume_flush(the_volume);
    volume_stop(the_volume);
    the_settings.write_queue = 3000;
    store("http://b/", 1, 2000);
    store("http://a/", 2, 2000);
    ck_assert_uint_eq(count_of("http://a/"), 0);
    the_volume->stopping = false;
    ck_assert(volume_start(the_volume));
    volume_flush(the_volume);
    restart();
    ck_assert_uint_eq(count_of("http://a/"), 0);
    ck_assert(has("http://b/", 1, 2000));
    stop();
}
END_TEST

START_TEST(one_larger_than_the_queue_may_be_is_written) {
    start("queue");
    the_settings.write_queue = 1000;
    store("http://a/", 1, 100000);
    volume_flush(the_volume);
    ck_assert(has("http://a/", 1, 100000));
    stop();
}
END_TEST

START_TEST(the_oldest_goes_when_the_ring_turns) {
    start("ring");
    turn_the_ring(0);
    ck_assert_uint_eq(count_of(url_of(0)), 0);
    ck_assert(has(url_of(79), 1, 400 * 1000));
    ck_assert_uint_gt(left, 0);
    uint64_t count = disk_index_count(the_volume->index);
    ck_assert_uint_gt(count, 50);
    restart();
    ck_assert_uint_eq(disk_index_count(the_volume->index), count);
    for (unsigned i = 0; i < 80; i++)
        ck_assert(count_of(url_of(i)) == 0 || has(url_of(i), 1, 400 * 1000));
    stop();
}
END_TEST

START_TEST(what_was_used_is_written_again) {
    start("used");
    store("http://used/", 1, 1000);
    store("http://purged/!", 1, 1000);
    store("http://unused/", 1, 1000);
    volume_flush(the_volume);
    for (unsigned round = 0; round < 3; round++) {
        ck_assert(has("http://used/", 1, 1000));
        if (round == 0)
            ck_assert(has("http://purged/!", 1, 1000));
        turn_the_ring(round * 100);
    }
    ck_assert(has("http://used/", 1, 1000));
    ck_assert_uint_eq(count_of("http://unused/"), 0);
    ck_assert_uint_eq(count_of("http://purged/!"), 0);
    restart();
    ck_assert(has("http://used/", 1, 1000));
    stop();
}
END_TEST

/* Removed in one place, the record lies on in another until the ring comes there. */
START_TEST(removals_outlive_what_they_remove) {
    start("outlive");
    store("http://a/", 1, 1000);
    for (unsigned i = 0; i < 40; i++)
        store(url_of(i), 1, 400 * 1000);
    volume_flush(the_volume);
    volume_remove(the_volume, key_of("http://a/"), DISK_ANY_VARIANT);
    for (unsigned i = 40; i < 160; i++) {
        store(url_of(i), 1, 400 * 1000);
        volume_flush(the_volume);
        if (i % 10 == 0)
            restart();
        ck_assert_uint_eq(count_of("http://a/"), 0);
    }
    stop();
}
END_TEST

START_TEST(a_body_in_use_is_not_written_over) {
    start("pinned");
    store("http://large/", 1, LARGE);
    volume_flush(the_volume);
    struct object *object = read_one("http://large/");
    ck_assert_ptr_nonnull(object);
    turn_the_ring(0);
    turn_the_ring(100);
    ck_assert_uint_eq(count_of("http://large/"), 0);
    ck_assert(is_body_right(object->body, "http://large/", 1, LARGE));
    object_release(&object);
    stop();
}
END_TEST

START_TEST(all_in_use_is_no_endless_loop) {
    struct object *objects[15];
    start("all_pinned");
    for (unsigned i = 0; i < 15; i++)
        store(url_of(i), 1, LARGE);
    volume_flush(the_volume);
    for (unsigned i = 0; i < 15; i++)
        objects[i] = read_one(url_of(i));
    unsigned before = left;
    store("http://no/", 1, LARGE);
    store("http://room/", 1, 1000);
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of("http://no/") + count_of("http://room/"), 0);
    ck_assert_uint_gt(the_volume->count.dropped, 0);
    /* Those that come into memory late are asked to go again. */
    ck_assert_uint_gt(left - before, 15);
    for (unsigned i = 0; i < 15; i++) {
        ck_assert(is_body_right(objects[i]->body, url_of(i), 1, LARGE));
        object_release(&objects[i]);
    }
    store("http://room/", 1, 1000);
    volume_flush(the_volume);
    ck_assert(has("http://room/", 1, 1000));
    stop();
}
END_TEST

/* Else each would leave two thirds of a segment of its own empty. */
START_TEST(records_of_a_third_share_segments) {
    enum { THIRD = SEGMENT / 3, COUNT = SIZE / SEGMENT + 8 };
    start("thirds");
    for (unsigned i = 0; i < COUNT; i++) {
        store(url_of(i), 1, THIRD);
        volume_flush(the_volume);
    }
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < COUNT; i++)
            ck_assert(has(url_of(i), 1, THIRD));
        restart();
    }
    stop();
}
END_TEST

START_TEST(runs_of_segments_go_round) {
    start("runs");
    for (unsigned i = 0; i < 40; i++) {
        store(url_of(i), 1, i % 3 == 0 ? 1000 : 1500000 + 700000 * (i % 3));
        volume_flush(the_volume);
        ck_assert(has(url_of(i), 1, i % 3 == 0 ? 1000 : 1500000 + 700000 * (i % 3)));
        if (i % 7 == 0)
            restart();
    }
    restart();
    ck_assert(has(url_of(38), 1, 2900000));
    stop();
}
END_TEST

/* Streams. */

static struct volume_stream *open_stream(const char *url, size_t size) {
    struct object *object = make(url, 0, 0);
    struct volume_stream *stream = volume_stream_open(the_volume, object, 1, 0, size);
    object_release(&object);
    return stream;
}

static void put(struct volume_stream *stream, const char *url, unsigned version, size_t from,
                size_t until) {
    char bytes[10000];
    for (size_t at = from; at < until;) {
        size_t length = until - at < sizeof bytes ? until - at : sizeof bytes;
        for (size_t i = 0; i < length; i++)
            bytes[i] = byte_of(url, version, at + i);
        volume_stream_put(stream, slice_make(bytes, length));
        at += length;
    }
}

START_TEST(streams_are_found_when_they_are_whole) {
    static const size_t sizes[] = {0, 1000, LARGE, 2500000};
    start("stream");
    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        struct volume_stream *stream = open_stream(url_of(i), sizes[i]);
        put(stream, url_of(i), 1, 0, sizes[i]);
        volume_flush(the_volume);
        ck_assert_uint_eq(count_of(url_of(i)), 0);
        volume_stream_close(&stream, true);
        ck_assert_ptr_null(stream);
        volume_flush(the_volume);
        ck_assert(has(url_of(i), 1, sizes[i]));
    }
    restart();
    for (unsigned i = 0; i < COUNT_OF(sizes); i++)
        ck_assert(has(url_of(i), 1, sizes[i]));
    stop();
}
END_TEST

START_TEST(streams_that_break_off_are_not) {
    start("stream_short");
    store("http://a/", 1, 1000);
    for (unsigned i = 0; i < 60; i++) {
        struct volume_stream *stream = open_stream(url_of(i), LARGE);
        put(stream, url_of(i), 1, 0, i % 3 == 0 ? LARGE : i % 3 == 1 ? LARGE - 1 : LARGE + 1);
        volume_stream_close(&stream, i % 3 != 0);
        volume_flush(the_volume);
        ck_assert_uint_eq(count_of(url_of(i)), 0);
    }
    ck_assert(has("http://a/", 1, 1000)); /* they have not used up the ring */
    struct volume_stream *stream = open_stream("http://killed/", LARGE);
    put(stream, "http://killed/", 1, 0, LARGE);
    volume_flush(the_volume);
    restart(); /* in the middle of it */
    ck_assert_uint_eq(count_of("http://killed/"), 0);
    ck_assert_uint_eq(disk_index_count(the_volume->index), 1);
    stop();
}
END_TEST

START_TEST(streams_that_wait_leave_room_for_others) {
    enum { SHORT = 100000, STREAMS = 20 };
    struct volume_stream *streams[STREAMS];
    unsigned found = 0;
    start("stream_wait");
    the_settings.write_queue = 10 * SHORT;
    for (unsigned i = 0; i < STREAMS; i++) {
        streams[i] = open_stream(url_of(i), SHORT);
        volume_flush(the_volume);
        put(streams[i], url_of(i), 1, 0, SHORT);
    }
    volume_flush(the_volume);
    store("http://a/", 1, SHORT);
    volume_flush(the_volume);
    ck_assert(has("http://a/", 1, SHORT));
    for (unsigned i = 0; i < STREAMS; i++)
        volume_stream_close(&streams[i], true);
    volume_flush(the_volume);
    for (unsigned i = 0; i < STREAMS; i++)
        found += has(url_of(i), 1, SHORT);
    ck_assert_uint_ge(found, 4);
    ck_assert_uint_le(found, 5);
    ck_assert_uint_eq(the_volume->gathered, 0);
    ck_assert_uint_eq(the_volume->count.dropped, STREAMS - found);
    stop();
}
END_TEST

START_TEST(a_removal_reaches_what_streams) {
    start("stream_removed");
    for (unsigned i = 0; i < 3; i++) {
        const char *url = url_of(i);
        struct volume_stream *stream = open_stream(url, LARGE);
        put(stream, url, 1, 0, 1000);
        if (i == 1)
            volume_flush(the_volume);
        ck_assert_uint_eq(volume_remove(the_volume, key_of(url), i == 2 ? 7 : DISK_ANY_VARIANT),
                          i == 2 ? 0 : 1);
        put(stream, url, 1, 1000, LARGE);
        volume_stream_close(&stream, true);
        volume_flush(the_volume);
        ck_assert_uint_eq(count_of(url), i == 2);
    }
    restart();
    ck_assert_uint_eq(disk_index_count(the_volume->index), 1);
    stop();
}
END_TEST

/* A stream's segment is older than what was written while it went on. */
START_TEST(what_came_last_counts) {
    start("serials");
    struct volume_stream *first = open_stream("http://first/", LARGE);
    struct volume_stream *last = open_stream("http://last/", LARGE);
    put(first, "http://first/", 1, 0, LARGE);
    put(last, "http://last/", 2, 0, LARGE);
    store("http://last/", 1, 1000);
    volume_stream_close(&first, true);
    volume_flush(the_volume);
    store("http://first/", 2, 1000);
    for (unsigned i = 0; i < 10; i++)
        store(url_of(i), 1, 400 * 1000);
    volume_stream_close(&last, true);
    volume_flush(the_volume);
    for (unsigned round = 0; round < 3; round++) {
        ck_assert(has("http://first/", 2, 1000));
        ck_assert(has("http://last/", 2, LARGE));
        restart();
    }
    stop();
}
END_TEST

START_TEST(what_finds_no_room_costs_nothing_else) {
    struct volume_stream *streams[4];
    start("room");
    for (unsigned i = 0; i < 4; i++) {
        streams[i] = open_stream(url_of(1000 + i), LARGE);
        for (unsigned j = 0; j < 12 && i < 3; j++)
            store(url_of(i * 12 + j), 1, 400 * 1000);
        volume_flush(the_volume);
    }
    uint64_t count = disk_index_count(the_volume->index);
    ck_assert_uint_gt(count, 20);
    store("http://huge/", 1, 12 << 20); /* there are never seven together */
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of("http://huge/"), 0);
    ck_assert_uint_eq(disk_index_count(the_volume->index), count);
    for (unsigned i = 0; i < 4; i++)
        volume_stream_close(&streams[i], false);
    stop();
}
END_TEST

/* Damage. */

static void overwrite(uint64_t offset, size_t length) {
    char *bytes = malloc(length);
    memset(bytes, 0x5a, length);
    int fd = open(the_settings.path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, bytes, length, (off_t)offset), (ssize_t)length);
    close(fd);
    free(bytes);
}

static uint64_t segment_at(unsigned segment) {
    return volume_offset((uint64_t)segment * SEGMENT / RECORD_ALIGN);
}

/* Six small ones in the first segment, and one that lies in a segment of its own. */
static uint64_t fill_for_damage(const char *name) {
    struct disk_place place;
    start(name);
    for (unsigned i = 0; i < 6; i++)
        store(url_of(i), 1, 10000);
    store("http://large/", 1, LARGE);
    volume_flush(the_volume);
    ck_assert_uint_eq(disk_index_find(the_volume->index, key_of(url_of(2)).low, &place, 1), 1);
    ck_assert_uint_eq(place.segment, 0);
    volume_close(&the_volume);
    return volume_offset(place.at);
}

static void expect_after_damage(unsigned lost) {
    open_volume();
    ck_assert(volume_start(the_volume));
    for (unsigned i = 0; i < 6; i++) {
        if (i == lost)
            ck_assert(!has(url_of(i), 1, 10000));
        else
            ck_assert(has(url_of(i), 1, 10000));
    }
    ck_assert(has("http://large/", 1, LARGE));
}

START_TEST(a_damaged_seal_is_made_up_for) {
    fill_for_damage("seal");
    overwrite(segment_at(0) + RECORD_ALIGN, 8);
    expect_after_damage(99);
    stop();
}
END_TEST

START_TEST(a_damaged_table_is_made_up_for) {
    uint64_t record = fill_for_damage("table");
    struct record_entry entry;
    int fd = open(the_settings.path, O_RDONLY);
    struct segment_seal seal;
    ck_assert_int_eq(pread(fd, &seal, sizeof seal, (off_t)segment_at(0) + RECORD_ALIGN),
                     sizeof seal);
    ck_assert_uint_eq(seal.count, 6);
    close(fd);
    overwrite(segment_at(0) + seal.contents_at, sizeof entry);
    overwrite(record, 8); /* and a record that is damaged hides no other */
    expect_after_damage(2);
    stop();
}
END_TEST

START_TEST(a_damaged_record_is_lost) {
    uint64_t record = fill_for_damage("record");
    overwrite(record + 40, 1);
    expect_after_damage(2);
    ck_assert_uint_eq(count_of(url_of(2)), 0);
    ck_assert_uint_eq(the_volume->count.corrupt, 1);
    stop();
}
END_TEST

START_TEST(a_damaged_body_is_lost) {
    uint64_t record = fill_for_damage("body");
    overwrite(record + 5000, 1);
    expect_after_damage(2);
    ck_assert_uint_eq(the_volume->count.corrupt, 1);
    overwrite(segment_at(1) + SEGMENT_START + LARGE - 1000, 1);
    struct object *object = read_one("http://large/");
    char bytes[100];
    ck_assert(body_copy(object->body, 0, bytes, sizeof bytes));
    ck_assert(!body_copy(object->body, LARGE - 100, bytes, sizeof bytes));
    ck_assert_uint_eq(count_of("http://large/"), 0);
    object_release(&object);
    stop();
}
END_TEST

START_TEST(a_damaged_header_costs_its_segment) {
    fill_for_damage("header");
    overwrite(segment_at(0), 8);
    open_volume();
    ck_assert(volume_start(the_volume));
    ck_assert_uint_eq(disk_index_count(the_volume->index), 1);
    ck_assert(has("http://large/", 1, LARGE));
    turn_the_ring(0);
    stop();
}
END_TEST

START_TEST(a_damaged_volume_header_costs_all) {
    fill_for_damage("volume");
    overwrite(0, 8);
    open_volume();
    ck_assert(volume_start(the_volume));
    ck_assert_uint_eq(disk_index_count(the_volume->index), 0);
    store("http://a/", 1, 1000);
    volume_flush(the_volume);
    restart();
    ck_assert(has("http://a/", 1, 1000));
    stop();
}
END_TEST

/* Writes behind this place fail; 0: none. */
static void fail_behind(uint64_t offset) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
    limit.rlim_cur = offset == 0 ? limit.rlim_max : offset;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(what_cant_be_written_down_is_removed_all_the_same) {
    struct disk_place place;
    log_set_level(LOG_LEVEL_ERROR + 1);
    start("removal");
    store("http://a/", 1, 1000);
    store("http://b/", 1, 1000);
    volume_flush(the_volume);
    ck_assert_uint_eq(disk_index_find(the_volume->index, key_of("http://b/").low, &place, 1), 1);
    fail_behind(volume_offset(place.at + place.blocks));
    ck_assert_uint_eq(volume_remove(the_volume, key_of("http://a/"), DISK_ANY_VARIANT), 1);
    volume_flush(the_volume);
    ck_assert_uint_gt(the_volume->count.errors, 0);
    volume_close(&the_volume);
    fail_behind(0);
    open_volume();
    ck_assert(volume_start(the_volume));
    ck_assert(!has("http://a/", 1, 1000));
    ck_assert(has("http://b/", 1, 1000));
    stop();
}
END_TEST

START_TEST(failed_writes_cost_the_objects) {
    log_set_level(LOG_LEVEL_ERROR + 1);
    start("failed");
    store("http://a/", 1, 1000);
    store("http://b/", 1, 1000);
    volume_flush(the_volume);
    fail_behind(segment_at(0));
    store("http://a/", 2, 1000);
    store("http://c/", 1, LARGE);
    struct volume_stream *stream = open_stream("http://d/", LARGE);
    put(stream, "http://d/", 1, 0, LARGE);
    volume_stream_close(&stream, true);
    volume_flush(the_volume);
    ck_assert_uint_eq(count_of("http://a/"), 0);
    ck_assert_uint_eq(count_of("http://c/"), 0);
    ck_assert_uint_eq(count_of("http://d/"), 0);
    ck_assert(has("http://b/", 1, 1000));
    fail_behind(0);
    the_volume->paused_until = 0;
    store("http://a/", 3, 1000);
    volume_flush(the_volume);
    ck_assert(has("http://a/", 3, 1000));
    restart();
    ck_assert(has("http://a/", 3, 1000));
    ck_assert(has("http://b/", 1, 1000));
    stop();
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

START_TEST(the_list_of_purges_has_two_places) {
    uint64_t floor, newest;
    start("purges");
    ck_assert_ptr_null(volume_read_purges(the_volume, &floor, &newest).base);
    ck_assert(volume_write_purges(the_volume, SLICE("one"), 0, 1));
    ck_assert(volume_write_purges(the_volume, SLICE("two"), 0, 2));
    restart();
    ck_assert(has_purges("two", 2));
    ck_assert(volume_write_purges(the_volume, SLICE("three"), 0, 3));
    restart();
    ck_assert(has_purges("three", 3));
    /* Where the newest was torn, the one before counts; and it is not written over next. */
    overwrite(VOLUME_HEADER_SIZE + PURGES_SIZE, 200);
    restart();
    ck_assert(has_purges("two", 2));
    ck_assert(volume_write_purges(the_volume, SLICE("four"), 0, 4));
    restart();
    ck_assert(has_purges("four", 4));
    stop();
}
END_TEST

START_TEST(a_list_that_was_not_written_leaves_the_other) {
    log_set_level(LOG_LEVEL_ERROR + 1);
    start("purges_fail");
    ck_assert(volume_write_purges(the_volume, SLICE("one"), 0, 1));
    fail_behind(100);
    ck_assert(!volume_write_purges(the_volume, SLICE("two"), 0, 2));
    fail_behind(0);
    uint64_t sequence = the_volume->purges_sequence;
    ck_assert(volume_write_purges(the_volume, SLICE("three"), 0, 3));
    ck_assert_uint_eq(the_volume->purges_sequence, sequence + 1);
    overwrite(VOLUME_HEADER_SIZE, 200); /* as if torn */
    restart();
    ck_assert(has_purges("one", 1));
    stop();
}
END_TEST

static void store_with_events(const char *url, uint64_t events, size_t size) {
    struct object *object = make(url, 1, size);
    volume_store(the_volume, object, 1, events);
    object_release(&object);
    volume_flush(the_volume);
}

START_TEST(the_oldest_number_is_known) {
    start("oldest");
    ck_assert_uint_eq(volume_oldest(the_volume), UINT64_MAX);
    store_with_events("http://a/", 7, 1000);
    store_with_events("http://b/", 5, LARGE);
    ck_assert_uint_eq(volume_oldest(the_volume), 5);
    restart();
    ck_assert_uint_eq(volume_oldest(the_volume), 5);
    volume_remove(the_volume, key_of("http://b/"), DISK_ANY_VARIANT);
    volume_flush(the_volume);
    ck_assert_uint_eq(volume_oldest(the_volume), 7);
    stop();
}
END_TEST

/* Opening. */

START_TEST(another_size_starts_empty) {
    start("size");
    store("http://a/", 1, 1000);
    volume_flush(the_volume);
    volume_close(&the_volume);
    the_settings.size = SIZE + (4 << 20);
    open_volume();
    ck_assert(volume_start(the_volume));
    ck_assert_uint_eq(disk_index_count(the_volume->index), 0);
    stop();
}
END_TEST

START_TEST(a_volume_has_one_user) {
    char error[SETTINGS_ERROR] = "";
    start("user");
    ck_assert_ptr_null(volume_open(&the_settings, &hooks, error));
    ck_assert_ptr_nonnull(strstr(error, "in use"));
    stop();
}
END_TEST

static void *remove_some(void *arg) {
    for (unsigned i = 0; i < 2000; i++)
        volume_remove(
            the_volume,
            key_of(((const char *const[]){"http://t/0", "http://t/1", "http://t/2"})[i % 3]),
            DISK_ANY_VARIANT);
    return arg;
}

START_TEST(threads_get_along) {
    pthread_t thread;
    start("threads");
    ck_assert_int_eq(pthread_create(&thread, NULL, remove_some, NULL), 0);
    for (unsigned i = 0; i < 1000; i++) {
        char url[20];
        snprintf(url, sizeof url, "http://t/%u", i % 6);
        if (i % 5 == 4) {
            struct volume_stream *stream = open_stream(url, 50000);
            if (stream != NULL) /* else the last is still being written */
                put(stream, url, 1, 0, 50000);
            volume_stream_close(&stream, true);
        } else {
            store(url, 1, i % 2 == 0 ? 50000 : 1000);
        }
        struct object *object = read_one(url);
        object_release(&object);
    }
    pthread_join(thread, NULL);
    volume_remove(the_volume, key_of("http://t/0"), DISK_ANY_VARIANT);
    restart();
    ck_assert_uint_eq(count_of("http://t/0"), 0);
    stop();
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
        streams_are_found_when_they_are_whole,
        streams_that_break_off_are_not,
        streams_that_wait_leave_room_for_others,
        a_removal_reaches_what_streams,
        what_came_last_counts,
        what_finds_no_room_costs_nothing_else,
        a_damaged_seal_is_made_up_for,
        a_damaged_table_is_made_up_for,
        a_damaged_record_is_lost,
        a_damaged_body_is_lost,
        a_damaged_header_costs_its_segment,
        a_damaged_volume_header_costs_all,
        what_cant_be_written_down_is_removed_all_the_same,
        failed_writes_cost_the_objects,
        the_list_of_purges_has_two_places,
        a_list_that_was_not_written_leaves_the_other,
        the_oldest_number_is_known,
        another_size_starts_empty,
        a_volume_has_one_user,
        threads_get_along,
    };
    return suite_of("disk_volume", tests, COUNT_OF(tests));
}
