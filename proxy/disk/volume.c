#include "disk/volume.h"

#include "base/assert.h"
#include "base/log.h"
#include "disk/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <linux/fs.h>

enum {
    SEGMENTS_WANTED = 256,
    SEGMENT_MIN = 1 << 20,
    SEGMENT_MAX = 64 << 20,
    SEGMENTS_LEAST = 4,
    PAGE = 4096,
    PLACES = 64, /* variants of a key that are looked at */
    REMOVAL_TRIES = 2,
};

static const char file_name[] = "retort.cache";

/* Opening. */

static int refuse(char error[SETTINGS_ERROR], const char *path, const char *what, const char *why,
                  const char *advice) {
    snprintf(error, SETTINGS_ERROR, "disk %s: %s: %s; %s", path, what, why, advice);
    return -1;
}

/* A directory stands for a file in it. */
static char *file_of(const char *path) {
    struct stat status;
    char *file = NULL;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
        return xstrdup(path);
    if (asprintf(&file, "%s/%s", path, file_name) < 0)
        ASSERT(false);
    return file;
}

static int open_file(struct volume *volume, char error[SETTINGS_ERROR]) {
    const char *path = volume->path;
    volume->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (volume->fd < 0)
        return refuse(error, path, "cannot open it", strerror(errno),
                      "name a directory, a file or a device that retort may write");
    if (flock(volume->fd, LOCK_EX | LOCK_NB) != 0)
        return refuse(error, path, "it is in use", strerror(errno),
                      "end the other retort, or give each its own");
    return 0;
}

static uint64_t device_size(int fd) {
    uint64_t size = 0;
    return ioctl(fd, BLKGETSIZE64, &size) == 0 ? size : 0;
}

/* Space is taken at once, so that the file system need not find it later and in pieces. Where that
 * can't be done the file has holes, and a write may fail. */
static int reserve(struct volume *volume, char error[SETTINGS_ERROR]) {
    struct stat status;
    const char *path = volume->path;
    uint64_t wanted = volume->settings->size;
    if (fstat(volume->fd, &status) != 0)
        return refuse(error, path, "cannot look at it", strerror(errno), "name another path");
    if (S_ISBLK(status.st_mode)) {
        if (device_size(volume->fd) < wanted)
            return refuse(error, path, "the device is too small", "size says more",
                          "set size to what it has, or less");
        return 0;
    }
    if (!S_ISREG(status.st_mode))
        return refuse(error, path, "it is neither a file nor a device", "it can't be written",
                      "name a directory, a file or a device");
    if ((uint64_t)status.st_size != wanted && ftruncate(volume->fd, (off_t)wanted) != 0)
        return refuse(error, path, "cannot give it its size", strerror(errno), "set size to less");
    int failed = posix_fallocate(volume->fd, 0, (off_t)wanted);
    if (failed != 0)
        log_warn("disk %s: there is no room for all of it: %s; what finds none is not kept there: "
                 "free some, or set size to less",
                 path, strerror(failed));
    return 0;
}

static void plan_segments(struct volume_header *header, uint64_t size) {
    uint64_t segment = size / SEGMENTS_WANTED / 4096 * 4096;
    segment = segment < SEGMENT_MIN ? SEGMENT_MIN : segment > SEGMENT_MAX ? SEGMENT_MAX : segment;
    memset(header, 0, sizeof *header);
    header->size = size;
    header->segment_size = segment;
    header->segment_count = (uint32_t)((size - SEGMENTS_AT) / segment);
    volume_header_seal(header);
}

static bool same_plan(const struct volume_header *a, const struct volume_header *b) {
    return a->size == b->size && a->segment_size == b->segment_size &&
           a->segment_count == b->segment_count;
}

/* The header that stands there, or a new one on an empty volume. */
static int begin_header(struct volume *volume, char error[SETTINGS_ERROR]) {
    struct volume_header *header = &volume->header, found;
    memset(&found, 0, sizeof found);
    plan_segments(header, volume->settings->size);
    ssize_t got = pread(volume->fd, &found, sizeof found, 0);
    bool good = got == (ssize_t)sizeof found && volume_header_good(&found);
    if (good && same_plan(&found, header)) {
        *header = found;
        return 0;
    }
    if (good)
        log_warn("disk %s: its size has changed from %lu to %lu bytes: it starts empty",
                 volume->path, (unsigned long)found.size, (unsigned long)header->size);
    else if (got > 0 && found.magic != 0)
        log_warn("disk %s: its header is damaged or not retort's: it starts empty", volume->path);
    if (getrandom(&header->identity, sizeof header->identity, 0) < 0)
        header->identity = (uint64_t)time(NULL);
    volume_header_seal(header);
    if (pwrite(volume->fd, header, sizeof *header, 0) != (ssize_t)sizeof *header)
        return refuse(error, volume->path, "cannot write to it", strerror(errno),
                      "check the device and its free space");
    return 0;
}

