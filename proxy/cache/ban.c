#include "cache/ban.h"

#include "base/assert.h"

void bans_init(struct bans *bans) {
    ASSERT(pthread_rwlock_init(&bans->lock, NULL) == 0);
    list_init(&bans->list);
    atomic_init(&bans->newest, 0);
    bans->count = 0;
}

static void ban_free(struct ban *ban) {
    regexes_release(&ban->regex);
    free(ban->text);
    FREE_OBJ(ban);
}

void bans_release(struct bans *bans) {
    bans_drop(bans, UINT32_MAX);
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

/* Newest first, to stop at the first that is not newer. */
bool bans_match(struct bans *bans, struct slice url, uint32_t after) {
    bool found = false;
    pthread_rwlock_rdlock(&bans->lock);
    for (struct list_link *link = bans->list.prev; link != &bans->list && !found;
         link = link->prev) {
        const struct ban *ban = CONTAINER_OF(link, struct ban, link);
        CHECK_OBJ(ban, BAN_MAGIC);
        if (ban->number <= after)
            break;
        found = regexes_find(&ban->regex, url);
    }
    pthread_rwlock_unlock(&bans->lock);
    return found;
}

void bans_drop(struct bans *bans, uint32_t until) {
    struct list_link *link;
    pthread_rwlock_wrlock(&bans->lock);
    while ((link = list_first(&bans->list)) != NULL) {
        struct ban *ban = CONTAINER_OF(link, struct ban, link);
        if (ban->number > until)
            break;
        list_remove(link);
        bans->count--;
        ban_free(ban);
    }
    pthread_rwlock_unlock(&bans->lock);
}

void bans_each(struct bans *bans, void (*see)(void *arg, const struct ban *ban), void *arg) {
    pthread_rwlock_rdlock(&bans->lock);
    LIST_FOR_EACH_SAFE (link, next, &bans->list)
        see(arg, CONTAINER_OF(link, struct ban, link));
    pthread_rwlock_unlock(&bans->lock);
}
