#include "disk/queue.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/reserve.h"
#include "disk/segment.h"
#include "disk/stream.h"
#include "disk/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct volume_job *queue_job(enum job_kind kind, size_t length) {
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

void queue_free_job(struct volume_job *job) {
    object_release(&job->object);
    free(job);
}

bool queue_add(struct volume *volume, struct volume_job *job, bool may_drop) {
    if (may_drop && volume->queued > 0 &&
        volume->queued + job->cost > volume->settings->write_queue)
        return false;
    volume->queued += job->cost;
    list_append(&volume->jobs, &job->link);
    pthread_cond_signal(&volume->ready);
    return true;
}

void queue_count_dropped(struct volume *volume) {
    atomic_fetch_add_explicit(&volume->count.dropped, 1, memory_order_relaxed);
}

/* Call with the lock held. Cancels queued older objects that this one replaces. */
static void cancel_older_streams(struct volume *volume, const struct object *object) {
    LIST_FOR_EACH_SAFE (link, next, &volume->streams) {
        struct volume_stream *stream = CONTAINER_OF(link, struct volume_stream, link);
        if (stream->object != object && object_overlaps(stream->object, object))
            stream->cancelled = true;
    }
}

/* Call with the lock held. Hides the objects that this one replaces. */
static void hide_older(struct volume *volume, const struct object *object, uint32_t variant) {
    bool itself = object->body->kind != BODY_BACKED; /* else it is a new head for that */
    segment_hide_rescued(volume, object->key.low, variant, itself);
    disk_index_hide(volume->index, object->key.low, variant, itself);
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

/* Call with the lock held. Cancels queued objects. *known is set when some of them may already
 * be written. */
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

/* Units of large records are given back, because the record of the removal might be reclaimed
 * before them. Other records are noted in case the removal can't be written. */
struct volume_job *queue_removal(struct volume *volume, const struct disk_place *places,
                                 unsigned count, uint32_t variant) {
    struct volume_job *job;
    while ((job = queue_job(JOB_REMOVE, count * sizeof(struct removed))) == NULL)
        reserve_spend(count * sizeof(struct removed));
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

static bool cancel_older_jobs(struct volume *volume, const struct object *object) {
    bool some = false;
    LIST_FOR_EACH_SAFE (link, next, &volume->jobs) {
        struct volume_job *job = CONTAINER_OF(link, struct volume_job, link);
        if (job->kind != JOB_STORE || !object_overlaps(job->object, object))
            continue;
        job->cancelled = true;
        some = true;
    }
    struct volume_job *current = volume->current;
    if (current != NULL && current->object != NULL && current->object != object &&
        object_overlaps(current->object, object)) {
        current->cancelled = true;
        some = true;
    }
    return some;
}

/* A copy without a body, which the writer compares others with. */
static struct object *without_body(const struct object *object) {
    struct object_image image;
    struct body *nothing = body_of_bytes(SLICE(""));
    object_export(object, &image);
    struct object *bare = object_import(object->key, &image, object_url(object),
                                        object_head(object), object_vary(object), nothing);
    body_release(&nothing);
    return bare;
}

/* Call with the lock held. */
static void queue_superseding(struct volume *volume, const struct object *object,
                              uint32_t variant) {
    struct cache_key key = object->key;
    struct disk_place places[PLACES];
    cancel_older_streams(volume, object);
    bool known = cancel_older_jobs(volume, object);
    known = segment_forget_rescued(volume, key.low, variant) || known;
    unsigned found = disk_index_find_all(volume->index, key.low, places, PLACES);
    if (!known && found == 0 && !volume_is_lent(volume))
        return;
    struct volume_job *job = queue_removal(volume, places, found, variant);
    job->key = key;
    job->variant = variant;
    job->object = without_body(object);
    job->whole = !known;
    segment_hide_rescued(volume, key.low, variant, true);
    disk_index_hide(volume->index, key.low, variant, true);
    queue_add(volume, job, false);
}

void volume_supersede(struct volume *volume, const struct object *object, uint32_t variant) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    pthread_mutex_lock(&volume->lock);
    queue_superseding(volume, object, variant);
    pthread_mutex_unlock(&volume->lock);
}

/* Call with the lock held. What the object would have replaced must not be found instead. */
static void leave_out_at_once(struct volume *volume, struct object *object, uint32_t variant) {
    if (object->body->kind == BODY_BACKED)
        volume_note_lapse(volume);
    else
        queue_superseding(volume, object, variant);
}

static struct volume_job *store_job(struct object *object, uint32_t variant, uint64_t events) {
    struct volume_job *job = queue_job(JOB_STORE, 0);
    if (job == NULL)
        return NULL;
    job->key = object->key;
    job->variant = variant;
    job->events = events;
    job->object = object_reference(object);
    job->cost += object_cost(object);
    return job;
}

void volume_leave_out(struct volume *volume, struct object *object, uint32_t variant) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    pthread_mutex_lock(&volume->lock);
    bool kept = volume->hooks.keep(volume->hooks.arg, object);
    if (kept)
        queue_superseding(volume, object, variant);
    pthread_mutex_unlock(&volume->lock);
    if (kept)
        volume->hooks.written(volume->hooks.arg, object);
}