static int begin_segments(struct volume *volume, char error[SETTINGS_ERROR]) {
    volume->copies = !segment_detach_pages(volume->fd, PAGE, PAGE);
    const struct volume_header *header = &volume->header;
    if (header->segment_count < SEGMENTS_LEAST)
        return refuse(error, volume->path, "it is too small", "a few MB are needed",
                      "set size to more");
    if (header->segment_size / RECORD_ALIGN * header->segment_count > UINT32_MAX - 1)
        return refuse(error, volume->path, "it is too large", "one volume ends at 2 TB",
                      "use several disk sections");
    volume->segments = xcalloc(header->segment_count, sizeof *volume->segments);
    for (uint32_t i = 0; i < header->segment_count; i++) {
        volume->segments[i].run = 1;
        list_init(&volume->segments[i].bodies);
        atomic_init(&volume->segments[i].oldest, UINT64_MAX);
    }
    volume->index = disk_index_new(header->segment_count, segment_blocks(volume));
    volume->open_segment = VOLUME_NONE;
    volume->next_sequence = volume->next_serial = 1;
    void *map = mmap(NULL, header->size, PROT_READ, MAP_SHARED | MAP_NORESERVE, volume->fd, 0);
    volume->map = map == MAP_FAILED ? NULL : map;
    return 0;
}

static void release(struct volume *volume) {
    segment_release_rescued(volume);
    if (volume->index != NULL)
        disk_index_free(&volume->index);
    if (volume->map != NULL)
        munmap(volume->map, volume->header.size);
    if (volume->fd >= 0)
        close(volume->fd);
    free(volume->contents);
    free(volume->segments);
    free(volume->path);
    pthread_mutex_destroy(&volume->bodies_lock);
    pthread_mutex_destroy(&volume->lock);
    pthread_cond_destroy(&volume->ready);
}

struct volume *volume_open(const struct disk_settings *settings, const struct volume_hooks *hooks,
                           char error[SETTINGS_ERROR]) {
    struct volume *volume;
    ALLOC_OBJ(volume, VOLUME_MAGIC);
    volume->settings = settings;
    volume->hooks = *hooks;
    volume->path = file_of(settings->path);
    volume->fd = -1;
    pthread_mutex_init(&volume->bodies_lock, NULL);
    pthread_mutex_init(&volume->lock, NULL);
    pthread_cond_init(&volume->ready, NULL);
    list_init(&volume->jobs);
    list_init(&volume->streams);
    list_init(&volume->rescued);
    if (open_file(volume, error) == 0 && reserve(volume, error) == 0 &&
        begin_header(volume, error) == 0 && begin_segments(volume, error) == 0) {
        volume_recover(volume);
        return volume;
    }
    release(volume);
    FREE_OBJ(volume);
    return NULL;
}

/* Jobs. */

enum job_kind { JOB_STORE, JOB_REMOVE, JOB_FLUSH, JOB_STREAM_OPEN, JOB_STREAM_PUT, JOB_STREAM_END };

struct volume_job {
    struct list_link link;
    enum job_kind kind;
    struct cache_key key;
    uint32_t variant;
    uint64_t events;
    struct object *object; /* owned */
    sem_t *done;           /* JOB_FLUSH */
    struct volume_stream *stream;
    _Atomic bool cancelled; /* set under the volume's lock */
    bool whole;
    size_t cost;
    size_t length; /* of bytes */
    char bytes[];  /* JOB_STREAM_PUT: of the body; JOB_REMOVE: struct removed */
};

/* A record that is removed. */
struct removed {
    uint64_t sequence;
    struct disk_place place;
};

/* A sum for each RECORD_CHUNK, whatever the pieces are. */
struct summing {
    XXH3_state_t *state;
    size_t in_chunk;
    uint64_t *sums;
    size_t chunk;
};

struct volume_stream {
    unsigned magic;
#define VOLUME_STREAM_MAGIC 0xd15c57e4u
    struct volume *volume;
    struct list_link link; /* under the volume's lock */
    _Atomic bool failed, cancelled;
    struct object *object; /* referenced */
    uint32_t variant;
    uint64_t events, body_length;
    /* the writer's */
    bool gathers;              /* it will share a segment: its bytes wait until they are whole */
    struct list_link gathered; /* JOB_STREAM_PUT; they still count as queued */
    uint32_t first;            /* segment; VOLUME_NONE: none yet */
    size_t front_length;
    uint64_t written;
    uint64_t *sums;
    struct summing summing;
};

static struct volume_job *job_new(enum job_kind kind, size_t length) {
    struct volume_job *job = malloc(sizeof *job + length);
    if (job == NULL)
        return NULL;
    memset(job, 0, sizeof *job);
    job->kind = kind;
    job->length = length;
    job->cost = sizeof *job + length;
    list_init(&job->link);
    return job;
}

