#include "disk/stream.h"

#include "base/assert.h"
#include "base/reserve.h"
#include "disk/record.h"
#include "disk/segment.h"
#include "disk/writer.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

void summing_begin(struct summing *summing, uint64_t *sums) {
    memset(summing, 0, sizeof *summing);
    while ((summing->state = XXH3_createState()) == NULL)
        reserve_spend(sizeof(XXH3_state_t *));
    XXH3_64bits_reset(summing->state);
    summing->sums = sums;
}

static void summing_chunk(struct summing *summing) {
    summing->sums[summing->chunk++] = XXH3_64bits_digest(summing->state);
    XXH3_64bits_reset(summing->state);
    summing->in_chunk = 0;
}

void summing_add(struct summing *summing, const char *bytes, size_t length) {
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

void summing_release(struct summing *summing) {
    XXH3_freeState(summing->state);
    summing->state = NULL;
}

void summing_end(struct summing *summing) {
    if (summing->in_chunk > 0)
        summing_chunk(summing);
    summing_release(summing);
}

uint64_t *summing_of(const struct iovec *pieces, int count, uint64_t length) {
    struct summing summing;
    uint64_t *sums = xcalloc(record_chunks(length) + 1, sizeof *sums);
    summing_begin(&summing, sums);
    for (int i = 0; i < count; i++)
        summing_add(&summing, pieces[i].iov_base, pieces[i].iov_len);
    summing_end(&summing);
    return sums;
}

/* Call with the lock held. Returns true when the same bytes are already being written for
 * another client. */
static bool is_streaming(const struct volume *volume, const struct volume_stream *stream) {
    const struct object *object = stream->object;
    LIST_FOR_EACH_SAFE (link, next, &volume->streams) {
        const struct volume_stream *other = CONTAINER_OF(link, struct volume_stream, link);
        if (other->variant == stream->variant && other->body_length == stream->body_length &&
            !other->failed && !other->cancelled && other->object->key.low == object->key.low &&
            other->object->key.high == object->key.high &&
            slice_equal(object_url(other->object), object_url(object)) &&
            slice_equal(object_etag(other->object), object_etag(object)) &&
            object_last_modified(other->object) == object_last_modified(object))
            return true;
    }
    return false;
}

struct volume_stream *volume_stream_open(struct volume *volume, struct object *object,
                                         uint32_t variant, uint64_t events, uint64_t length) {
    struct volume_stream *stream;
    struct volume_job *job = queue_job(JOB_STREAM_OPEN, 0);
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
    bool wanted = !is_streaming(volume, stream);
    if (wanted) {
        list_append(&volume->streams, &stream->link);
        queue_add(volume, job, false);
    }
    pthread_mutex_unlock(&volume->lock);
    if (wanted)
        return stream;
    queue_free_job(job);
    object_release(&stream->object);
    FREE_OBJ(stream);
    return NULL;
}

bool volume_stream_is_behind(struct volume_stream *stream, uint64_t now) {
    CHECK_OBJ(stream, VOLUME_STREAM_MAGIC);
    const struct disk_settings *settings = stream->volume->settings;
    if (atomic_load_explicit(&stream->failed, memory_order_relaxed) ||
        atomic_load_explicit(&stream->volume->passing, memory_order_relaxed) <
            settings->write_queue / 4) {
        stream->behind_since = 0;
        return false;
    }
    if (stream->behind_since == 0)
        stream->behind_since = now;
    if (now - stream->behind_since < settings->write_wait)
        return true;
    atomic_store(&stream->failed, true);
    return false;
}

void volume_stream_put(struct volume_stream *stream, struct slice bytes) {
    CHECK_OBJ(stream, VOLUME_STREAM_MAGIC);
    struct volume *volume = stream->volume;
    if (atomic_load_explicit(&stream->failed, memory_order_relaxed))
        return;
    struct volume_job *job = queue_job(JOB_STREAM_PUT, bytes.length);
    bool queued = false;
    if (job != NULL) {
        memcpy(job->bytes, bytes.base, bytes.length);
        job->stream = stream;
        pthread_mutex_lock(&volume->lock);
        queued = queue_add(volume, job, true);
        if (queued)
            atomic_fetch_add(&volume->passing, job->cost);
        pthread_mutex_unlock(&volume->lock);
    }
    if (queued)
        return;
    atomic_store(&stream->failed, true);
    if (job != NULL)
        queue_free_job(job);
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
    if (!whole)
        atomic_store(&stream->failed, true); /* its waiting bytes are not written in vain */
    job->key = stream->object->key;
    job->variant = stream->variant;
    job->events = stream->events;
    job->object = object_reference(stream->object);
    pthread_mutex_lock(&volume->lock);
    queue_add(volume, job, false);
    pthread_mutex_unlock(&volume->lock);
}

void stream_begin(struct volume *volume, struct volume_job *job) {
    struct volume_stream *stream = job->stream;
    struct record_front front = writer_front(job, stream->body_length);
    stream->front_length = record_front_length(&front);
    uint64_t length = stream->front_length + stream->body_length;
    uint32_t run = segment_run_for(volume, length);
    bool wanted = !writer_is_paused(volume) && !stream->cancelled && !stream->failed;
    stream->gathers = wanted && run == 0 &&
                      volume->gathered + stream->body_length <= volume->settings->write_queue / 2;
    if (stream->gathers)
        volume->gathered += stream->body_length;
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

bool stream_take(struct volume *volume, struct volume_job *job) {
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

/* A gathered body is written as an ordinary record. */
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
    uint64_t *sums = summing_of(pieces, count, stream->body_length);
    uint32_t at = segment_append(volume, front, texts, sums, pieces, count);
    free(sums);
    free(pieces);
    return at;
}

static void finish_stream(struct volume *volume, struct volume_stream *stream,
                          struct volume_job *job) {
    struct record_front front = writer_front(job, stream->body_length);
    struct record_texts texts = writer_texts(stream->object);
    uint32_t at = stream->gathers
                      ? append_gathered(volume, stream, &front, &texts)
                      : segment_finish_alone(volume, stream->first, &front, &texts, stream->sums);
    if (at != VOLUME_NONE)
        writer_publish(volume, job, at, &front);
    else
        queue_count_dropped(volume);
}

void stream_free(struct volume_stream *stream) {
    struct volume *volume = stream->volume;
    if (stream->gathers)
        volume->gathered -= stream->body_length;
    pthread_mutex_lock(&volume->lock);
    list_remove(&stream->link);
    LIST_FOR_EACH_SAFE (link, next, &stream->gathered) {
        struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        volume->queued -= job->cost;
        queue_free_job(job);
    }
    pthread_mutex_unlock(&volume->lock);
    summing_release(&stream->summing);
    free(stream->sums);
    object_release(&stream->object);
    FREE_OBJ(stream);
}

void stream_finish(struct volume *volume, struct volume_job *job) {
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
    if (job->whole && stream->failed)
        queue_count_dropped(volume);
    stream_free(stream);
}
