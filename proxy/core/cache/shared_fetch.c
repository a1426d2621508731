#include "cache/shared_fetch.h"

#include "base/assert.h"
#include "base/backoff.h"

enum { BUCKETS = 1024, ALONE_SECONDS = 60, PAUSES = 4 };

struct shared_fetch {
    unsigned magic;
#define SHARED_FETCH_MAGIC 0xf1195700u
    struct list_link link; /* in its bucket while running */
    struct bucket *bucket;
    struct cache_name name; /* its URL is `url` */
    unsigned references;    /* under the bucket's lock */
    enum shared_fetch_outcome outcome;
    struct list_link followers;
    char url[];
};

/* A name that is remembered by two hashes, without its URL, which may be long. */
struct mark {
    struct cache_key key;
    uint64_t check;
};

/* The pause after a refresh that failed; seconds 0: no pause. */
struct pause {
    struct mark of;
    time_t until, seconds;
};

struct bucket {
    pthread_mutex_t lock;
    struct list_link fetches;
    /* The name in this bucket whose response last could not be stored. One such name is enough to
     * keep the requests for a busy page that can't be stored from waiting. */
    struct mark alone;
    time_t alone_until;
    struct pause pauses[PAUSES];
};

struct shared_fetches {
    unsigned magic;
#define SHARED_FETCHES_MAGIC 0xf1195757u
    struct bucket buckets[BUCKETS];
};

struct shared_fetches *shared_fetches_new(void) {
    struct shared_fetches *fetches;
    ALLOC_OBJ(fetches, SHARED_FETCHES_MAGIC);
    for (unsigned i = 0; i < BUCKETS; i++) {
        pthread_mutex_init(&fetches->buckets[i].lock, NULL);
        list_init(&fetches->buckets[i].fetches);
    }
    return fetches;
}

void shared_fetches_free(struct shared_fetches **fetchesp) {
    struct shared_fetches *fetches = *fetchesp;
    *fetchesp = NULL;
    CHECK_OBJ(fetches, SHARED_FETCHES_MAGIC);
    for (unsigned i = 0; i < BUCKETS; i++) {
        ASSERT(list_empty(&fetches->buckets[i].fetches));
        pthread_mutex_destroy(&fetches->buckets[i].lock);
    }
    FREE_OBJ(fetches);
}

static struct mark mark_of(const struct cache_name *name) {
    return (struct mark){.key = name->key, .check = cache_hash(name->url)};
}

static bool is_marked(const struct mark *mark, const struct cache_name *name) {
    return cache_key_equal(mark->key, name->key) && mark->check == cache_hash(name->url);
}

static struct shared_fetch *shared_fetch_find(struct bucket *bucket,
                                              const struct cache_name *name) {
    LIST_FOR_EACH (link, &bucket->fetches) {
        struct shared_fetch *fetch = CONTAINER_OF(link, struct shared_fetch, link);
        if (cache_key_equal(fetch->name.key, name->key) && slice_equal(fetch->name.url, name->url))
            return fetch;
    }
    return NULL;
}

static struct shared_fetch *shared_fetch_new(struct bucket *bucket, const struct cache_name *name) {
    struct shared_fetch *fetch = xcalloc(1, sizeof *fetch + name->url.length);
    fetch->magic = SHARED_FETCH_MAGIC;
    fetch->bucket = bucket;
    slice_put(fetch->url, name->url);
    fetch->name.url = slice_make(fetch->url, name->url.length);
    fetch->name.key = name->key;
    list_init(&fetch->followers);
    list_append(&bucket->fetches, &fetch->link);
    return fetch;
}

static struct bucket *shared_fetch_bucket_of(struct shared_fetches *fetches,
                                             const struct cache_name *name) {
    return &fetches->buckets[name->key.low % BUCKETS];
}

enum shared_fetch_role shared_fetch_join(struct shared_fetches *fetches,
                                         const struct cache_name *name, time_t now,
                                         struct shared_fetch **fetchp) {
    struct bucket *bucket = shared_fetch_bucket_of(fetches, name);
    enum shared_fetch_role role = SHARED_FETCH_ALONE;
    CHECK_OBJ(fetches, SHARED_FETCHES_MAGIC);
    pthread_mutex_lock(&bucket->lock);
    if (!(now < bucket->alone_until && is_marked(&bucket->alone, name))) {
        *fetchp = shared_fetch_find(bucket, name);
        role = *fetchp != NULL ? SHARED_FETCH_FOLLOWS : SHARED_FETCH_LEADS;
        if (*fetchp == NULL)
            *fetchp = shared_fetch_new(bucket, name);
        (*fetchp)->references++;
    }
    pthread_mutex_unlock(&bucket->lock);
    return role;
}

