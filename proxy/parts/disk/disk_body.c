#include "disk/disk_body.h"

#include "base/assert.h"
#include "cache/memory.h"

#include <fcntl.h>
#include <string.h>

enum { PENDING_MAX = 4 };

struct disk_body {
    struct body_backing backing; /* the first member */
    unsigned magic;
#define DISK_BODY_MAGIC 0xd15cb0d1u
    struct volume *volume;
    struct reads *reads;
    struct disk_place place;
    struct list_link link; /* of the segment's */
    struct cache_key key;
    uint64_t length;
    size_t chunk_count;
    pthread_mutex_t lock;
    struct list_link waiting;
    size_t pending[PENDING_MAX]; /* chunks that are being read, and one */
    _Atomic uint64_t *verified;  /* one bit for each chunk */
    _Atomic uint64_t *fresh;     /* the same for chunks that were read and not sent yet */
    uint64_t sums[];
};

/* Memory of the cache, like that of the object. The bits follow the sums. */
static size_t words_of(size_t chunk_count) {
    return chunk_count / 64 + 1;
}

static size_t disk_body_size_of(size_t chunk_count) {
    return sizeof(struct disk_body) + (chunk_count + 2 * words_of(chunk_count)) * sizeof(uint64_t);
}

static struct disk_body *disk_body_of(struct body_backing *backing) {
    struct disk_body *disk_body = (struct disk_body *)(void *)backing;
    CHECK_OBJ(disk_body, DISK_BODY_MAGIC);
    return disk_body;
}

static size_t chunk_length(const struct disk_body *disk_body, size_t chunk) {
    uint64_t left = disk_body->length - (uint64_t)chunk * RECORD_CHUNK;
    return left < RECORD_CHUNK ? (size_t)left : RECORD_CHUNK;
}

static uint64_t chunk_offset(const struct disk_body *disk_body, size_t chunk) {
    return disk_body->backing.offset + (uint64_t)chunk * RECORD_CHUNK;
}

static bool is_verified(const struct disk_body *disk_body, size_t chunk) {
    uint64_t bits = atomic_load_explicit(&disk_body->verified[chunk / 64], memory_order_acquire);
    return bits >> chunk % 64 & 1;
}

/* The flag is used once for each read. Otherwise, when memory is short, readers could wait for
 * ever for a chunk that is dropped again before they send it. */
static bool was_just_read(struct disk_body *disk_body, size_t chunk) {
    uint64_t bit = UINT64_C(1) << chunk % 64;
    return (atomic_fetch_and_explicit(&disk_body->fresh[chunk / 64], ~bit, memory_order_relaxed) &
            bit) != 0;
}

static size_t ready(struct body_backing *backing, uint64_t position) {
    struct disk_body *disk_body = disk_body_of(backing);
    size_t chunk = (size_t)(position / RECORD_CHUNK), length = chunk_length(disk_body, chunk);
    size_t within = (size_t)(position % RECORD_CHUNK);
    if (!is_verified(disk_body, chunk))
        return 0;
    if (!was_just_read(disk_body, chunk) &&
        !volume_is_resident(disk_body->volume, disk_body->backing.offset + position,
                            length - within))
        return 0;
    return length - within;
}

static void note_verified(struct disk_body *disk_body, size_t chunk) {
    uint64_t bit = UINT64_C(1) << chunk % 64;
    atomic_fetch_or_explicit(&disk_body->fresh[chunk / 64], bit, memory_order_relaxed);
    atomic_fetch_or_explicit(&disk_body->verified[chunk / 64], bit, memory_order_release);
}

static bool is_good(struct disk_body *disk_body, size_t chunk, const char *bytes) {
    if (record_sum(bytes, chunk_length(disk_body, chunk)) != disk_body->sums[chunk]) {
        volume_report_bad(disk_body->volume, disk_body->key.low, &disk_body->place, "its body");
        return false;
    }
    note_verified(disk_body, chunk);
    return true;
}

static void disk_body_give_up(struct disk_body *disk_body) {
    disk_index_remove_place(disk_body->volume->index, disk_body->key.low, disk_body->place.at);
}

/* Reads and verifies a chunk. It is then in the page cache and known to be good. */
static bool read_now(struct disk_body *disk_body, size_t chunk, char *bytes) {
    if (volume_read(disk_body->volume, chunk_offset(disk_body, chunk), bytes,
                    chunk_length(disk_body, chunk), VOLUME_MAY_WAIT))
        return is_good(disk_body, chunk, bytes);
    disk_body_give_up(disk_body);
    return false;
}

