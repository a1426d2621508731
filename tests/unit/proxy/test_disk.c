/* The cache on disk: what is found again after a restart, a kill, damage, removals and purges. */
#include "suites.h"

#include "base/assert.h"
#include "cache/removal.h"
#include "disk/disk.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = 64 << 20, VOLUME = 32 << 20, LARGEST = 4 << 20, RACES = 3000 };
/* Seconds: a disk that is slow or shared has had races enough by then. */
enum { RACES_TIME = 20 };

static struct cache *the_cache;
static struct second_level *the_disk;

static const char *volume_path(void) {
    static char path[600];
    snprintf(path, sizeof path, "%s/test_disk", scratch());
    return path;
}

static size_t volume_size = VOLUME;
static const char *volume_options = "";

static struct settings *volume_settings(void) {
    char text[1000];
    snprintf(text, sizeof text,
             "listen \":1\" { mode = forward }\n"
             "cache { disk \"%s\" { size = %zu %s } }\n",
             volume_path(), volume_size, volume_options);
    return settings_from(text);
}

static void begin(void) {
    char error[SETTINGS_ERROR];
    struct settings *settings = volume_settings();
    log_set_level(LOG_LEVEL_ERROR);
    the_cache = cache_new(MEMORY);
    the_disk = disk_open(settings, the_cache, false, error);
    ck_assert_msg(the_disk != NULL, "%s", error);
    settings_release(&settings);
}