static void job_free(struct volume_job *job) {
    object_release(&job->object);
    free(job);
}

/* Under the lock. Only objects can be left out: everything else is small or must not be lost. One
 * that is larger than the queue may be is written when nothing else waits. */
static bool enqueue(struct volume *volume, struct volume_job *job, bool may_drop) {
    if (may_drop && volume->queued > 0 &&
        volume->queued + job->cost > volume->settings->write_queue)
        return false;
    volume->queued += job->cost;
    list_append(&volume->jobs, &job->link);
    pthread_cond_signal(&volume->ready);
    return true;
}

static void count_dropped(struct volume *volume) {
    atomic_fetch_add_explicit(&volume->count.dropped, 1, memory_order_relaxed);
}

static bool enqueue_or_drop(struct volume *volume, struct volume_job *job) {
    pthread_mutex_lock(&volume->lock);
    bool queued = enqueue(volume, job, true);
    pthread_mutex_unlock(&volume->lock);
    if (!queued) {
        count_dropped(volume);
        job_free(job);
    }
    return queued;
}

static bool store(struct volume *volume, struct object *object, uint32_t variant, uint64_t events) {
    struct volume_job *job = job_new(JOB_STORE, 0);
    if (job == NULL)
        return false;
    job->key = object->key;
    job->variant = variant;
    job->events = events;
    job->object = object_reference(object);
    job->cost += object_cost(object);
    return enqueue_or_drop(volume, job);
}

void volume_store(struct volume *volume, struct object *object, uint32_t variant, uint64_t events) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    if (!store(volume, object, variant, events))
        volume_remove(volume, object->key, variant); /* what it would have replaced */
}

static bool is_of(struct cache_key its_key, uint32_t its_variant, struct cache_key key,
                  uint32_t variant) {
    return its_key.low == key.low && its_key.high == key.high &&
           (variant == DISK_ANY_VARIANT || its_variant == variant);
}

static unsigned cancel_streams(struct volume *volume, struct cache_key key, uint32_t variant) {
    unsigned count = 0;
    LIST_FOR_EACH_SAFE (link, next, &volume->streams) {
        struct volume_stream *stream = CONTAINER_OF(link, struct volume_stream, link);
        if (!is_of(stream->object->key, stream->variant, key, variant))
            continue;
        count += !stream->cancelled;
        stream->cancelled = true;
    }
    return count;
}

/* Under the lock: what is on its way to the volume shall not arrive. *known: some of it may stand
 * there already. */
static unsigned cancel_jobs(struct volume *volume, struct cache_key key, uint32_t variant,
                            bool *known) {
    unsigned count = cancel_streams(volume, key, variant);
    LIST_FOR_EACH_SAFE (link, next, &volume->jobs) {
        struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        if (job->kind != JOB_STORE || !is_of(job->key, job->variant, key, variant))
            continue;
        count += !job->cancelled;
        job->cancelled = true;
    }
    struct volume_job *current = volume->current;
    bool writing = current != NULL && is_of(current->key, current->variant, key, variant);
    if (writing)
        current->cancelled = true;
    *known = segment_forget_rescued(volume, key.low, variant) || writing;
    return count;
}

static bool stands_alone(const struct volume *volume, const struct disk_place *place) {
    return segment_run_for(volume, (uint64_t)place->blocks * RECORD_ALIGN) > 0;
}

/* Units of large records are given back, since a record of the removal might be reclaimed before
 * them; the others are noted in case that it can't be written. */
static struct volume_job *removal_of(struct volume *volume, const struct disk_place *places,
                                     unsigned count, uint32_t variant) {
    struct volume_job *job = job_new(JOB_REMOVE, count * sizeof(struct removed));
    ASSERT(job != NULL);
    struct removed *removed = (struct removed *)(void *)job->bytes;
    job->length = 0;
    for (unsigned i = 0; i < count; i++)
        if (variant == DISK_ANY_VARIANT || places[i].variant == variant)
            removed[job->length++] = (struct removed){
                .sequence = atomic_load(&volume->segments[places[i].segment].sequence),
                .place = places[i],
            };
    return job;
}

unsigned volume_remove(struct volume *volume, struct cache_key key, uint32_t variant) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    struct disk_place places[PLACES];
    bool known;
    pthread_mutex_lock(&volume->lock);
    unsigned count = cancel_jobs(volume, key, variant, &known);
    unsigned found = disk_index_find(volume->index, key.low, places, PLACES);
    struct volume_job *job = removal_of(volume, places, found, variant);
    if (known || job->length > 0) {
        job->key = key;
        job->variant = variant;
        /* First queued, then gone: whoever finds nothing can rely on the record that follows. */
        enqueue(volume, job, false);
        count += disk_index_remove(volume->index, key.low, variant);
        job = NULL;
    }
    pthread_mutex_unlock(&volume->lock);
    if (job != NULL)
        job_free(job);
    return count;
}