/* A chunk that is read into the page cache. Its bytes are only verified. */
struct chunk_read {
    struct disk_read read;
    struct disk_body *disk_body;
    struct body *body; /* referenced: both live on */
    size_t chunk;
    char bytes[RECORD_CHUNK];
};

static void end_pending(struct disk_body *disk_body, size_t chunk) {
    pthread_mutex_lock(&disk_body->lock);
    for (unsigned i = 0; i < PENDING_MAX; i++)
        if (disk_body->pending[i] == chunk + 1)
            disk_body->pending[i] = 0;
    waiters_wake(&disk_body->waiting, NULL);
    pthread_mutex_unlock(&disk_body->lock);
}

/* A reader of one chunk will need the next one. */
static void fetch_next(const struct disk_body *disk_body, size_t chunk) {
    if (chunk + 1 < disk_body->chunk_count)
        posix_fadvise(disk_body->backing.fd, (off_t)chunk_offset(disk_body, chunk + 1),
                      (off_t)chunk_length(disk_body, chunk + 1), POSIX_FADV_WILLNEED);
}

static void on_chunk(struct disk_read *read) {
    struct chunk_read *chunk_read = CONTAINER_OF(read, struct chunk_read, read);
    struct disk_body *disk_body = chunk_read->disk_body;
    if (read->error != 0) {
        volume_report_read_error(disk_body->volume, read->offset + read->got, read->error);
        disk_body_give_up(disk_body);
        body_spoil(chunk_read->body);
    } else if (is_good(disk_body, chunk_read->chunk, chunk_read->bytes)) {
        fetch_next(disk_body, chunk_read->chunk);
    } else {
        body_spoil(chunk_read->body);
    }
    end_pending(disk_body, chunk_read->chunk);
    body_release(&chunk_read->body);
    free(chunk_read);
}

static void start_read(struct disk_body *disk_body, struct body *body, size_t chunk) {
    struct chunk_read *chunk_read = xmalloc(sizeof *chunk_read);
    chunk_read->disk_body = disk_body;
    chunk_read->body = body_reference(body);
    chunk_read->chunk = chunk;
    chunk_read->read = (struct disk_read){
        .fd = disk_body->backing.fd,
        .offset = chunk_offset(disk_body, chunk),
        .bytes = chunk_read->bytes,
        .length = chunk_length(disk_body, chunk),
        .done = on_chunk,
    };
    reads_submit(disk_body->reads, &chunk_read->read);
}

/* Call with the lock held. Returns true when the caller's job has to read the chunk, false when
 * another job reads it or enough chunks are being read. */
static bool begin_pending(struct disk_body *disk_body, size_t chunk) {
    unsigned free_place = PENDING_MAX;
    for (unsigned i = 0; i < PENDING_MAX; i++) {
        if (disk_body->pending[i] == chunk + 1)
            return false;
        if (disk_body->pending[i] == 0)
            free_place = i;
    }
    if (free_place == PENDING_MAX)
        return false;
    disk_body->pending[free_place] = chunk + 1;
    return true;
}

static bool wait_for_chunk(struct body_backing *backing, struct body *body, uint64_t position,
                           struct waiter **slot, struct mailbox *mailbox, struct task *task) {
    struct disk_body *disk_body = disk_body_of(backing);
    size_t chunk = (size_t)(position / RECORD_CHUNK);
    pthread_mutex_lock(&disk_body->lock);
    /* The state is checked with the lock held. The job that reads or spoils the chunk wakes the
     * waiting readers afterwards. */
    bool spoiled = body_state(body) == BODY_FAILED, mine = false;
    if (!spoiled) {
        mine = begin_pending(disk_body, chunk);
        waiter_add(&disk_body->waiting, slot, mailbox, task);
    }
    pthread_mutex_unlock(&disk_body->lock);
    if (mine)
        start_read(disk_body, body, chunk);
    return !spoiled;
}

static void cancel(struct body_backing *backing, struct waiter **slot) {
    waiter_cancel(slot, &disk_body_of(backing)->lock);
}

