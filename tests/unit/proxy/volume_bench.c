#include "volume_bench.h"

#include "disk/reading.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

struct disk_settings the_settings;
struct volume *the_volume;
static struct reads *the_reads;
static struct purge_log the_purges;
unsigned units_left;

static void leave(void *arg, struct volume *volume, uint32_t segment) {
    (void)arg;
    (void)volume;
    (void)segment;
    units_left++;
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

static bool keep(void *arg, struct object *object) {
    (void)arg;
    (void)object;
    return true;
}

static void written(void *arg, struct object *object) {
    (void)arg;
    (void)object;
}

static _Atomic uint64_t next_serial = 1;

const struct volume_hooks the_hooks = {
    .max_variants = 32,
    .leave = leave,
    .outdated = outdated,
    .used = used,
    .keep = keep,
    .written = written,
    .next_serial = &next_serial,
};

void open_volume(void) {
    char error[SETTINGS_ERROR] = "";
    the_volume = volume_open(&the_settings, &the_hooks, error);
    ck_assert_msg(the_volume != NULL, "%s", error);
}

void start_volume(const char *name) {
    char *path;
    ck_assert(asprintf(&path, "%s/%s", scratch(), name) > 0);
    the_settings = (struct disk_settings){
        .path = path,
        .size = SIZE,
        .max_object = SIZE,
        .threads = 1,
        .write_queue = 64 << 20,
    };
    purge_log_init(&the_purges);
    the_reads = reads_new(1, false);
    open_volume();
    ck_assert(volume_start(the_volume));
}

void restart_volume(void) {
    volume_close(&the_volume);
    open_volume();
    ck_assert(volume_start(the_volume));
}

void stop_volume(void) {
    reads_free(&the_reads);
    volume_close(&the_volume);
    purge_log_release(&the_purges);
    unlink(the_settings.path);
    free(the_settings.path);
}

struct cache_key key_of_url(const char *url) {
    return cache_key_of(slice_from(url));
}

static char byte_of(const char *url, unsigned version, size_t at) {
    return (char)(key_of_url(url).low + version * 31 + at / 251 + at);
}

struct object *make_object(const char *url, unsigned version, size_t size) {
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
        object_new(key_of_url(url), slice_from(url), &request, &response, &freshness, body);
    body_release(&body);
    free(bytes);
    return object;
}

void store_variant(const char *url, uint32_t variant, unsigned version, size_t size) {
    struct object *object = make_object(url, version, size);
    volume_store(the_volume, object, variant, 0);
    object_release(&object);
}

void store_object(const char *url, unsigned version, size_t size) {
    store_variant(url, 1, version, size);
}

unsigned count_of_url(const char *url) {
    struct disk_place places[64];
    return disk_index_find(the_volume->index, key_of_url(url).low, places, 64);
}

static struct object *read_place(const char *url, const struct disk_place *place) {
    struct reading reading;
    if (!reading_begin(&reading, the_volume, place, key_of_url(url).low))
        return NULL;
    while (reading_wants(&reading))
        reading_got(&reading, volume_read(the_volume, reading.offset, reading.bytes, reading.length,
                                          VOLUME_MAY_WAIT));
    return reading_end(&reading, the_reads, &the_purges, NULL);
}

struct object *read_object(const char *url) {
    struct disk_place place;
    if (disk_index_find(the_volume->index, key_of_url(url).low, &place, 1) == 0)
        return NULL;
    return read_place(url, &place);
}

bool is_body_right(struct body *body, const char *url, unsigned version, size_t size) {
    char *bytes = malloc(size + 1);
    bool right = body_length(body) == size && body_copy(body, 0, bytes, size);
    for (size_t i = 0; right && i < size; i++)
        right = bytes[i] == byte_of(url, version, i);
    free(bytes);
    return right;
}

bool has_object(const char *url, unsigned version, size_t size) {
    struct object *object = read_object(url);
    bool right = object != NULL && count_of_url(url) == 1 &&
                 slice_equal(object_url(object), slice_from(url)) &&
                 is_body_right(object->body, url, version, size);
    object_release(&object);
    return right;
}

const char *numbered_url(unsigned number) {
    static char text[40];
    snprintf(text, sizeof text, "http://a/%u", number);
    return text;
}

void turn_the_ring(unsigned from) {
    for (unsigned i = 0; i < 80; i++) {
        store_object(numbered_url(from + i), 1, 400 * 1000);
        volume_flush(the_volume);
    }
}

struct volume_stream *open_stream(const char *url, size_t size) {
    struct object *object = make_object(url, 0, 0);
    struct volume_stream *stream = volume_stream_open(the_volume, object, 1, 0, size);
    object_release(&object);
    return stream;
}

void put_bytes(struct volume_stream *stream, const char *url, unsigned version, size_t from,
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

/* No byte stays as it was: what is there depends on the secret of the keys, which each process chooses. */
void overwrite(uint64_t offset, size_t length) {
    char *bytes = malloc(length);
    int fd = open(the_settings.path, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, bytes, length, (off_t)offset), (ssize_t)length);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)~bytes[i];
    ck_assert_int_eq(pwrite(fd, bytes, length, (off_t)offset), (ssize_t)length);
    close(fd);
    free(bytes);
}

uint64_t segment_at(unsigned segment) {
    return volume_offset((uint64_t)segment * SEGMENT / RECORD_ALIGN);
}

void fail_behind(uint64_t offset) {
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);
    limit.rlim_cur = offset == 0 ? limit.rlim_max : offset;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}