void volume_flush(struct volume *volume) {
    sem_t done;
    struct volume_job *job = volume->started ? job_new(JOB_FLUSH, 0) : NULL;
    if (job == NULL)
        return;
    sem_init(&done, 0, 0);
    job->done = &done;
    pthread_mutex_lock(&volume->lock);
    enqueue(volume, job, false);
    pthread_mutex_unlock(&volume->lock);
    while (sem_wait(&done) != 0)
        continue;
    sem_destroy(&done);
}

/* The writer. */

/* Pieces of a whole body; the caller frees them. */
static struct iovec *pieces_of(struct body *body, int *count) {
    enum { SOME = 64 };
    struct iovec *pieces = NULL;
    struct body_reader reader;
    *count = 0;
    body_reader_open(&reader, body, NULL, NULL);
    for (;;) {
        size_t bytes;
        pieces = xrealloc(pieces, ((size_t)*count + SOME) * sizeof *pieces);
        int got = body_reader_pieces(&reader, pieces + *count, SOME, &bytes);
        if (got == 0)
            break;
        *count += got;
        body_reader_advance(&reader, bytes);
    }
    body_reader_close(&reader);
    return pieces;
}

static void summing_begin(struct summing *summing, uint64_t *sums) {
    memset(summing, 0, sizeof *summing);
    summing->state = XXH3_createState();
    ASSERT(summing->state != NULL);
    XXH3_64bits_reset(summing->state);
    summing->sums = sums;
}

static void summing_chunk(struct summing *summing) {
    summing->sums[summing->chunk++] = XXH3_64bits_digest(summing->state);
    XXH3_64bits_reset(summing->state);
    summing->in_chunk = 0;
}

static void summing_add(struct summing *summing, const char *bytes, size_t length) {
    while (length > 0) {
        size_t room = RECORD_CHUNK - summing->in_chunk, piece = length < room ? length : room;
        XXH3_64bits_update(summing->state, bytes, piece);
        summing->in_chunk += piece;
        bytes += piece;
        length -= piece;
        if (summing->in_chunk == RECORD_CHUNK)
            summing_chunk(summing);
    }
}

static void summing_release(struct summing *summing) {
    XXH3_freeState(summing->state);
    summing->state = NULL;
}

static void summing_end(struct summing *summing) {
    if (summing->in_chunk > 0)
        summing_chunk(summing);
    summing_release(summing);
}

static uint64_t *sums_of(const struct iovec *pieces, int count, uint64_t length) {
    struct summing summing;
    uint64_t *sums = xcalloc(record_chunks(length) + 1, sizeof *sums);
    summing_begin(&summing, sums);
    for (int i = 0; i < count; i++)
        summing_add(&summing, pieces[i].iov_base, pieces[i].iov_len);
    summing_end(&summing);
    return sums;
}

static struct record_front front_of(const struct volume_job *job, uint64_t body_length) {
    const struct object *object = job->object;
    struct record_front front = {
        .kind = RECORD_OBJECT,
        .key = job->key,
        .variant = job->variant,
        .events = job->events,
        .body_length = body_length,
        .url_length = object->url_length,
        .head_length = object->head_length,
        .vary_length = object->vary_length,
    };
    object_export(object, &front.image);
    return front;
}

static struct record_texts texts_of(const struct object *object) {
    return (struct record_texts){object_url(object), object_head(object), object_vary(object)};
}

/* A record that is replaced gives its unit back, if it has one. */
static void abandon_replaced(struct volume *volume, uint64_t key, uint32_t variant,
                             uint32_t but_at) {
    struct disk_place places[PLACES];
    unsigned count = disk_index_find(volume->index, key, places, PLACES);
    for (unsigned i = 0; i < count; i++)
        if (places[i].variant == variant && places[i].at != but_at &&
            stands_alone(volume, &places[i]))
            segment_abandon(volume, places[i].segment);
}

/* Unless it was removed while it was written. */
static void publish(struct volume *volume, struct volume_job *job, uint32_t at,
                    const struct record_front *front) {
    const struct volume_stream *stream = job->stream;
    uint64_t length = record_front_length(front) + front->body_length;
    struct disk_place place = {
        .variant = job->variant,
        .at = at,
        .blocks = (uint32_t)record_blocks(length),
        .segment = at / segment_blocks(volume),
    };
    abandon_replaced(volume, job->key.low, job->variant, at);
    pthread_mutex_lock(&volume->lock);
    bool wanted = !job->cancelled && (stream == NULL || !stream->cancelled);
    segment_forget_rescued(volume, job->key.low, job->variant);
    if (wanted)
        disk_index_put(volume->index, job->key.low, &place);
    pthread_mutex_unlock(&volume->lock);
    if (!wanted && stands_alone(volume, &place))
        segment_abandon(volume, place.segment);
}