static void begin_on_nothing(void) {
    int fd = open(volume_path(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    begin();
}

static void end(void) {
    second_level_stop(the_disk);
    cache_free(&the_cache);
    second_level_close(&the_disk);
}

static void again(void) {
    end();
    begin();
}

/* Objects: a number, a version of it, and a length; every byte depends on all three. */

static struct slice url_of(unsigned number, char *text, size_t capacity) {
    return slice_make(text, (size_t)snprintf(text, capacity, "http://h/%u/%u", number % 4, number));
}

static void fill(char *bytes, size_t length, unsigned number, unsigned version) {
    uint64_t state = (uint64_t)number << 40 ^ (uint64_t)version << 8 ^ length;
    for (size_t i = 0; i < length; i++) {
        if (i % 64 == 0)
            state = (state + i) * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (char)(state >> (i % 56));
    }
}

/* Of that key, whatever its URL is; NULL: of the URL's. */
static struct object *make(const struct cache_key *key, unsigned number, unsigned version,
                           size_t length) {
    char url[64], text[32];
    struct http_head request, response;
    struct freshness freshness = {.lifetime = 3600, .response_time = time(NULL)};
    char *bytes = malloc(length + 1);
    fill(bytes, length, number, version);
    snprintf(text, sizeof text, "%u", version);
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    http_head_init(&response);
    response.version = 11;
    response.status = 200;
    response.reason = SLICE("OK");
    http_head_add(&response, SLICE("Version"), slice_from(text));
    http_head_add(&response, SLICE("Surrogate-Key"), number % 2 ? SLICE("odd") : SLICE("even"));
    struct slice name = url_of(number, url, sizeof url);
    struct body *body = body_of_bytes(slice_make(bytes, length));
    struct object *object = object_new(key != NULL ? *key : cache_key_of(name), name, &request,
                                       &response, &freshness, body);
    object->scope = OBJECT_FORWARD;
    body_release(&body);
    free(bytes);
    return object;
}

/* Good until it is next asked for. */
static const struct cache_name *name_of(unsigned number) {
    static __thread char url[64];
    static __thread struct cache_name name;
    name = cache_name_of(url_of(number, url, sizeof url));
    return &name;
}

/* Out of memory, not off the disk. */
static void forget(unsigned number) {
    struct cache_walk walk = {0};
    cache_walk_name(the_cache, &walk, name_of(number));
    for (size_t i = 0; i < walk.count; i++)
        cache_remove(the_cache, walk.objects[i]);
    cache_walk_end(&walk);
}

static void put(unsigned number, unsigned version, size_t length) {
    struct object *object = make(NULL, number, version, length);
    struct cache_arrival arrival = {.since = cache_now(the_cache), .held = true};
    struct second_level_moment since = second_level_now(the_disk);
    ASSERT(cache_insert(the_cache, object, &arrival));
    second_level_store(the_disk, object, &since);
    cache_unhold(the_cache, object);
    object_release(&object);
}

/* The same under that key, whatever its URL is. */
static void put_under(struct cache_key key, unsigned number, unsigned version) {
    struct object *object = make(&key, number, version, 3000);
    struct cache_arrival arrival = {.since = cache_now(the_cache), .held = true};
    struct second_level_moment since = second_level_now(the_disk);
    ASSERT(cache_insert(the_cache, object, &arrival));
    second_level_store(the_disk, object, &since);
    cache_unhold(the_cache, object);
    cache_remove(the_cache, object);
    object_release(&object);
}

static unsigned version_of(const struct object *object) {
    struct http_head head;
    uint64_t version;
    object_parse_head(object, &head);
    const struct http_field *field = http_head_find_text(&head, SLICE("Version"));
    ASSERT(field != NULL && slice_to_uint64(field->value, &version));
    return (unsigned)version;
}

/* The version of a whole object; 0: there is none, UINT_MAX: its bytes are wrong or can't be read.
 */
static unsigned check(const struct object *object, unsigned number) {
    size_t length = (size_t)body_length(object->body);
    char *seen = malloc(length + 1), *expected = malloc(length + 1);
    unsigned version = version_of(object);
    fill(expected, length, number, version);
    bool good = body_copy(object->body, 0, seen, length) && memcmp(seen, expected, length) == 0;
    free(seen);
    free(expected);
    return good ? version : UINT_MAX;
}

/* As it is on disk. */
static unsigned get(unsigned number) {
    struct http_head request;
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    forget(number);
    second_level_load_now(the_disk, name_of(number));
    struct object *object = cache_lookup(the_cache, name_of(number), &request, OBJECT_FORWARD);
    unsigned version = object == NULL ? 0 : check(object, number);
    object_release(&object);
    forget(number);
    return version;
}

static uint64_t objects(void) {
    uint64_t values[SECOND_LEVEL_NUMBERS];
    the_disk->class->report(the_disk, values);
    return values[0]; /* disk_objects */
}

static const size_t lengths[] = {
    0,      1,      500,    511,     512,     513,     4096,    65536,   262143,           262144,
    262145, 524288, 700000, 1048576, 1048577, 2000000, 3000000, 1234567, (4 << 20) - 10000};

static void put_all(unsigned version) {
    for (unsigned i = 0; i < COUNT_OF(lengths); i++)
        put(i, version, lengths[i] / (version == 1 ? 1 : 2));
    second_level_commit(the_disk);
}

static void check_all(unsigned version) {
    for (unsigned i = 0; i < COUNT_OF(lengths); i++)
        ck_assert_msg(get(i) == version, "%zu bytes: version %u", lengths[i], get(i));
}

START_TEST(what_was_stored_is_found) {
    begin_on_nothing();
    put_all(1);
    check_all(1);
    again();
    ck_assert_uint_eq(objects(), COUNT_OF(lengths));
    check_all(1);
    again();
    check_all(1);
    ck_assert_uint_eq(get(1000), 0);
    end();
}
END_TEST

START_TEST(the_newest_version_counts) {
    begin_on_nothing();
    put_all(1);
    put_all(2);
    check_all(2);
    again();
    ck_assert_uint_eq(objects(), COUNT_OF(lengths));
    check_all(2);
    end();
}
END_TEST

static void check_both(unsigned number, unsigned version) {
    struct http_head request;
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    struct object *object = cache_lookup(the_cache, name_of(number), &request, OBJECT_FORWARD);
    ck_assert_msg(object != NULL && check(object, number) == version, "memory, number %u", number);
    object_release(&object);
    second_level_commit(the_disk);
    ck_assert_uint_eq(get(number), version);
}

/* Two responses enter memory one behind the other, in one second, and reach the disk the other way
 * round, as when the thread of the first one is held up between both. */
START_TEST(the_disk_keeps_the_order_of_memory) {
    begin_on_nothing();
    for (unsigned number = 0; number < 20; number++) {
        struct object *objects[2];
        struct second_level_moment since = second_level_now(the_disk);
        for (unsigned i = 0; i < 2; i++) {
            struct cache_arrival arrival = {.since = cache_now(the_cache), .held = true};
            objects[i] = make(NULL, number, i + 1, 3000);
            ck_assert(cache_insert(the_cache, objects[i], &arrival));
        }
        for (unsigned i = 2; i-- > 0;) {
            second_level_store(the_disk, objects[i], &since);
            cache_unhold(the_cache, objects[i]);
            object_release(&objects[i]);
        }
        check_both(number, 2);
    }
    again();
    for (unsigned number = 0; number < 20; number++)
        ck_assert_uint_eq(get(number), 2);
    end();
}
END_TEST

static unsigned get_under(struct cache_key key, unsigned number) {
    struct http_head request;
    struct cache_name name = {.url = name_of(number)->url, .key = key};
    http_head_init(&request);
    request.method_id = HTTP_METHOD_GET;
    second_level_load_now(the_disk, &name);
    struct object *object = cache_lookup(the_cache, &name, &request, OBJECT_FORWARD);
    unsigned version = object == NULL ? 0 : check(object, number);
    if (object != NULL)
        cache_remove(the_cache, object);
    object_release(&object);
    return version;
}

/* Two URLs whose keys are the same, as if somebody had made them so. */
START_TEST(names_of_one_key_are_kept_apart) {
    static const struct cache_key key = {.high = 3, .low = 4};
    begin_on_nothing();
    put_under(key, 1, 1);
    ck_assert_uint_eq(get_under(key, 2), 0);
    put_under(key, 2, 2);
    for (int turn = 0; turn < 2; turn++) {
        second_level_commit(the_disk);
        ck_assert_uint_eq(get_under(key, 1), 1);
        ck_assert_uint_eq(get_under(key, 2), 2);
        ck_assert_uint_eq(get_under(key, 3), 0);
        again();
    }
    struct object *object = make(&key, 1, 1, 3000);
    const struct cache_name name = object_name(object);
    ck_assert_uint_eq(second_level_remove(the_disk, &name, object), 1);
    object_release(&object);
    second_level_commit(the_disk);
    for (int turn = 0; turn < 2; turn++) {
        ck_assert_uint_eq(get_under(key, 1), 0);
        ck_assert_uint_eq(get_under(key, 2), 2);
        again();
    }
    end();
}
END_TEST

static void set_other_secret(void) {
    struct cache_secret secret = *cache_secret();
    secret.bytes[0] ^= 1;
    cache_set_secret(&secret);
}

/* As another process has another secret at first. */
START_TEST(the_secret_of_keys_is_on_the_volume) {
    struct cache_secret secret;
    begin_on_nothing();
    secret = *cache_secret();
    put(1, 1, 3000);
    end();
    set_other_secret();
    begin();
    ck_assert_mem_eq(cache_secret(), &secret, sizeof secret);
    ck_assert_uint_eq(get(1), 1);
    end();
}
END_TEST

static void begin_on(const char *first, const char *second) {
    char text[2000], error[SETTINGS_ERROR];
    snprintf(text, sizeof text,
             "listen \":1\" { mode = forward }\n"
             "cache { disk \"%s\" { size = %d }  disk \"%s\" { size = %d } }\n",
             first, VOLUME, second, VOLUME);
    struct settings *settings = settings_from(text);
    the_cache = cache_new(MEMORY);
    the_disk = disk_open(settings, the_cache, false, error);
    ck_assert_msg(the_disk != NULL, "%s", error);
    settings_release(&settings);
}

/* A new volume takes over the secret of those that there are; one that has another starts empty. */
START_TEST(all_volumes_have_one_secret) {
    char added[700], foreign[700];
    struct cache_secret secret, other;
    snprintf(added, sizeof added, "%s-added", volume_path());
    snprintf(foreign, sizeof foreign, "%s-foreign", volume_path());
    begin_on_nothing();
    log_set_level(LOG_LEVEL_ERROR);
    put(1, 1, 3000);
    end();
    secret = *cache_secret();
    set_other_secret();
    begin_on(added, volume_path());
    ck_assert_mem_eq(cache_secret(), &secret, sizeof secret);
    ck_assert_uint_eq(get(1), 1);
    end();
    set_other_secret();
    other = *cache_secret();
    unlink(added);
    begin_on(foreign, added);
    put(2, 1, 3000);
    put(3, 1, 3000);
    put(4, 1, 3000);
    end();
    ck_assert_mem_eq(cache_secret(), &other, sizeof other);
    begin_on(volume_path(), foreign);
    ck_assert_mem_eq(cache_secret(), &secret, sizeof secret);
    ck_assert_uint_eq(objects(), 1);
    ck_assert_uint_eq(get(1), 1);
    end();
}
END_TEST

static void copy_file(const char *from, const char *to) {
    char bytes[65536];
    ssize_t length;
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    while ((length = read(in, bytes, sizeof bytes)) > 0)
        ck_assert_int_eq(write(out, bytes, (size_t)length), length);
    close(in);
    close(out);
}

/* A disk was added, so names move to it. The process was killed when the newer response had been
 * written there, and the removal of the older one, of the same second, had not been written. */
START_TEST(of_two_volumes_the_later_record_counts) {
    enum { NUMBERS = 20 };
    char added[700], kept[700];
    snprintf(added, sizeof added, "%s-added", volume_path());
    snprintf(kept, sizeof kept, "%s-kept", volume_path());
    unlink(added);
    begin_on_nothing();
    for (unsigned number = 0; number < NUMBERS; number++)
        put(number, 1, 3000);
    end();
    copy_file(volume_path(), kept);
    begin_on(added, volume_path());
    for (unsigned number = 0; number < NUMBERS; number++)
        put(number, 2, 3000);
    end();
    copy_file(kept, volume_path());
    for (unsigned turn = 0; turn < 2; turn++) {
        begin_on(turn == 0 ? added : volume_path(), turn == 0 ? volume_path() : added);
        ck_assert_uint_gt(objects(), NUMBERS);
        for (unsigned number = 0; number < NUMBERS; number++) {
            struct disk_place place;
            bool moved = disk_index_find(disk_of(the_disk)->volumes[turn]->index,
                                         name_of(number)->key.low, &place, 1) > 0;
            ck_assert_msg(get(number) == (moved ? 2 : 1), "turn %u: number %u", turn, number);
        }
        end();
    }
    unlink(added);
    unlink(kept);
}
END_TEST

/* As one was written before keys had a secret. */
START_TEST(a_volume_of_another_version_starts_empty) {
    begin_on_nothing();
    put(1, 1, 3000);
    end();
    struct volume_header header;
    int fd = open(volume_path(), O_RDWR);
    ck_assert_int_eq(pread(fd, &header, sizeof header, 0), sizeof header);
    header.version = 2;
    ck_assert_int_eq(pwrite(fd, &header, sizeof header, 0), sizeof header);
    close(fd);
    begin();
    ck_assert_uint_eq(objects(), 0);
    put(1, 2, 3000);
    again();
    ck_assert_uint_eq(get(1), 2);
    end();
}
END_TEST

START_TEST(removals_outlive_a_restart) {
    begin_on_nothing();
    put_all(1);
    for (unsigned i = 0; i < COUNT_OF(lengths); i += 2)
        ck_assert_uint_eq(second_level_remove(the_disk, name_of(i), NULL), 1);
    ck_assert_uint_eq(second_level_remove(the_disk, name_of(1000), NULL), 0);
    for (int turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < COUNT_OF(lengths); i++)
            ck_assert_uint_eq(get(i), i % 2);
        again();
    }
    end();
}
END_TEST

/* What was queued when the removal came. */
START_TEST(removals_hit_what_is_on_its_way) {
    begin_on_nothing();
    for (unsigned i = 0; i < 200; i++) {
        put(i, 1, 20000);
        second_level_remove(the_disk, name_of(i), NULL);
    }
    for (unsigned i = 0; i < 200; i += 10)
        put(i, 2, 300);
    second_level_commit(the_disk);
    for (int turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < 200; i++)
            ck_assert_uint_eq(get(i), i % 10 == 0 ? 2 : 0);
        again();
    }
    end();
}
END_TEST