static struct pause *shared_fetch_find_pause(struct bucket *bucket, const struct cache_name *name) {
    for (unsigned i = 0; i < PAUSES; i++)
        if (bucket->pauses[i].seconds > 0 && is_marked(&bucket->pauses[i].of, name))
            return &bucket->pauses[i];
    return NULL;
}

bool shared_fetch_may_refresh(struct shared_fetches *fetches, const struct cache_name *name,
                              time_t now) {
    struct bucket *bucket = shared_fetch_bucket_of(fetches, name);
    pthread_mutex_lock(&bucket->lock);
    const struct pause *pause = shared_fetch_find_pause(bucket, name);
    bool may = shared_fetch_find(bucket, name) == NULL && (pause == NULL || now >= pause->until);
    pthread_mutex_unlock(&bucket->lock);
    return may;
}

/* The place for a new pause: a free place, or the place of the pause that ends first. */
static struct pause *shared_fetch_place_of_pause(struct bucket *bucket) {
    struct pause *place = &bucket->pauses[0];
    for (unsigned i = 1; i < PAUSES; i++)
        if (bucket->pauses[i].until < place->until)
            place = &bucket->pauses[i];
    return place;
}

void shared_fetch_note_failure(struct shared_fetches *fetches, const struct cache_name *name,
                               time_t now, time_t most) {
    struct bucket *bucket = shared_fetch_bucket_of(fetches, name);
    if (most == 0)
        return;
    pthread_mutex_lock(&bucket->lock);
    struct pause *pause = shared_fetch_find_pause(bucket, name);
    time_t before = pause == NULL ? 0 : pause->seconds;
    if (pause == NULL)
        pause = shared_fetch_place_of_pause(bucket);
    pause->of = mark_of(name);
    pause->seconds = before == 0 ? 1 : (time_t)backoff_next((uint64_t)before, (uint64_t)most);
    pause->until = now + pause->seconds;
    pthread_mutex_unlock(&bucket->lock);
}

void shared_fetch_note_success(struct shared_fetches *fetches, const struct cache_name *name) {
    struct bucket *bucket = shared_fetch_bucket_of(fetches, name);
    pthread_mutex_lock(&bucket->lock);
    struct pause *pause = shared_fetch_find_pause(bucket, name);
    if (pause != NULL)
        *pause = (struct pause){.seconds = 0};
    pthread_mutex_unlock(&bucket->lock);
}

/* Drops a reference; the bucket's lock is held, and released. */
static void shared_fetch_release_and_unlock(struct shared_fetch *fetch) {
    struct bucket *bucket = fetch->bucket;
    bool last = --fetch->references == 0;
    pthread_mutex_unlock(&bucket->lock);
    if (!last)
        return;
    ASSERT(list_empty(&fetch->followers));
    FREE_OBJ(fetch);
}

void shared_fetch_finish(struct shared_fetch **fetchp, enum shared_fetch_outcome outcome,
                         time_t now, const struct loop *loop) {
    struct shared_fetch *fetch = *fetchp;
    *fetchp = NULL;
    if (fetch == NULL)
        return;
    CHECK_OBJ(fetch, SHARED_FETCH_MAGIC);
    struct bucket *bucket = fetch->bucket;
    pthread_mutex_lock(&bucket->lock);
    list_remove(&fetch->link);
    fetch->outcome = outcome;
    if (outcome == SHARED_FETCH_UNSTORED) {
        bucket->alone = mark_of(&fetch->name);
        bucket->alone_until = now + ALONE_SECONDS;
    }
    waiters_wake(&fetch->followers, loop);
    shared_fetch_release_and_unlock(fetch);
}

bool shared_fetch_wait(struct shared_fetch *fetch, struct waiter **slot, struct mailbox *mailbox,
                       struct task *task) {
    CHECK_OBJ(fetch, SHARED_FETCH_MAGIC);
    if (*slot != NULL)
        return true;
    pthread_mutex_lock(&fetch->bucket->lock);
    bool running = fetch->outcome == SHARED_FETCH_RUNNING;
    if (running)
        waiter_add(&fetch->followers, slot, mailbox, task);
    pthread_mutex_unlock(&fetch->bucket->lock);
    return running;
}

enum shared_fetch_outcome shared_fetch_outcome(struct shared_fetch *fetch) {
    pthread_mutex_lock(&fetch->bucket->lock);
    enum shared_fetch_outcome outcome = fetch->outcome;
    pthread_mutex_unlock(&fetch->bucket->lock);
    return outcome;
}

void shared_fetch_leave(struct shared_fetch **fetchp, struct waiter **slot) {
    struct shared_fetch *fetch = *fetchp;
    *fetchp = NULL;
    if (fetch == NULL)
        return;
    CHECK_OBJ(fetch, SHARED_FETCH_MAGIC);
    waiter_cancel(slot, &fetch->bucket->lock);
    pthread_mutex_lock(&fetch->bucket->lock);
    shared_fetch_release_and_unlock(fetch);
}
