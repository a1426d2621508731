#include "cache/purge.h"

#include "base/assert.h"

#include <stdatomic.h>
#include <time.h>

void purges_init(struct purges *purges) {
    memset(purges, 0, sizeof *purges);
    for (unsigned i = 0; i < 2; i++)
        filter_table_init(&purges->tables[i]);
    ASSERT(pthread_rwlock_init(&purges->lock, NULL) == 0);
}

void purges_release(struct purges *purges) {
    for (unsigned i = 0; i < 2; i++)
        filter_table_release(&purges->tables[i]);
    pthread_rwlock_destroy(&purges->lock);
}

static uint64_t seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

/* Drops the older table, if all objects have been compared with its purges. The list of others in a
 * table refers to its own address, so the content of the younger table moves into the older one,
 * and the younger table is made anew. */
static void purge_turn(struct purges *purges) {
    uint64_t now = seconds();
    struct filter_table *young = &purges->tables[0], *old = &purges->tables[1];
    if (now < purges->turned_at + PURGES_SECONDS || old->newest > atomic_load(&purges->walked))
        return;
    if (old->newest > purges->floor)
        purges->floor = old->newest;
    filter_table_release(old);
    *old = *young;
    list_init(&old->others);
    list_splice(&old->others, &young->others);
    filter_table_init(young);
    purges->turned_at = now;
}

static uint64_t hash_of(const struct object_filter *filter) {
    size_t prefix_length;
    int tag_bit;
    return filter_hash(filter, &prefix_length, &tag_bit);
}

uint64_t purges_add(struct purges *purges, const struct object_filter *filter,
                    enum purge_action action) {
    pthread_rwlock_wrlock(&purges->lock);
    purge_turn(purges);
    uint64_t number = purges_newest(purges) + 1, walked = atomic_load(&purges->walked);
    filter_table_restart(&purges->tables[1], hash_of(filter), walked);
    filter_table_add(&purges->tables[0], filter, action, number, walked);
    /* These stores come last: a thread that reads the number finds the purge in the table. */
    atomic_store_explicit(&purges->newest, number, memory_order_release);
    atomic_store_explicit(&purges->due, number, memory_order_release);
    pthread_rwlock_unlock(&purges->lock);
    return number;
}

/* Under the lock. */
static struct filter_found purge_find(struct purges *purges, const struct object *object,
                                      uint64_t after) {
    struct filter_found found = filter_table_find(&purges->tables[0], object, after);
    if (found.action == PURGE_REMOVE)
        return found;
    struct filter_found older = filter_table_find(&purges->tables[1], object, after);
    return older.action > found.action ? older : found;
}

enum purge_action purges_judge(struct purges *purges, const struct object *object, uint64_t since) {
    if (purges_newest(purges) == since)
        return PURGE_NOTHING;
    pthread_rwlock_rdlock(&purges->lock);
    enum purge_action action =
        since < purges->floor ? PURGE_REMOVE : purge_find(purges, object, since).action;
    pthread_rwlock_unlock(&purges->lock);
    return action;
}

void purges_enter(struct purges *purges, struct object *object) {
    atomic_store_explicit(&object->purged, (uint32_t)purges_newest(purges), memory_order_release);
}

/* Under the lock. A purge that is forgotten since counts no more. */
static void count_hit(struct purges *purges, const struct filter_found *found) {
    for (unsigned i = 0; i < 2; i++) {
        _Atomic uint32_t *hits = filter_table_hits(&purges->tables[i], found->hash, found->number);
        if (hits != NULL) {
            atomic_fetch_add_explicit(hits, 1, memory_order_relaxed);
            return;
        }
    }
}

struct filter_found purges_compare(struct purges *purges, struct object *object) {
    uint32_t before = atomic_load(&object->purged);
    pthread_rwlock_rdlock(&purges->lock);
    struct filter_found found = purge_find(purges, object, purges_number_of(purges, object));
    if (found.action == PURGE_STALE || found.action == PURGE_DOUBT)
        object_outdate(object, found.action == PURGE_DOUBT, time(NULL));
    if (found.action != PURGE_REMOVE &&
        atomic_compare_exchange_strong(&object->purged, &before, (uint32_t)purges_newest(purges)) &&
        found.action == PURGE_STALE)
        count_hit(purges, &found);
    pthread_rwlock_unlock(&purges->lock);
    return found;
}

void purges_note_removal(struct purges *purges, const struct filter_found *found) {
    pthread_rwlock_rdlock(&purges->lock);
    count_hit(purges, found);
    pthread_rwlock_unlock(&purges->lock);
}

/* Also true for an object that lags so far behind that its number would soon be mistaken
 * for another. */