static _Atomic unsigned loads;
static _Atomic bool over;

static void *load_on(void *arg) {
    for (; !atomic_load(&over); atomic_fetch_add(&loads, 1))
        second_level_load_now(the_disk, name_of(0));
    return arg;
}

/* In memory or on disk. */
static bool is_known(unsigned number) {
    struct cache_walk walk = {0};
    bool known = cache_walk_name(the_cache, &walk, name_of(number)) ||
                 second_level_has(the_disk, name_of(number)->key);
    cache_walk_end(&walk);
    return known;
}

/* One thread finds it on disk and brings it into memory while another removes it. */
START_TEST(removals_hit_what_is_being_read) {
    pthread_t thread;
    unsigned back = 0;
    const time_t last = time(NULL) + RACES_TIME;
    begin_on_nothing();
    pthread_create(&thread, NULL, load_on, NULL);
    for (unsigned i = 0; i < RACES && time(NULL) < last; i++) {
        put(0, 1, 100);
        second_level_commit(the_disk);
        forget(0);
        second_level_remove(the_disk, name_of(0), NULL);
        for (unsigned seen = atomic_load(&loads); atomic_load(&loads) - seen < 2;)
            sched_yield();
        back += is_known(0);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(back, 0);
    end();
}
END_TEST

/* A look-up and its own transaction both notice it. */
START_TEST(broken_responses_take_what_they_replaced) {
    begin_on_nothing();
    for (unsigned i = 0; i < 2; i++) {
        put(i, 1, 100);
        second_level_commit(the_disk);
        struct object *broken = make(NULL, i, 2, 100);
        struct cache_arrival arrival = {.since = cache_now(the_cache), .held = true};
        ck_assert(cache_insert(the_cache, broken, &arrival));
        if (i == 1)
            put(i, 3, 100); /* it is newer, and stays */
        removal_of_broken(the_cache, the_disk, broken);
        removal_of_broken(the_cache, the_disk, broken);
        cache_unhold(the_cache, broken);
        object_release(&broken);
    }
    second_level_commit(the_disk);
    for (int turn = 0; turn < 2; turn++) {
        ck_assert_uint_eq(get(0), 0);
        ck_assert_uint_eq(get(1), 3);
        again();
    }
    end();
}
END_TEST

START_TEST(purges_outlive_a_restart) {
    begin_on_nothing();
    put_all(1);
    struct object_filter prefix = {.prefix = SLICE("http://h/1/")};
    struct object_filter tag = {.tag = SLICE("even")};
    second_level_purge(the_disk, &prefix, PURGE_REMOVE);
    put(1, 2, 100);
    second_level_purge(the_disk, &tag, PURGE_REMOVE);
    put(2, 2, 100);
    second_level_commit(the_disk);
    for (int turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < COUNT_OF(lengths); i++) {
            unsigned expected = i == 1 || i == 2 ? 2 : i % 4 == 3 ? 1 : 0;
            ck_assert_msg(get(i) == expected, "%u: version %u", i, get(i));
        }
        again();
    }
    end();
}
END_TEST

