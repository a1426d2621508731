#include "cache/ban.h"

#include "base/assert.h"

void bans_init(struct bans *bans) {
    memset(bans, 0, sizeof *bans);
    ASSERT(pthread_rwlock_init(&bans->lock, NULL) == 0);
    list_init(&bans->list);
}

/* Under the lock. */
static void ban_take_out(struct bans *bans, struct ban *ban) {
    CHECK_OBJ(ban, BAN_MAGIC);
    list_remove(&ban->link);
    bans->count--;
    uint64_t due = 0;
    if (!list_empty(&bans->list))
        due = CONTAINER_OF(bans->list.prev, struct ban, link)->number;
    atomic_store_explicit(&bans->due, due, memory_order_release);
    object_filter_release(&ban->filter);
    FREE_OBJ(ban);
}

/* Under the lock. */
static void ban_drop(struct bans *bans, uint64_t until) {
    LIST_FOR_EACH_SAFE (link, next, &bans->list) {
        struct ban *ban = CONTAINER_OF(link, struct ban, link);
        if (ban->number > until)
            continue;
        bans->dropped = ban->number;
        ban_take_out(bans, ban);
    }
}

void bans_release(struct bans *bans) {
    ban_drop(bans, UINT64_MAX);
    ASSERT(list_empty(&bans->list));
    pthread_rwlock_destroy(&bans->lock);
}

/* The next number whose last 31 bits are not all 0: a 0 in an object means that the object was
 * never in the cache. */
static uint64_t number_after(uint64_t number) {
    return ((uint32_t)++number & ~BANS_LEFT) == 0 ? number + 1 : number;
}

uint64_t bans_add(struct bans *bans, const struct object_filter *filter, enum purge_action action) {
    struct ban *ban;
    ALLOC_OBJ(ban, BAN_MAGIC);
    ban->filter = object_filter_copy(filter);
    ban->action = action;
    ban->made = time(NULL);
    pthread_rwlock_wrlock(&bans->lock);
    uint64_t number = number_after(bans_newest(bans));
    ban->number = number;
    list_append(&bans->list, &ban->link);
    bans->count++;
    /* These stores come last: a thread that reads the number finds the ban in the list. */
    atomic_store_explicit(&bans->newest, number, memory_order_release);
    atomic_store_explicit(&bans->due, number, memory_order_release);
    pthread_rwlock_unlock(&bans->lock);
    return number;
}

static _Atomic uint64_t *objects_at(struct bans *bans, uint64_t number) {
    return &bans->objects[number % BANS_COUNTED];
}

bool bans_enter(struct bans *bans, _Atomic uint32_t *checked, uint64_t number) {
    pthread_rwlock_rdlock(&bans->lock);
    bool may = number >= bans->dropped && bans_newest(bans) - number < BANS_LATE;
    if (may) {
        atomic_store_explicit(checked, (uint32_t)number & ~BANS_LEFT, memory_order_release);
        atomic_fetch_add(objects_at(bans, number), 1);
    }
    pthread_rwlock_unlock(&bans->lock);
    return may;
}

void bans_leave(struct bans *bans, _Atomic uint32_t *checked) {
    atomic_fetch_sub(objects_at(bans, atomic_fetch_or(checked, BANS_LEFT)), 1);
}

/* Counts the object at the new number first, so that the object is always counted somewhere. */
static void move_on(struct bans *bans, _Atomic uint32_t *checked, uint32_t from, uint64_t to) {
    atomic_fetch_add(objects_at(bans, to), 1);
    bool moved = atomic_compare_exchange_strong(checked, &from, (uint32_t)to & ~BANS_LEFT);
    atomic_fetch_sub(objects_at(bans, moved ? from : to), 1);
}

/* The ban after number `after` that does most to the object; NULL: no ban hits. The search goes
 * from the newest ban to older ones, and stops at the first ban that is not after `after`. */
static struct ban *ban_find(struct bans *bans, const struct object *object, uint64_t after) {
    struct ban *found = NULL;
    for (struct list_link *link = bans->list.prev; link != &bans->list; link = link->prev) {
        struct ban *ban = CONTAINER_OF(link, struct ban, link);
        CHECK_OBJ(ban, BAN_MAGIC);
        if (ban->number <= after || (found != NULL && found->action == PURGE_REMOVE))
            break;
        if ((found == NULL || ban->action > found->action) &&
            object_filter_fits(&ban->filter, object))
            found = ban;
    }
    return found;
}

enum purge_action bans_compare(struct bans *bans, struct object *object) {
    uint32_t before = atomic_load(&object->checked);
    pthread_rwlock_rdlock(&bans->lock);
    struct ban *found = ban_find(bans, object, bans_number_from(bans, before));
    enum purge_action action = found == NULL ? PURGE_NOTHING : found->action;
    if (action == PURGE_STALE)
        object_set_lifetime(object, 0, time(NULL));
    if (action != PURGE_REMOVE && (before & BANS_LEFT) == 0)
        move_on(bans, &object->checked, before, bans_newest(bans));
    pthread_rwlock_unlock(&bans->lock);
    return action;
}

/* Drops the bans up to the oldest number at which an object stands. */
void bans_drop_spent(struct bans *bans) {
    pthread_rwlock_wrlock(&bans->lock);
    uint64_t newest = bans_newest(bans);
    uint64_t number = newest < BANS_COUNTED ? 0 : newest - BANS_COUNTED + 1;
    while (number < newest && atomic_load(objects_at(bans, number)) == 0)
        number++;
    ban_drop(bans, number);
    pthread_rwlock_unlock(&bans->lock);
}

void bans_each(struct bans *bans, void (*see)(void *arg, const struct ban *ban), void *arg) {
    pthread_rwlock_rdlock(&bans->lock);
    LIST_FOR_EACH_SAFE (link, next, &bans->list) {
        const struct ban *ban = CONTAINER_OF(link, struct ban, link);
        see(arg, ban);
    }
    pthread_rwlock_unlock(&bans->lock);
}
