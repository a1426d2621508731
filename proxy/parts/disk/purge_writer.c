#include "disk/purge_writer.h"

#include "disk/disk.h"

struct purge_call {
    struct list_link link;
    struct purge_slots slots;
    bool done, kept;
};

void purge_writer_init(struct purge_writer *writer, struct disk *disk) {
    *writer = (struct purge_writer){.disk = disk};
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->written, NULL);
    list_init(&writer->waiting);
}

void purge_writer_release(struct purge_writer *writer) {
    pthread_cond_destroy(&writer->written);
    pthread_mutex_destroy(&writer->lock);
}

static uint64_t oldest_of(struct disk *disk) {
    uint64_t oldest = purge_log_newest(&disk->purges);
    for (size_t i = 0; i < disk->count; i++) {
        uint64_t one = volume_oldest(disk->volumes[i]);
        oldest = one < oldest ? one : oldest;
    }
    return oldest;
}

static bool purge_writer_rewrite(struct disk *disk, struct volume *volume) {
    struct purge_slots all = {0};
    /* This is noted before the log is summed up; later purges may be included or not. */
    uint64_t newest = purge_log_newest(&disk->purges);
    purge_log_sum_up(&disk->purges, oldest_of(disk), volume_purges_room(volume), &all);
    bool kept = volume_rewrite_purges(volume, &all, purge_log_floor(&disk->purges), newest);
    purge_slots_release(&all);
    return kept;
}

static bool purge_writer_write_all(struct disk *disk, const struct purge_slots *slots) {
    bool kept = true;
    for (size_t i = 0; i < disk->count; i++) {
        struct volume *volume = disk->volumes[i];
        if (volume_is_lent(volume)) {
            kept = false;
            continue;
        }
        uint64_t floor = purge_log_floor(&disk->purges), newest = purge_log_newest(&disk->purges);
        bool appended = volume_append_purges(volume, slots, floor, newest);
        kept = (appended ? volume_sync_purges(volume) : purge_writer_rewrite(disk, volume)) && kept;
    }
    return kept;
}

/* Call with the lock held; it is released meanwhile. Writes the purges of all waiting callers. */
static void write_waiting(struct purge_writer *writer) {
    struct list_link calls;
    struct purge_slots slots = {0};
    list_init(&calls);
    list_splice(&calls, &writer->waiting);
    writer->busy = true;
    pthread_mutex_unlock(&writer->lock);
    LIST_FOR_EACH (link, &calls) {
        const struct purge_call *call = CONTAINER_OF(link, struct purge_call, link);
        purge_slots_append(&slots, call->slots.all, call->slots.count);
    }
    bool kept = purge_writer_write_all(writer->disk, &slots);
    purge_slots_release(&slots);
    pthread_mutex_lock(&writer->lock);
    LIST_FOR_EACH (link, &calls) {
        struct purge_call *call = CONTAINER_OF(link, struct purge_call, link);
        call->kept = kept;
        call->done = true;
    }
    writer->busy = false;
    pthread_cond_broadcast(&writer->written);
}

bool purge_writer_keep(struct purge_writer *writer, struct purge_slots *slots) {
    struct purge_call call = {.slots = *slots};
    pthread_mutex_lock(&writer->lock);
    list_append(&writer->waiting, &call.link);
    while (!call.done)
        if (writer->busy)
            pthread_cond_wait(&writer->written, &writer->lock);
        else
            write_waiting(writer);
    pthread_mutex_unlock(&writer->lock);
    purge_slots_release(slots);
    return call.kept;
}