static bool is_paused(const struct volume *volume) {
    return volume->paused_until > time(NULL);
}

static bool write_removal(struct volume *volume, const struct volume_job *job) {
    struct record_texts nothing = {SLICE(""), SLICE(""), SLICE("")};
    for (unsigned i = 0; i < REMOVAL_TRIES; i++) {
        struct record_front front = {
            .kind = RECORD_REMOVAL,
            .key = job->key,
            .variant = job->variant,
        };
        if (segment_append(volume, &front, &nothing, NULL, NULL, 0) != VOLUME_NONE)
            return true;
    }
    return false;
}

static void do_remove(struct volume *volume, const struct volume_job *job) {
    const struct removed *removed = (const struct removed *)(const void *)job->bytes;
    disk_index_remove(volume->index, job->key.low, job->variant);
    bool written = write_removal(volume, job);
    for (size_t i = 0; i < job->length; i++) {
        const struct disk_place *place = &removed[i].place;
        if (atomic_load(&volume->segments[place->segment].sequence) != removed[i].sequence)
            continue;
        if (stands_alone(volume, place))
            segment_abandon(volume, place->segment);
        else if (!written)
            segment_spoil_record(volume, place->at);
    }
}

/* What it would have replaced must not be found in its place. */
static void leave_out(struct volume *volume, const struct volume_job *job) {
    struct disk_place places[PLACES];
    count_dropped(volume);
    pthread_mutex_lock(&volume->lock);
    bool some = segment_forget_rescued(volume, job->key.low, job->variant);
    unsigned found = disk_index_find(volume->index, job->key.low, places, PLACES);
    struct volume_job *removal = removal_of(volume, places, found, job->variant);
    pthread_mutex_unlock(&volume->lock);
    removal->key = job->key;
    removal->variant = job->variant;
    if (some || removal->length > 0)
        do_remove(volume, removal);
    job_free(removal);
}

static void do_store(struct volume *volume, struct volume_job *job) {
    if (is_paused(volume)) {
        leave_out(volume, job);
        return;
    }
    struct body *body = job->object->body;
    uint64_t length = body_length(body);
    int count;
    struct iovec *pieces = pieces_of(body, &count);
    uint64_t *sums = sums_of(pieces, count, length);
    struct record_front front = front_of(job, length);
    struct record_texts texts = texts_of(job->object);
    uint32_t at = segment_append(volume, &front, &texts, sums, pieces, count);
    if (at != VOLUME_NONE)
        publish(volume, job, at, &front);
    else
        leave_out(volume, job);
    free(sums);
    free(pieces);
}

/* Streams. */

struct volume_stream *volume_stream_open(struct volume *volume, struct object *object,
                                         uint32_t variant, uint64_t events, uint64_t length) {
    struct volume_stream *stream;
    struct volume_job *job = job_new(JOB_STREAM_OPEN, 0);
    if (job == NULL)
        return NULL;
    ALLOC_OBJ(stream, VOLUME_STREAM_MAGIC);
    list_init(&stream->link);
    list_init(&stream->gathered);
    stream->volume = volume;
    stream->object = object_reference(object);
    stream->variant = variant;
    stream->events = events;
    stream->body_length = length;
    stream->first = VOLUME_NONE;
    job->stream = stream;
    job->object = object_reference(object);
    job->key = object->key;
    job->variant = variant;
    job->events = events;
    pthread_mutex_lock(&volume->lock);
    list_append(&volume->streams, &stream->link);
    enqueue(volume, job, false);
    pthread_mutex_unlock(&volume->lock);
    return stream;
}

void volume_stream_put(struct volume_stream *stream, struct slice bytes) {
    CHECK_OBJ(stream, VOLUME_STREAM_MAGIC);
    struct volume *volume = stream->volume;
    if (atomic_load_explicit(&stream->failed, memory_order_relaxed))
        return;
    struct volume_job *job = job_new(JOB_STREAM_PUT, bytes.length);
    bool queued = false;
    if (job != NULL) {
        memcpy(job->bytes, bytes.base, bytes.length);
        job->stream = stream;
        pthread_mutex_lock(&volume->lock);
        queued = enqueue(volume, job, true);
        pthread_mutex_unlock(&volume->lock);
    }
    if (queued)
        return;
    atomic_store(&stream->failed, true);
    if (job != NULL)
        job_free(job);
}

void volume_stream_close(struct volume_stream **streamp, bool whole) {
    struct volume_stream *stream = *streamp;
    *streamp = NULL;
    if (stream == NULL)
        return;
    CHECK_OBJ(stream, VOLUME_STREAM_MAGIC);
    struct volume *volume = stream->volume;
    struct volume_job *job = xcalloc(1, sizeof *job);
    job->kind = JOB_STREAM_END;
    job->stream = stream;
    job->whole = whole;
    job->key = stream->object->key;
    job->variant = stream->variant;
    job->events = stream->events;
    job->object = object_reference(stream->object);
    pthread_mutex_lock(&volume->lock);
    enqueue(volume, job, false);
    pthread_mutex_unlock(&volume->lock);
}

