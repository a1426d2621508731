#include "disk/writer.h"

#include "base/assert.h"
#include "cache/body_reader.h"
#include "disk/disk_body.h"
#include "disk/lending.h"
#include "disk/reading.h"
#include "disk/stream.h"

#include <stdlib.h>

enum {
    REMOVAL_TRIES = 2,
    SYNC_DELAY = 150, /* milliseconds that a removal may wait for others before a sync */
};

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

struct record_front writer_front(const struct volume_job *job, uint64_t body_length) {
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

struct object *writer_bare_object(const struct record *record) {
    struct body *nothing = body_of_bytes(SLICE(""));
    struct object *object = reading_object(record, nothing);
    body_release(&nothing);
    return object;
}

struct record_texts writer_texts(const struct object *object) {
    return (struct record_texts){object_url(object), object_head(object), object_vary(object)};
}

/* A record that is replaced gives back its unit if it has one. */
static void abandon_replaced(struct volume *volume, uint64_t key, uint32_t variant,
                             uint32_t but_at) {
    struct disk_place places[PLACES];
    unsigned count = disk_index_find_all(volume->index, key, places, PLACES);
    for (unsigned i = 0; i < count; i++)
        if (places[i].variant == variant && places[i].at != but_at &&
            writer_stands_alone(volume, &places[i]))
            segment_abandon(volume, places[i].segment);
}

void writer_publish(struct volume *volume, struct volume_job *job, uint32_t at,
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
    if (!wanted && writer_stands_alone(volume, &place))
        segment_abandon(volume, place.segment);
}

bool writer_is_paused(const struct volume *volume) {
    return volume->paused_until > volume_clock();
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

static void remove_records(struct volume *volume, const struct volume_job *job) {
    const struct removed *removed = (const struct removed *)(const void *)job->bytes;
    disk_index_remove(volume->index, job->key.low, job->variant);
    bool written = write_removal(volume, job), kept = written || job->whole;
    for (size_t i = 0; i < job->length; i++) {
        const struct disk_place *place = &removed[i].place;
        if (atomic_load(&volume->segments[place->segment].sequence) != removed[i].sequence)
            continue;
        if (writer_stands_alone(volume, place)) {
            segment_abandon(volume, place->segment);
            kept = kept && (written || !volume->segments[place->segment].uncleared);
        } else if (!written) {
            kept = segment_spoil_record(volume, place->at) && kept;
        }
    }
    if (!kept)
        volume_note_lapse(volume);
}

/* False: there was none. */
static bool remove_variant(struct volume *volume, struct cache_key key, uint32_t variant) {
    struct disk_place places[PLACES];
    pthread_mutex_lock(&volume->lock);
    bool some = segment_forget_rescued(volume, key.low, variant);
    unsigned found = disk_index_find_all(volume->index, key.low, places, PLACES);
    struct volume_job *removal = queue_removal(volume, places, found, variant);
    pthread_mutex_unlock(&volume->lock);
    removal->key = key;
    removal->variant = variant;
    removal->whole = !some;
    bool there = some || removal->length > 0;
    if (there)
        remove_records(volume, removal);
    queue_free_job(removal);
    return there;
}

void writer_remove_all(struct volume *volume, struct cache_key key) {
    remove_variant(volume, key, DISK_ANY_VARIANT);
}

/* The objects that it would have replaced must not be found instead. */
static void leave_out(struct volume *volume, const struct volume_job *job) {
    queue_count_dropped(volume);
    if (!remove_variant(volume, job->key, job->variant) && volume_lapses(volume) > 0)
        volume_note_lapse(volume); /* it may be what this would have replaced */
}

/* Returns the head of a record as an object without a body, or NULL when it can't be read. */
static struct object *read_head(struct volume *volume, const struct disk_place *place) {
    size_t whole = (size_t)place->blocks * RECORD_ALIGN, length = whole;
    struct object *object = NULL;
    struct record record;
    enum { FIRST = 16 * 1024 };
    length = length < FIRST ? length : FIRST;
    char *bytes = malloc(length);
    while (bytes != NULL &&
           volume_read(volume, volume_offset(place->at), bytes, length, VOLUME_MAY_WAIT)) {
        enum record_verdict verdict =
            record_read(&record, slice_make(bytes, length), volume->header.identity,
                        atomic_load(&volume->segments[place->segment].sequence));
        if (verdict == RECORD_GOOD)
            object = writer_bare_object(&record);
        if (verdict != RECORD_SHORT || record.front_length <= length || record.front_length > whole)
            break;
        length = record.front_length;
        free(bytes);
        bytes = malloc(length);
    }
    free(bytes);
    return object;
}

static bool is_awaited(struct volume *volume, struct cache_key key) {
    bool awaited = false;
    pthread_mutex_lock(&volume->lock);
    LIST_FOR_EACH_SAFE (link, next, &volume->jobs) {
        const struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        awaited = awaited || (job->object != NULL && job->key.low == key.low);
    }
    pthread_mutex_unlock(&volume->lock);
    return awaited;
}

/* disk_index_hide has hidden variants for the object. Those that it replaces are removed. The
 * others are shown again, unless another waiting object may replace them. */
static void supersede(struct volume *volume, const struct volume_job *job) {
    struct disk_place places[PLACES];
    unsigned count = disk_index_find_all(volume->index, job->key.low, places, PLACES);
    for (unsigned i = 0; i < count; i++) {
        uint32_t variant = places[i].variant;
        if ((variant & DISK_RENEWAL) != 0 ||
            disk_variant_names(variant) == disk_variant_names(job->variant))
            continue;
        struct object *other = read_head(volume, &places[i]);
        if (other == NULL || object_overlaps(other, job->object))
            remove_variant(volume, job->key, variant);
        else if (!is_awaited(volume, job->key))
            disk_index_show(volume->index, job->key.low, variant);
        object_release(&other);
    }
}

/* With an object: removes the other variants that it replaces. */
static void do_remove(struct volume *volume, const struct volume_job *job) {
    if (job->object != NULL)
        supersede(volume, job);
    else if (volume->settings->sync && volume->sync_due == 0)
        volume->sync_due = volume_clock() + SYNC_DELAY;
    if (job->object == NULL || job->length > 0 || !job->whole)
        remove_records(volume, job);
}

static bool has_variant(struct volume *volume, uint64_t key, uint32_t variant) {
    struct disk_place places[PLACES];
    unsigned count = disk_index_find_all(volume->index, key, places, PLACES);
    for (unsigned i = 0; i < count; i++)
        if (places[i].variant == variant)
            return true;
    return false;
}

/* Writes the new head of an object whose body is on the volume. After a failure the earlier head
 * stays valid, unless it belonged to another variant, which is removed by now. */
static void do_renew(struct volume *volume, struct volume_job *job) {
    if (!has_variant(volume, job->key.low, job->variant))
        return;
    struct record_front front = writer_front(job, 0);
    struct record_texts texts = writer_texts(job->object);
    front.kind = RECORD_RENEWAL;
    front.renewed = disk_body_contents(job->object->body);
    uint32_t at = writer_is_paused(volume) ? VOLUME_NONE
                                           : segment_append(volume, &front, &texts, NULL, NULL, 0);
    if (at == VOLUME_NONE) {
        queue_count_dropped(volume);
        volume_note_lapse(volume);
        return;
    }
    struct disk_place place = {
        .variant = job->variant | DISK_RENEWAL,
        .at = at,
        .blocks = (uint32_t)record_blocks(record_front_length(&front)),
        .segment = at / segment_blocks(volume),
    };
    pthread_mutex_lock(&volume->lock);
    segment_forget_rescued(volume, job->key.low, place.variant);
    if (!job->cancelled)
        disk_index_put(volume->index, job->key.low, &place);
    pthread_mutex_unlock(&volume->lock);
}

static void do_store(struct volume *volume, struct volume_job *job) {
    if (writer_is_paused(volume)) {
        leave_out(volume, job);
        return;
    }
    struct body *body = job->object->body;
    uint64_t length = body_length(body);
    int count;
    struct iovec *pieces = pieces_of(body, &count);
    uint64_t *sums = summing_of(pieces, count, length);
    struct record_front front = writer_front(job, length);
    struct record_texts texts = writer_texts(job->object);
    uint32_t at = segment_append(volume, &front, &texts, sums, pieces, count);
    if (at != VOLUME_NONE)
        writer_publish(volume, job, at, &front);
    else
        leave_out(volume, job);
    free(sums);
    free(pieces);
}

/* False: the job is kept. */
static bool writer_do_job(struct volume *volume, struct volume_job *job) {
    bool done = true;
    if (volume->absent != NULL && job->kind != JOB_RETURN) {
        lending_skip(volume, job);
        return true;
    }
    switch (job->kind) {
    case JOB_STORE:
        supersede(volume, job);
        if (!job->cancelled && job->object->body->kind == BODY_BACKED)
            do_renew(volume, job);
        else if (!job->cancelled)
            do_store(volume, job);
        break;
    case JOB_REMOVE: do_remove(volume, job); break;
    case JOB_FLUSH:
        if (job->synced != NULL)
            *job->synced = !volume->settings->sync || queue_sync(volume);
        sem_post(job->done);
        break;
    case JOB_STREAM_OPEN: stream_begin(volume, job); break;
    case JOB_STREAM_PUT: done = stream_take(volume, job); break;
    case JOB_STREAM_END: stream_finish(volume, job); break;
    case JOB_LEND:
        lending_lend(volume);
        sem_post(job->done);
        return true;
    case JOB_RETURN:
        lending_return(volume);
        sem_post(job->done);
        break;
    }
    segment_write_rescued(volume);
    return done;
}

static void write_jobs(void *arg) {
    struct volume *volume;
    struct volume_job *job;
    CAST_OBJ(volume, arg, VOLUME_MAGIC);
    while ((job = queue_take(volume)) != NULL) {
        bool done = writer_do_job(volume, job);
        queue_end(volume, job, done);
        queue_sync_due(volume);
    }
    segment_seal_open(volume);
}

bool volume_start(struct volume *volume) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    return thread_start(&volume->thread, write_jobs, volume, "rt-disk-write");
}

void volume_stop(struct volume *volume) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    pthread_mutex_lock(&volume->lock);
    volume->stopping = true;
    pthread_cond_signal(&volume->ready);
    pthread_mutex_unlock(&volume->lock);
    thread_join(&volume->thread);
}