static void purge_numbered(unsigned number) {
    char text[60];
    snprintf(text, sizeof text, "%s%u", number % 3 == 0 ? "http://h/x" : "h", number);
    struct object_filter filter = {0};
    *(number % 3 == 0   ? &filter.prefix
      : number % 3 == 1 ? &filter.tag
                        : &filter.host) = slice_from(text);
    ck_assert(second_level_purge(the_disk, &filter, number % 7 == 0 ? PURGE_STALE : PURGE_REMOVE));
}

/* What they concern is gone, and nothing else is, with as many as come in a minute. */
START_TEST(many_different_purges_outlive_a_restart) {
    enum { MANY = 50000 };
    volume_size = 256 << 20;
    volume_options = "sync = false";
    begin_on_nothing();
    put_all(1);
    struct object_filter first = {.prefix = SLICE("http://h/1/")};
    struct object_filter last = {.prefix = SLICE("http://h/2/")};
    second_level_purge(the_disk, &first, PURGE_REMOVE);
    for (unsigned i = 0; i < MANY; i++)
        purge_numbered(i);
    second_level_purge(the_disk, &last, PURGE_REMOVE);
    put(1, 2, 100);
    second_level_commit(the_disk);
    for (int turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < COUNT_OF(lengths); i++) {
            unsigned expected = i == 1 ? 2 : i % 4 == 1 || i % 4 == 2 ? 0 : 1;
            ck_assert_msg(get(i) == expected, "%u: version %u", i, get(i));
        }
        ck_assert_uint_eq(purge_log_floor(&disk_of(the_disk)->purges), 0);
        ck_assert_uint_ge(disk_of(the_disk)->purges.purges.count, MANY);
        again();
        purge_numbered(MANY); /* all is written anew */
    }
    end();
    unlink(volume_path());
    volume_size = VOLUME;
    volume_options = "";
}
END_TEST