static void do_stream_open(struct volume *volume, struct volume_job *job) {
    struct volume_stream *stream = job->stream;
    struct record_front front = front_of(job, stream->body_length);
    stream->front_length = record_front_length(&front);
    uint64_t length = stream->front_length + stream->body_length;
    uint32_t run = segment_run_for(volume, length);
    bool wanted = !is_paused(volume) && !stream->cancelled;
    stream->gathers = wanted && run == 0;
    if (wanted && run > 0)
        stream->first = segment_take(volume, run);
    if (stream->first == VOLUME_NONE) {
        stream->failed = !stream->gathers;
        return;
    }
    volume->segments[stream->first].streaming = true;
    atomic_store(&volume->segments[stream->first].oldest, stream->events);
    stream->sums = xcalloc(record_chunks(stream->body_length) + 1, sizeof *stream->sums);
    summing_begin(&stream->summing, stream->sums);
}

static void write_through(struct volume *volume, struct volume_stream *stream,
                          struct volume_job *job) {
    uint64_t offset = volume_offset((uint64_t)stream->first * segment_blocks(volume)) +
                      SEGMENT_START + stream->front_length + stream->written;
    struct iovec piece = {job->bytes, job->length};
    if (volume_put_bytes(volume, &piece, 1, offset))
        summing_add(&stream->summing, job->bytes, job->length);
    else
        stream->failed = true;
}

/* False: the job is kept. */
static bool do_stream_put(struct volume *volume, struct volume_job *job) {
    struct volume_stream *stream = job->stream;
    if (stream->written + job->length > stream->body_length)
        stream->failed = true;
    if (stream->failed || stream->cancelled)
        return true;
    if (stream->gathers)
        list_append(&stream->gathered, &job->link);
    else
        write_through(volume, stream, job);
    stream->written += job->length;
    return !stream->gathers;
}

/* What has been gathered is a record like others. */
static uint32_t append_gathered(struct volume *volume, struct volume_stream *stream,
                                struct record_front *front, const struct record_texts *texts) {
    int count = 0;
    struct iovec *pieces = NULL;
    LIST_FOR_EACH_SAFE (link, next, &stream->gathered) {
        struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        if ((count & (count - 1)) == 0)
            pieces = xrealloc(pieces, ((size_t)count * 2 + 1) * sizeof *pieces);
        pieces[count++] = (struct iovec){job->bytes, job->length};
    }
    uint64_t *sums = sums_of(pieces, count, stream->body_length);
    uint32_t at = segment_append(volume, front, texts, sums, pieces, count);
    free(sums);
    free(pieces);
    return at;
}

static void finish_stream(struct volume *volume, struct volume_stream *stream,
                          struct volume_job *job) {
    struct record_front front = front_of(job, stream->body_length);
    struct record_texts texts = texts_of(stream->object);
    uint32_t at = stream->gathers
                      ? append_gathered(volume, stream, &front, &texts)
                      : segment_finish_alone(volume, stream->first, &front, &texts, stream->sums);
    if (at != VOLUME_NONE)
        publish(volume, job, at, &front);
    else
        count_dropped(volume);
}

static void stream_free(struct volume_stream *stream) {
    struct volume *volume = stream->volume;
    pthread_mutex_lock(&volume->lock);
    list_remove(&stream->link);
    LIST_FOR_EACH_SAFE (link, next, &stream->gathered) {
        struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        volume->queued -= job->cost;
        job_free(job);
    }
    pthread_mutex_unlock(&volume->lock);
    summing_release(&stream->summing);
    free(stream->sums);
    object_release(&stream->object);
    FREE_OBJ(stream);
}

static void do_stream_end(struct volume *volume, struct volume_job *job) {
    struct volume_stream *stream = job->stream;
    if (stream->first != VOLUME_NONE) {
        volume->segments[stream->first].streaming = false;
        summing_end(&stream->summing);
    }
    if (job->whole && !stream->cancelled && !stream->failed &&
        stream->written == stream->body_length)
        finish_stream(volume, stream, job);
    else if (stream->first != VOLUME_NONE)
        segment_give_back(volume, stream->first);
    stream_free(stream);
}

/* False: the job is kept. */
static bool do_job(struct volume *volume, struct volume_job *job) {
    bool done = true;
    switch (job->kind) {
    case JOB_STORE:
        if (!job->cancelled)
            do_store(volume, job);
        break;
    case JOB_REMOVE: do_remove(volume, job); break;
    case JOB_FLUSH: sem_post(job->done); break;
    case JOB_STREAM_OPEN: do_stream_open(volume, job); break;
    case JOB_STREAM_PUT: done = do_stream_put(volume, job); break;
    case JOB_STREAM_END: do_stream_end(volume, job); break;
    }
    segment_write_rescued(volume);
    return done;
}