bool purges_may_concern(struct purges *purges, const struct object *object) {
    uint64_t after = purges_number_of(purges, object), newest = purges_newest(purges);
    if (newest - after > UINT32_MAX / 2)
        return true;
    return filter_table_may_find(&purges->tables[0], object, after) ||
           filter_table_may_find(&purges->tables[1], object, after);
}

void purges_end_walk(struct purges *purges, uint64_t until) {
    pthread_rwlock_wrlock(&purges->lock);
    if (until > atomic_load(&purges->walked))
        atomic_store_explicit(&purges->walked, until, memory_order_release);
    if (purges_newest(purges) <= atomic_load(&purges->walked))
        atomic_store_explicit(&purges->due, 0, memory_order_release);
    pthread_rwlock_unlock(&purges->lock);
}

uint64_t purges_hits(struct purges *purges, const struct object_filter *filter, uint64_t number) {
    uint64_t count = 0, hash = hash_of(filter);
    pthread_rwlock_rdlock(&purges->lock);
    for (unsigned i = 0; i < 2; i++) {
        const _Atomic uint32_t *hits = filter_table_hits(&purges->tables[i], hash, number);
        count += hits == NULL ? 0 : atomic_load(hits);
    }
    pthread_rwlock_unlock(&purges->lock);
    return count;
}

/* Counts only the younger table: when there are many such purges, the last walk was not
 * long ago. */
size_t purges_slow(struct purges *purges) {
    uint64_t walked = atomic_load(&purges->walked);
    size_t count = 0;
    pthread_rwlock_rdlock(&purges->lock);
    const struct list_link *all = &purges->tables[0].others;
    for (struct list_link *link = all->prev; link != all; link = link->prev, count++)
        if (CONTAINER_OF(link, struct filter_other, link)->number <= walked)
            break;
    pthread_rwlock_unlock(&purges->lock);
    return count;
}

void purges_add_key(struct purges *purges, struct cache_key key) {
    struct purged_key *place = &purges->keys[key.low % PURGE_KEYS];
    pthread_rwlock_wrlock(&purges->lock);
    uint64_t number = purges_newest_key(purges) + 1;
    if (!cache_key_equal(place->key, key))
        place->others = atomic_load(&place->newest);
    place->key = key;
    atomic_store(&place->newest, number);
    atomic_store_explicit(&purges->newest_key, number, memory_order_release);
    pthread_rwlock_unlock(&purges->lock);
}

bool purges_has_key(struct purges *purges, struct cache_key key, uint64_t since) {
    struct purged_key *place = &purges->keys[key.low % PURGE_KEYS];
    if (atomic_load(&place->newest) <= since)
        return false;
    pthread_rwlock_rdlock(&purges->lock);
    uint64_t number =
        cache_key_equal(place->key, key) ? atomic_load(&place->newest) : place->others;
    pthread_rwlock_unlock(&purges->lock);
    return number > since;
}

static uint64_t walk_if_paid(void *arg) {
    struct purger *purger = arg;
    uint64_t paid_until = atomic_load(&purger->paid_until);
    if (clocks_nanoseconds(CLOCK_MONOTONIC) < paid_until)
        return paid_until;
    purger_walk_now(purger);
    return THREADS_NEVER;
}

void purger_init(struct purger *purger, void (*walk)(void *arg), void *arg) {
    *purger = (struct purger){.walk = walk, .arg = arg};
    pthread_mutex_init(&purger->walking, NULL);
    thread_clock_init(&purger->clock, walk_if_paid, purger);
}

void purger_release(struct purger *purger) {
    thread_clock_release(&purger->clock);
    pthread_mutex_destroy(&purger->walking);
}

void purger_walk_now(struct purger *purger) {
    const uint64_t credit = (uint64_t)PURGER_CREDIT * 1000000 * PURGER_SHARE;
    pthread_mutex_lock(&purger->walking);
    uint64_t begun = clocks_nanoseconds(CLOCK_THREAD_CPUTIME_ID);
    purger->walk(purger->arg);
    uint64_t took = clocks_nanoseconds(CLOCK_THREAD_CPUTIME_ID) - begun;
    uint64_t now = clocks_nanoseconds(CLOCK_MONOTONIC), least = now > credit ? now - credit : 0;
    uint64_t paid_until = atomic_load(&purger->paid_until);
    atomic_store(&purger->paid_until,
                 (paid_until > least ? paid_until : least) + took * PURGER_SHARE);
    pthread_mutex_unlock(&purger->walking);
}

bool purger_walk_soon(struct purger *purger) {
    uint64_t paid_until = atomic_load(&purger->paid_until);
    bool later = clocks_nanoseconds(CLOCK_MONOTONIC) < paid_until &&
                 thread_clock_start(&purger->clock, "rt-purger");
    if (later)
        thread_clock_wake(&purger->clock, paid_until);
    else
        purger_walk_now(purger);
    return !later;
}