static void *purge_many(void *arg) {
    for (unsigned i = 0; i < 300; i++)
        purge_numbered((unsigned)(uintptr_t)arg + i);
    return NULL;
}

/* Calls at the same time share syncs, and each is kept when it returns. */
START_TEST(purges_at_the_same_time_are_kept) {
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    begin_on_nothing();
    put_all(1);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, purge_many, (void *)(uintptr_t)(1000 * i));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    size_t count = disk_of(the_disk)->purges.purges.count;
    ck_assert_uint_eq(count, THREADS * 300);
    second_level_commit(the_disk);
    again();
    ck_assert_uint_eq(disk_of(the_disk)->purges.purges.count, count);
    for (unsigned i = 0; i < COUNT_OF(lengths); i++)
        ck_assert_uint_eq(get(i), 1);
    end();
}
END_TEST

/* Many times the volume, with a few that are asked for again and again. */
START_TEST(the_ring_keeps_what_is_used) {
    begin_on_nothing();
    for (unsigned i = 0; i < 5; i++)
        put(i, 1, 10000);
    for (unsigned i = 100; i < 4100; i++) {
        put(i, 1, i % 50 == 0 ? 400000 : 15000);
        forget(i);
        if (i % 20 == 0) {
            second_level_commit(the_disk);
            for (unsigned j = 0; j < 5; j++)
                ck_assert_uint_eq(get(j), 1);
        }
        unsigned older = i - i % 40;
        if (older >= 100)
            ck_assert_uint_ne(get(older), UINT_MAX);
    }
    second_level_commit(the_disk);
    ck_assert_uint_eq(get(4099), 1);
    ck_assert_uint_eq(get(101), 0);
    again();
    for (unsigned j = 0; j < 5; j++)
        ck_assert_uint_eq(get(j), 1);
    ck_assert_uint_eq(get(4099), 1);
    end();
}
END_TEST