/* The next job, now `current`; NULL: all is done and the volume is to be closed. */
static struct volume_job *next_job(struct volume *volume) {
    struct list_link *link;
    pthread_mutex_lock(&volume->lock);
    while ((link = list_first(&volume->jobs)) == NULL && !volume->stopping)
        pthread_cond_wait(&volume->ready, &volume->lock);
    struct volume_job *job = NULL;
    if (link != NULL) {
        list_remove(link);
        job = CONTAINER_OF(link, struct volume_job, link);
    }
    volume->current = job;
    pthread_mutex_unlock(&volume->lock);
    return job;
}

static void end_job(struct volume *volume, struct volume_job *job, bool done) {
    pthread_mutex_lock(&volume->lock);
    if (done)
        volume->queued -= job->cost;
    volume->current = NULL;
    pthread_mutex_unlock(&volume->lock);
    if (done)
        job_free(job);
}

static void *write_jobs(void *arg) {
    struct volume *volume;
    struct volume_job *job;
    CAST_OBJ(volume, arg, VOLUME_MAGIC);
    while ((job = next_job(volume)) != NULL) {
        bool done = do_job(volume, job);
        end_job(volume, job, done);
    }
    segment_seal_open(volume);
    return NULL;
}

bool volume_start(struct volume *volume) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    volume->started = pthread_create(&volume->thread, NULL, write_jobs, volume) == 0;
    return volume->started;
}

void volume_stop(struct volume *volume) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    pthread_mutex_lock(&volume->lock);
    volume->stopping = true;
    pthread_cond_signal(&volume->ready);
    pthread_mutex_unlock(&volume->lock);
    if (volume->started)
        pthread_join(volume->thread, NULL);
    volume->started = false;
}

void volume_close(struct volume **volumep) {
    struct volume *volume = *volumep;
    struct list_link *link;
    *volumep = NULL;
    if (volume == NULL)
        return;
    volume_stop(volume);
    while ((link = list_first(&volume->jobs)) != NULL) {
        struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        list_remove(link);
        job_free(job);
    }
    while ((link = list_first(&volume->streams)) != NULL)
        stream_free(CONTAINER_OF(link, struct volume_stream, link));
    release(volume);
    FREE_OBJ(volume);
}

/* Purges. */

static uint64_t purges_at(uint64_t sequence) {
    return VOLUME_HEADER_SIZE + sequence % 2 * PURGES_SIZE;
}

bool volume_write_purges(struct volume *volume, struct slice text, uint64_t floor,
                         uint64_t newest) {
    ASSERT(text.length <= PURGES_SIZE - sizeof(struct purges_header));
    struct purges_header header = {
        .identity = volume->header.identity,
        .sequence = volume->purges_sequence + 1,
        .floor = floor,
        .newest = newest,
    };
    purges_header_seal(&header, text);
    struct iovec pieces[] = {{&header, sizeof header}, {(void *)text.base, text.length}};
    uint64_t offset = purges_at(header.sequence);
    size_t length = sizeof header + text.length;
    ssize_t sent = pwritev(volume->fd, pieces, 2, (off_t)offset);
    if (sent == (ssize_t)length) {
        volume->purges_sequence = header.sequence; /* else the next one goes to the same place */
        return true;
    }
    atomic_fetch_add_explicit(&volume->count.errors, 1, memory_order_relaxed);
    log_error(
        "disk %s: a purge could not be written: %s; after a restart it would not count there: "
        "purge again, or remove the file before it",
        volume->path, strerror(sent < 0 ? errno : EIO));
    return false;
}

static bool read_purges_at(struct volume *volume, uint64_t sequence, struct purges_header *header,
                           char **text) {
    uint64_t offset = purges_at(sequence);
    *text = NULL;
    if (pread(volume->fd, header, sizeof *header, (off_t)offset) != (ssize_t)sizeof *header ||
        !purges_header_good(header, volume->header.identity))
        return false;
    *text = xmalloc(header->text_length + 1);
    ssize_t got = pread(volume->fd, *text, header->text_length, (off_t)(offset + sizeof *header));
    (*text)[header->text_length] = '\0';
    if (got == (ssize_t)header->text_length &&
        record_sum(*text, header->text_length) == header->text_sum)
        return true;
    free(*text);
    *text = NULL;
    return false;
}