bool volume_store(struct volume *volume, struct object *object, uint32_t variant, uint64_t events) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    struct volume_job *job = store_job(object, variant, events);
    pthread_mutex_lock(&volume->lock);
    bool kept = volume->hooks.keep(volume->hooks.arg, object), queued = false;
    if (kept && job != NULL) {
        cancel_older_streams(volume, object);
        hide_older(volume, object, variant);
        queued = queue_add(volume, job, true);
    }
    if (kept && !queued)
        leave_out_at_once(volume, object, variant);
    pthread_mutex_unlock(&volume->lock);
    if (queued)
        return true;
    if (kept)
        volume->hooks.written(volume->hooks.arg, object);
    if (kept && job != NULL)
        queue_count_dropped(volume);
    if (job != NULL)
        queue_free_job(job);
    return false;
}

static unsigned remove_all_of(struct volume *volume, struct cache_key key, uint32_t variant,
                              bool surely) {
    CHECK_OBJ(volume, VOLUME_MAGIC);
    struct disk_place places[PLACES];
    bool known;
    pthread_mutex_lock(&volume->lock);
    unsigned count = cancel_jobs(volume, key, variant, &known);
    unsigned found = disk_index_find_all(volume->index, key.low, places, PLACES);
    struct volume_job *job = queue_removal(volume, places, found, variant);
    /* Earlier removals may not be written yet, although the objects are already hidden. */
    bool lent = volume_is_lent(volume);
    if (lent)
        volume_note_lapse(volume); /* another process has the volume */
    known =
        known || surely || lent ||
        (variant == DISK_ANY_VARIANT &&
         (volume_lapses(volume) > 0 || atomic_load_explicit(&volume->lost, memory_order_relaxed)));
    if (known || job->length > 0) {
        job->key = key;
        job->variant = variant;
        job->whole = !known;
        /* The removal is queued first and takes effect then, so a look-up that finds nothing can
         * rely on the record that follows. */
        queue_add(volume, job, false);
        count += disk_index_remove(volume->index, key.low, variant);
        job = NULL;
    }
    pthread_mutex_unlock(&volume->lock);
    if (job != NULL)
        queue_free_job(job);
    return count;
}

unsigned volume_remove(struct volume *volume, struct cache_key key, uint32_t variant) {
    return remove_all_of(volume, key, variant, false);
}

unsigned volume_remove_surely(struct volume *volume, struct cache_key key) {
    return remove_all_of(volume, key, DISK_ANY_VARIANT, true);
}

void queue_order(struct volume *volume, enum job_kind kind, bool *synced) {
    sem_t done;
    struct volume_job *job = volume->thread.started ? queue_job(kind, 0) : NULL;
    if (job == NULL)
        return;
    sem_init(&done, 0, 0);
    job->done = &done;
    job->synced = synced;
    pthread_mutex_lock(&volume->lock);
    queue_add(volume, job, false);
    pthread_mutex_unlock(&volume->lock);
    while (sem_wait(&done) != 0)
        continue;
    sem_destroy(&done);
}

void volume_flush(struct volume *volume) {
    queue_order(volume, JOB_FLUSH, NULL);
}

bool volume_commit(struct volume *volume) {
    bool synced = false;
    queue_order(volume, JOB_FLUSH, &synced);
    return synced;
}

bool queue_sync(struct volume *volume) {
    bool synced = !volume->unsynced || fdatasync(volume->fd) == 0;
    volume->sync_due = 0;
    volume->unsynced = !synced;
    if (synced)
        return true;
    atomic_fetch_add_explicit(&volume->count.errors, 1, memory_order_relaxed);
    log_error("disk %s: written data could not be synced to the device: %s; a loss of power may "
              "undo it: check the device",
              volume->path, strerror(errno));
    return false;
}

void queue_sync_due(struct volume *volume) {
    if (volume->sync_due != 0 && volume_clock() >= volume->sync_due)
        queue_sync(volume);
}

/* Call with the lock held; it is released meanwhile. */
static void wait_for_job(struct volume *volume) {
    uint64_t until = volume->sync_due != 0 ? volume->sync_due * 1000000 : THREADS_NEVER;
    if (threads_wait(&volume->ready, &volume->lock, until))
        return;
    pthread_mutex_unlock(&volume->lock);
    queue_sync_due(volume);
    pthread_mutex_lock(&volume->lock);
}

struct volume_job *queue_take(struct volume *volume) {
    struct list_link *link;
    pthread_mutex_lock(&volume->lock);
    while ((link = list_first(&volume->jobs)) == NULL && !volume->stopping)
        wait_for_job(volume);
    struct volume_job *job = NULL;
    if (link != NULL) {
        list_remove(link);
        job = CONTAINER_OF(link, struct volume_job, link);
        if (job->kind == JOB_STREAM_PUT)
            atomic_fetch_sub(&volume->passing, job->cost);
    }
    volume->current = job;
    pthread_mutex_unlock(&volume->lock);
    return job;
}

void queue_end(struct volume *volume, struct volume_job *job, bool done) {
    pthread_mutex_lock(&volume->lock);
    if (done)
        volume->queued -= job->cost;
    volume->current = NULL;
    pthread_mutex_unlock(&volume->lock);
    if (!done)
        return;
    if (job->kind == JOB_STORE)
        volume->hooks.written(volume->hooks.arg, job->object);
    queue_free_job(job);
}