/* Damage. */

static char *map_volume(void) {
    int fd = open(volume_path(), O_RDWR);
    char *bytes = mmap(NULL, VOLUME, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    ck_assert_ptr_ne(bytes, MAP_FAILED);
    return bytes;
}

/* How many are there; what is there is right. */
static unsigned count_right(unsigned count) {
    unsigned right = 0;
    for (unsigned i = 0; i < count; i++) {
        struct http_head request;
        http_head_init(&request);
        request.method_id = HTTP_METHOD_GET;
        unsigned version = get(i);
        /* A large one is found by its head; its body is what can't be read. */
        ck_assert_msg(version <= 1 || version == UINT_MAX, "%u: version %u", i, version);
        right += version == 1;
    }
    return right;
}

/* One bit turned, anywhere: at most one object is lost, or those whose segment is unknown. */
START_TEST(damage_costs_what_it_hits) {
    enum { COUNT = 12, USED = 5 << 20 };
    begin_on_nothing();
    log_open(open("/dev/null", O_WRONLY), "test", LOG_LEVEL_ERROR);
    for (unsigned i = 0; i < COUNT; i++)
        put(i, 1, i < 10 ? 3000 : 300000);
    second_level_commit(the_disk);
    end();
    char *bytes = map_volume(), *kept = malloc(USED);
    memcpy(kept, bytes, USED);
    unsigned worst = COUNT;
    for (size_t at = 0; at < USED; at += at < 8192 ? 37 : 7919) {
        memcpy(bytes, kept, USED);
        bytes[at] ^= 8;
        begin();
        unsigned right = count_right(COUNT);
        worst = right < worst ? right : worst;
        bool in_header = at < 4096,
             in_segment_header = at >= SEGMENTS_AT && (at - SEGMENTS_AT) % (2 << 20) < 512;
        ck_assert_msg(right >= COUNT - 1 || in_header || in_segment_header,
                      "a bit at %zu: %u of %u are left", at, right, (unsigned)COUNT);
        end();
    }
    ck_assert_uint_lt(worst, COUNT);
    free(kept);
    munmap(bytes, VOLUME);
}
END_TEST

START_TEST(any_bytes_are_no_harm) {
    begin_on_nothing();
    log_open(open("/dev/null", O_WRONLY), "test", LOG_LEVEL_ERROR);
    put_all(1);
    end();
    char *bytes = map_volume();
    srand(7);
    for (int turn = 0; turn < 150; turn++) {
        for (int i = 0; i < 30; i++) {
            size_t length = 1u << rand() % 12, at = (unsigned)rand() % (VOLUME - length);
            if (turn % 3 == 0)
                at = 4096 + at % (SEGMENTS_AT - 4096);
            else if (turn % 3 == 1)
                at = SEGMENTS_AT + at / (2 << 20) * (2 << 20) % (VOLUME - SEGMENTS_AT - (2 << 20)) +
                     at % 1024;
            while (length-- > 0)
                bytes[at + length] = (char)rand();
        }
        begin();
        for (unsigned i = 0; i < COUNT_OF(lengths); i++)
            get(i);
        put((unsigned)turn % COUNT_OF(lengths), 1, 2000);
        second_level_commit(the_disk);
        ck_assert_uint_eq(get((unsigned)turn % COUNT_OF(lengths)), 1);
        end();
    }
    munmap(bytes, VOLUME);
}
END_TEST

/* Segments whose header is damaged are unknown; when the log comes to the same place again, what
 * still stands there is not to be taken for new. */
START_TEST(lost_segments_do_not_come_back) {
    begin_on_nothing();
    log_open(open("/dev/null", O_WRONLY), "test", LOG_LEVEL_ERROR);
    for (unsigned i = 0; i < 20; i++)
        put(i, 1, 3000);
    second_level_commit(the_disk);
    end();
    char *bytes = map_volume();
    bytes[SEGMENTS_AT + 9] ^= 1;
    munmap(bytes, VOLUME);
    begin();
    ck_assert_uint_eq(get(7), 0);
    put(100, 2, 3000);
    put(7, 2, 3000);
    second_level_commit(the_disk);
    second_level_remove(the_disk, name_of(8), NULL);
    second_level_commit(the_disk);
    /* As a kill would leave it. */
    bytes = map_volume();
    char *kept = malloc(VOLUME);
    memcpy(kept, bytes, VOLUME);
    end();
    memcpy(bytes, kept, VOLUME);
    free(kept);
    munmap(bytes, VOLUME);
    begin();
    ck_assert_uint_eq(get(7), 2);
    ck_assert_uint_eq(get(100), 2);
    ck_assert_uint_eq(get(8), 0);
    end();
}
END_TEST

/* Kills. */

enum { KEYS = 60, ROUNDS = 80, SAFE_BYTES = 4 << 20 };

/* What is shared with processes that are killed. */
struct model {
    _Atomic bool checked; /* the process has looked at everything and goes to work */
    _Atomic unsigned version;
    _Atomic uint64_t bytes; /* written so far */
    struct {
        _Atomic unsigned newest;  /* version that was begun */
        _Atomic unsigned settled; /* version that is certainly on disk; 0: none */
        _Atomic uint64_t settled_at;
        _Atomic unsigned least; /* older ones were removed */
    } keys[KEYS];
};

static struct model *model;

static void complain(const char *what, unsigned number, unsigned seen) {
    fprintf(stderr, "%s: %u has version %u; newest %u, settled %u, least %u, %lu bytes since\n",
            what, number, seen, model->keys[number].newest, model->keys[number].settled,
            model->keys[number].least,
            (unsigned long)(model->bytes - model->keys[number].settled_at));
    _exit(1);
}

static void check_model(void) {
    for (unsigned i = 0; i < KEYS; i++) {
        unsigned seen = get(i), settled = model->keys[i].settled;
        if (seen == UINT_MAX)
            complain("wrong bytes", i, seen);
        if (seen > model->keys[i].newest)
            complain("from nowhere", i, seen);
        if (seen != 0 && seen < model->keys[i].least)
            complain("removed, but there", i, seen);
        if (settled > 0 && settled >= model->keys[i].least &&
            model->bytes - model->keys[i].settled_at < SAFE_BYTES && seen < settled)
            complain("lost", i, seen);
    }
}

static void remove_some(unsigned number) {
    unsigned newest = model->keys[number].newest;
    model->keys[number].settled = 0;
    if (rand() % 4 > 0) {
        forget(number);
        second_level_remove(the_disk, name_of(number), NULL);
        second_level_commit(the_disk);
        model->keys[number].least = newest + 1;
        return;
    }
    char prefix[32];
    snprintf(prefix, sizeof prefix, "http://h/%u/", number % 4);
    struct object_filter filter = {.prefix = slice_from(prefix)};
    for (unsigned i = number % 4; i < KEYS; i += 4) {
        model->keys[i].settled = 0;
        forget(i);
    }
    second_level_purge(the_disk, &filter, PURGE_REMOVE);
    for (unsigned i = number % 4; i < KEYS; i += 4)
        model->keys[i].least = model->keys[i].newest + 1;
}

static void store_some(unsigned number) {
    size_t length = (size_t)rand() % (rand() % 8 == 0 ? 1500000 : 9000);
    unsigned version = ++model->version;
    model->keys[number].settled = 0;
    model->keys[number].newest = version;
    model->bytes += length + 2048;
    put(number, version, length);
    forget(number);
    if (rand() % 3 > 0)
        return;
    second_level_commit(the_disk);
    model->keys[number].settled_at = model->bytes;
    model->keys[number].settled = version;
}

static void work_until_killed(unsigned round) {
    srand(round);
    begin();
    check_model();
    model->checked = true;
    for (int i = 0; i < 2000; i++) {
        unsigned number = (unsigned)rand() % KEYS;
        if (rand() % 10 == 0)
            remove_some(number);
        else if (rand() % 4 == 0)
            get(number);
        else
            store_some(number);
    }
    end();
    _exit(0);
}

START_TEST(kills_lose_nothing_that_was_settled) {
    model = mmap(NULL, sizeof *model, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0);
    begin_on_nothing();
    end();
    for (unsigned round = 0; round < ROUNDS; round++) {
        int status;
        model->checked = false;
        pid_t child = fork();
        if (child == 0)
            work_until_killed(round);
        while (!model->checked && waitpid(child, &status, WNOHANG) == 0)
            usleep(500);
        usleep((unsigned)(random() % 40000));
        if (model->checked) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
        }
        ck_assert_msg(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0),
                      "round %u ended with %d", round, status);
    }
    munmap(model, sizeof *model);
}
END_TEST

Suite *disk_suite(void) {
    const TTest *const tests[] = {
        what_was_stored_is_found,
        the_newest_version_counts,
        the_disk_keeps_the_order_of_memory,
        removals_hit_what_is_being_read,
        names_of_one_key_are_kept_apart,
        the_secret_of_keys_is_on_the_volume,
        all_volumes_have_one_secret,
        of_two_volumes_the_later_record_counts,
        a_volume_of_another_version_starts_empty,
        removals_outlive_a_restart,
        removals_hit_what_is_on_its_way,
        broken_responses_take_what_they_replaced,
        purges_outlive_a_restart,
        many_different_purges_outlive_a_restart,
        purges_at_the_same_time_are_kept,
        the_ring_keeps_what_is_used,
        damage_costs_what_it_hits,
        any_bytes_are_no_harm,
        lost_segments_do_not_come_back,
        kills_lose_nothing_that_was_settled,
    };
    return suite_of("disk", tests, COUNT_OF(tests));
}