static bool disk_body_read_bytes(struct body_backing *backing, uint64_t position, char *bytes,
                                 size_t length) {
    struct disk_body *disk_body = disk_body_of(backing);
    char *whole = malloc(RECORD_CHUNK);
    bool good = whole != NULL;
    while (good && length > 0) {
        size_t chunk = (size_t)(position / RECORD_CHUNK);
        size_t within = (size_t)(position % RECORD_CHUNK);
        size_t piece = chunk_length(disk_body, chunk) - within;
        piece = piece < length ? piece : length;
        good = read_now(disk_body, chunk, whole);
        if (good)
            memcpy(bytes, whole + within, piece);
        bytes += piece;
        position += piece;
        length -= piece;
    }
    free(whole);
    return good;
}

static void disk_body_release(struct body_backing *backing) {
    struct disk_body *disk_body = disk_body_of(backing);
    struct volume *volume = disk_body->volume;
    ASSERT(list_empty(&disk_body->waiting));
    pthread_mutex_lock(&volume->bodies_lock);
    list_remove(&disk_body->link);
    pthread_mutex_unlock(&volume->bodies_lock);
    volume_unpin(volume, &disk_body->place);
    pthread_mutex_destroy(&disk_body->lock);
    disk_body->magic = 0;
    memory_free(disk_body, disk_body_size_of(disk_body->chunk_count));
}

struct body *disk_body_new(struct volume *volume, struct reads *reads,
                           const struct disk_place *place, const struct record *record,
                           bool verified) {
    size_t count = (size_t)record_chunks(record->front.body_length);
    struct disk_body *disk_body = memory_alloc(disk_body_size_of(count));
    if (disk_body == NULL)
        return NULL;
    memset(disk_body, 0, disk_body_size_of(count));
    disk_body->magic = DISK_BODY_MAGIC;
    disk_body->backing = (struct body_backing){
        .fd = volume->fd,
        .copy = volume->copies,
        .offset = volume_offset(place->at) + record->front_length,
        .cost = memory_cost(disk_body_size_of(count)),
        .ready = ready,
        .wait = wait_for_chunk,
        .cancel = cancel,
        .read = disk_body_read_bytes,
        .release = disk_body_release,
    };
    atomic_store(&volume->segments[place->segment].sent, true);
    disk_body->volume = volume;
    disk_body->reads = reads;
    disk_body->place = *place;
    disk_body->key = record->front.key;
    disk_body->length = record->front.body_length;
    disk_body->chunk_count = count;
    pthread_mutex_init(&disk_body->lock, NULL);
    list_init(&disk_body->waiting);
    disk_body->verified = (_Atomic uint64_t *)(disk_body->sums + count);
    disk_body->fresh = disk_body->verified + words_of(count);
    memcpy(disk_body->sums, record->sums, count * sizeof(uint64_t));
    for (size_t chunk = 0; verified && chunk < count; chunk++)
        note_verified(disk_body, chunk);
    pthread_mutex_lock(&volume->bodies_lock);
    list_append(&volume->segments[place->segment].bodies, &disk_body->link);
    pthread_mutex_unlock(&volume->bodies_lock);
    return body_of_file(&disk_body->backing, disk_body->length);
}

struct cache_key *disk_body_keys(struct volume *volume, uint32_t segment, size_t *count) {
    struct list_link *bodies = &volume->segments[segment].bodies;
    struct cache_key *keys = NULL;
    size_t capacity = 0;
    *count = 0;
    pthread_mutex_lock(&volume->bodies_lock);
    LIST_FOR_EACH_SAFE (link, next, bodies) {
        if (*count == capacity) {
            capacity = capacity * 2 + 16;
            keys = xrealloc(keys, capacity * sizeof *keys);
        }
        keys[(*count)++] = CONTAINER_OF(link, struct disk_body, link)->key;
    }
    pthread_mutex_unlock(&volume->bodies_lock);
    return keys;
}

static const struct disk_body *disk_body_in(const struct body *body) {
    return (const struct disk_body *)(const void *)body->backing;
}

bool disk_body_is_on(const struct body *body, const struct volume *volume) {
    return body->kind == BODY_BACKED && disk_body_in(body)->volume == volume;
}

uint64_t disk_body_contents(const struct body *body) {
    ASSERT(body->kind == BODY_BACKED);
    return record_contents(disk_body_in(body)->sums, disk_body_in(body)->length);
}

bool disk_body_is_in(const struct body *body, const struct volume *volume, uint32_t segment) {
    return disk_body_is_on(body, volume) && disk_body_in(body)->place.segment == segment;
}
