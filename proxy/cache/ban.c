#include "cache/ban.h"

#include "base/assert.h"

void bans_init(struct bans *bans) {
    memset(bans, 0, sizeof *bans);
    ASSERT(pthread_rwlock_init(&bans->lock, NULL) == 0);
    list_init(&bans->list);
}

static void ban_free(struct ban *ban) {
    regexes_release(&ban->regex);
    free(ban->text);
    FREE_OBJ(ban);
}

/* Under the lock. */
static void drop(struct bans *bans, uint32_t until) {
    struct list_link *link;
    while ((link = list_first(&bans->list)) != NULL) {
        struct ban *ban = CONTAINER_OF(link, struct ban, link);
        if (ban->number > until)
            break;
        list_remove(link);
        bans->count--;
        ban_free(ban);
    }
    bans->dropped = until;
}

void bans_release(struct bans *bans) {
    drop(bans, UINT32_MAX);
    pthread_rwlock_destroy(&bans->lock);
}

uint32_t bans_add(struct bans *bans, const char *text, char *error, size_t error_size) {
    struct ban *ban;
    if (!regex_check(text, error, error_size))
        return 0;
    ALLOC_OBJ(ban, BAN_MAGIC);
    ban->text = xstrdup(text);
    ban->made = time(NULL);
    regexes_compile(&ban->regex, (char *[]){ban->text, NULL});
    pthread_rwlock_wrlock(&bans->lock);
    uint32_t number = ban->number = bans_newest(bans) + 1;
    list_append(&bans->list, &ban->link);
    bans->count++;
    /* Last: whoever reads this number finds the ban. */
    atomic_store_explicit(&bans->newest, number, memory_order_release);
    pthread_rwlock_unlock(&bans->lock);
    return number;
}

static _Atomic uint64_t *objects_at(struct bans *bans, uint32_t number) {
    return &bans->objects[number % BANS_COUNTED];
}

bool bans_enter(struct bans *bans, _Atomic uint32_t *checked, uint32_t number) {
    pthread_rwlock_rdlock(&bans->lock);
    bool may = number >= bans->dropped && bans_newest(bans) - number < BANS_LATE;
    if (may) {
        atomic_store_explicit(checked, number, memory_order_relaxed);
        atomic_fetch_add(objects_at(bans, number), 1);
    }
    pthread_rwlock_unlock(&bans->lock);
    return may;
}

void bans_leave(struct bans *bans, _Atomic uint32_t *checked) {
    atomic_fetch_sub(objects_at(bans, atomic_fetch_or(checked, BANS_LEFT)), 1);
}

/* Counted at the new number first: at no time is it nowhere. */
static void move_on(struct bans *bans, _Atomic uint32_t *checked, uint32_t from, uint32_t to) {
    atomic_fetch_add(objects_at(bans, to), 1);
    bool moved = atomic_compare_exchange_strong(checked, &from, to);
    atomic_fetch_sub(objects_at(bans, moved ? from : to), 1);
}

/* Newest first, to stop at the first that is not newer. */
static bool match(const struct bans *bans, struct slice url, uint32_t after) {
    for (struct list_link *link = bans->list.prev; link != &bans->list; link = link->prev) {
        const struct ban *ban = CONTAINER_OF(link, struct ban, link);
        CHECK_OBJ(ban, BAN_MAGIC);
        if (ban->number <= after)
            return false;
        if (regexes_find(&ban->regex, url))
            return true;
    }
    return false;
}

bool bans_compare(struct bans *bans, struct slice url, _Atomic uint32_t *checked) {
    uint32_t before = atomic_load(checked);
    pthread_rwlock_rdlock(&bans->lock);
    uint32_t newest = bans_newest(bans);
    bool found = match(bans, url, before & ~BANS_LEFT);
    if (!found && (before & BANS_LEFT) == 0)
        move_on(bans, checked, before, newest);
    pthread_rwlock_unlock(&bans->lock);
    return found;
}

/* Up to the oldest number at which there is an object. */
void bans_drop_spent(struct bans *bans) {
    pthread_rwlock_wrlock(&bans->lock);
    uint32_t newest = bans_newest(bans), number = bans->dropped;
    while (number < newest && atomic_load(objects_at(bans, number)) == 0)
        number++;
    drop(bans, number);
    pthread_rwlock_unlock(&bans->lock);
}

void bans_each(struct bans *bans, void (*see)(void *arg, const struct ban *ban), void *arg) {
    pthread_rwlock_rdlock(&bans->lock);
    LIST_FOR_EACH_SAFE (link, next, &bans->list)
        see(arg, CONTAINER_OF(link, struct ban, link));
    pthread_rwlock_unlock(&bans->lock);
}