struct slice volume_read_purges(struct volume *volume, uint64_t *floor, uint64_t *newest) {
    struct purges_header headers[2];
    char *texts[2];
    bool good[2];
    for (unsigned i = 0; i < 2; i++)
        good[i] = read_purges_at(volume, i, &headers[i], &texts[i]);
    unsigned best = good[1] && (!good[0] || headers[1].sequence > headers[0].sequence);
    free(texts[1 - best]);
    *floor = *newest = 0;
    if (!good[best])
        return slice_make(NULL, 0);
    volume->purges_sequence = headers[best].sequence;
    *floor = headers[best].floor;
    *newest = headers[best].newest;
    return slice_make(texts[best], headers[best].text_length);
}

uint64_t volume_oldest(struct volume *volume) {
    uint64_t oldest = UINT64_MAX;
    for (uint32_t i = 0; i < volume->header.segment_count; i++) {
        uint64_t one = atomic_load_explicit(&volume->segments[i].oldest, memory_order_relaxed);
        oldest = one < oldest ? one : oldest;
    }
    pthread_mutex_lock(&volume->lock);
    LIST_FOR_EACH_SAFE (link, next, &volume->jobs) {
        const struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        if (job->object != NULL && job->events < oldest)
            oldest = job->events;
    }
    if (volume->current != NULL && volume->current->object != NULL &&
        volume->current->events < oldest)
        oldest = volume->current->events;
    LIST_FOR_EACH_SAFE (link, next, &volume->streams) {
        const struct volume_stream *stream = CONTAINER_OF(link, struct volume_stream, link);
        oldest = stream->events < oldest ? stream->events : oldest;
    }
    if (!list_empty(&volume->rescued))
        oldest = 0; /* theirs are not known here */
    pthread_mutex_unlock(&volume->lock);
    return oldest;
}

/* Reading. */

bool volume_pin(struct volume *volume, const struct disk_place *place, uint64_t *sequence) {
    struct volume_segment *segment = &volume->segments[place->segment];
    atomic_fetch_add(&segment->pins, 1);
    if (!atomic_load(&segment->leaving)) {
        *sequence = atomic_load(&segment->sequence);
        return true;
    }
    atomic_fetch_sub(&segment->pins, 1);
    return false;
}

void volume_unpin(struct volume *volume, const struct disk_place *place) {
    atomic_fetch_sub(&volume->segments[place->segment].pins, 1);
}

void volume_report_read_error(struct volume *volume, uint64_t offset, int error) {
    atomic_fetch_add_explicit(&volume->count.errors, 1, memory_order_relaxed);
    log_error("disk %s: cannot read at %lu: %s; the object is lost: check the device", volume->path,
              (unsigned long)offset, strerror(error));
}

bool volume_read(struct volume *volume, uint64_t offset, void *bytes, size_t length,
                 enum volume_patience patience) {
    char *at = bytes;
    while (length > 0) {
        struct iovec piece = {at, length};
        ssize_t got = preadv2(volume->fd, &piece, 1, (off_t)offset,
                              patience == VOLUME_AT_ONCE ? RWF_NOWAIT : 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 && patience == VOLUME_AT_ONCE)
            return false; /* whatever it is, a patient reader finds out */
        if (got <= 0) {
            volume_report_read_error(volume, offset, got == 0 ? EIO : errno);
            return false;
        }
        at += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return true;
}

bool volume_is_resident(const struct volume *volume, uint64_t offset, size_t length) {
    enum { PAGES_MAX = 2 * RECORD_CHUNK / PAGE };
    unsigned char pages[PAGES_MAX];
    uint64_t begin = offset / PAGE * PAGE;
    size_t count = (size_t)((offset + length - begin + PAGE - 1) / PAGE);
    if (volume->map == NULL)
        return true; /* it is not known, and asking again would not help */
    if (count > PAGES_MAX || mincore(volume->map + begin, count * PAGE, pages) != 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if ((pages[i] & 1) == 0)
            return false;
    return true;
}

void volume_report_bad(struct volume *volume, uint64_t key, const struct disk_place *place,
                       const char *what) {
    if (!disk_index_remove_place(volume->index, key, place->at))
        return;
    atomic_fetch_add_explicit(&volume->count.corrupt, 1, memory_order_relaxed);
    log_error("disk %s: the record at %lu is damaged (%s); the object is lost: if that goes on, "
              "check the device",
              volume->path, (unsigned long)volume_offset(place->at), what);
}

void volume_statistics(const struct volume *volume, struct volume_statistics *statistics) {
#define LOAD(name)                                                                                 \
    statistics->name = atomic_load_explicit(&volume->count.name, memory_order_relaxed)
    statistics->objects = disk_index_count(volume->index);
    statistics->capacity = volume->header.segment_size * volume->header.segment_count;
    statistics->index_bytes = disk_index_memory(volume->index);
    LOAD(writes);
    LOAD(bytes_written);
    LOAD(dropped);
    LOAD(errors);
    LOAD(corrupt);
    LOAD(reclaimed);
    LOAD(rewritten);
#undef LOAD
}
