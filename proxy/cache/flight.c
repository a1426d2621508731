#include "cache/flight.h"

#include "base/assert.h"

enum { BUCKETS = 1024, ALONE_SECONDS = 60, PAUSES = 4 };

struct flight {
    unsigned magic;
#define FLIGHT_MAGIC 0xf1195700u
    struct list_link link; /* in its bucket while aloft */
    struct bucket *bucket;
    struct cache_name name; /* its URL is `url` */
    unsigned references;    /* under the bucket's lock */
    enum flight_outcome outcome;
    struct list_link followers;
    char url[];
};

/* A name that is remembered without its URL, which may be long: by two hashes. */
struct mark {
    struct cache_key key;
    uint64_t check;
};

/* After a refresh that failed; seconds 0: none. */
struct pause {
    struct mark of;
    time_t until, seconds;
};

struct bucket {
    pthread_mutex_t lock;
    struct list_link flights;
    /* The name in this bucket that was last found not to be stored: one is enough to let a busy
     * page that can't be stored go by. */
    struct mark alone;
    time_t alone_until;
    struct pause pauses[PAUSES];
};

struct flights {
    unsigned magic;
#define FLIGHTS_MAGIC 0xf1195757u
    struct bucket buckets[BUCKETS];
};

struct flights *flights_new(void) {
    struct flights *flights;
    ALLOC_OBJ(flights, FLIGHTS_MAGIC);
    for (unsigned i = 0; i < BUCKETS; i++) {
        pthread_mutex_init(&flights->buckets[i].lock, NULL);
        list_init(&flights->buckets[i].flights);
    }
    return flights;
}

void flights_free(struct flights **flightsp) {
    struct flights *flights = *flightsp;
    *flightsp = NULL;
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    for (unsigned i = 0; i < BUCKETS; i++) {
        ASSERT(list_empty(&flights->buckets[i].flights));
        pthread_mutex_destroy(&flights->buckets[i].lock);
    }
    FREE_OBJ(flights);
}

static struct mark mark_of(const struct cache_name *name) {
    return (struct mark){.key = name->key, .check = cache_hash(name->url)};
}

static bool is_marked(const struct mark *mark, const struct cache_name *name) {
    return cache_key_equal(mark->key, name->key) && mark->check == cache_hash(name->url);
}

static struct flight *flight_find(struct bucket *bucket, const struct cache_name *name) {
    LIST_FOR_EACH (link, &bucket->flights) {
        struct flight *flight = CONTAINER_OF(link, struct flight, link);
        if (cache_key_equal(flight->name.key, name->key) &&
            slice_equal(flight->name.url, name->url))
            return flight;
    }
    return NULL;
}

static struct flight *flight_take_off(struct bucket *bucket, const struct cache_name *name) {
    struct flight *flight = xcalloc(1, sizeof *flight + name->url.length);
    flight->magic = FLIGHT_MAGIC;
    flight->bucket = bucket;
    slice_put(flight->url, name->url);
    flight->name.url = slice_make(flight->url, name->url.length);
    flight->name.key = name->key;
    list_init(&flight->followers);
    list_append(&bucket->flights, &flight->link);
    return flight;
}

static struct bucket *flight_bucket_of(struct flights *flights, const struct cache_name *name) {
    return &flights->buckets[name->key.low % BUCKETS];
}

enum flight_role flight_join(struct flights *flights, const struct cache_name *name, time_t now,
                             struct flight **flightp) {
    struct bucket *bucket = flight_bucket_of(flights, name);
    enum flight_role role = FLIGHT_ALONE;
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    pthread_mutex_lock(&bucket->lock);
    if (!(now < bucket->alone_until && is_marked(&bucket->alone, name))) {
        *flightp = flight_find(bucket, name);
        role = *flightp != NULL ? FLIGHT_FOLLOWS : FLIGHT_LEADS;
        if (*flightp == NULL)
            *flightp = flight_take_off(bucket, name);
        (*flightp)->references++;
    }
    pthread_mutex_unlock(&bucket->lock);
    return role;
}

static struct pause *find_pause(struct bucket *bucket, const struct cache_name *name) {
    for (unsigned i = 0; i < PAUSES; i++)
        if (bucket->pauses[i].seconds > 0 && is_marked(&bucket->pauses[i].of, name))
            return &bucket->pauses[i];
    return NULL;
}

bool flight_may_refresh(struct flights *flights, const struct cache_name *name, time_t now) {
    struct bucket *bucket = flight_bucket_of(flights, name);
    pthread_mutex_lock(&bucket->lock);
    const struct pause *pause = find_pause(bucket, name);
    bool may = flight_find(bucket, name) == NULL && (pause == NULL || now >= pause->until);
    pthread_mutex_unlock(&bucket->lock);
    return may;
}

/* A free place, or that of the pause which ends first. */
static struct pause *place_of_pause(struct bucket *bucket) {
    struct pause *place = &bucket->pauses[0];
    for (unsigned i = 1; i < PAUSES; i++)
        if (bucket->pauses[i].until < place->until)
            place = &bucket->pauses[i];
    return place;
}

void flight_note_failure(struct flights *flights, const struct cache_name *name, time_t now,
                         time_t most) {
    struct bucket *bucket = flight_bucket_of(flights, name);
    if (most == 0)
        return;
    pthread_mutex_lock(&bucket->lock);
    struct pause *pause = find_pause(bucket, name);
    time_t seconds = pause == NULL ? 1 : pause->seconds * 2;
    if (pause == NULL)
        pause = place_of_pause(bucket);
    pause->of = mark_of(name);
    pause->seconds = seconds < most ? seconds : most;
    pause->until = now + pause->seconds;
    pthread_mutex_unlock(&bucket->lock);
}

void flight_note_success(struct flights *flights, const struct cache_name *name) {
    struct bucket *bucket = flight_bucket_of(flights, name);
    pthread_mutex_lock(&bucket->lock);
    struct pause *pause = find_pause(bucket, name);
    if (pause != NULL)
        *pause = (struct pause){.seconds = 0};
    pthread_mutex_unlock(&bucket->lock);
}

/* Drops a reference; the bucket's lock is held, and released. */
static void release_and_unlock(struct flight *flight) {
    struct bucket *bucket = flight->bucket;
    bool last = --flight->references == 0;
    pthread_mutex_unlock(&bucket->lock);
    if (!last)
        return;
    ASSERT(list_empty(&flight->followers));
    FREE_OBJ(flight);
}

void flight_land(struct flight **flightp, enum flight_outcome outcome, time_t now,
                 const struct loop *loop) {
    struct flight *flight = *flightp;
    *flightp = NULL;
    if (flight == NULL)
        return;
    CHECK_OBJ(flight, FLIGHT_MAGIC);
    struct bucket *bucket = flight->bucket;
    pthread_mutex_lock(&bucket->lock);
    list_remove(&flight->link);
    flight->outcome = outcome;
    if (outcome == FLIGHT_UNSTORED) {
        bucket->alone = mark_of(&flight->name);
        bucket->alone_until = now + ALONE_SECONDS;
    }
    waiters_wake(&flight->followers, loop);
    release_and_unlock(flight);
}

bool flight_wait(struct flight *flight, struct waiter **slot, struct mailbox *mailbox,
                 struct task *task) {
    CHECK_OBJ(flight, FLIGHT_MAGIC);
    if (*slot != NULL)
        return true;
    pthread_mutex_lock(&flight->bucket->lock);
    bool aloft = flight->outcome == FLIGHT_ALOFT;
    if (aloft)
        waiter_add(&flight->followers, slot, mailbox, task);
    pthread_mutex_unlock(&flight->bucket->lock);
    return aloft;
}

enum flight_outcome flight_outcome(struct flight *flight) {
    pthread_mutex_lock(&flight->bucket->lock);
    enum flight_outcome outcome = flight->outcome;
    pthread_mutex_unlock(&flight->bucket->lock);
    return outcome;
}

void flight_leave(struct flight **flightp, struct waiter **slot) {
    struct flight *flight = *flightp;
    *flightp = NULL;
    if (flight == NULL)
        return;
    CHECK_OBJ(flight, FLIGHT_MAGIC);
    waiter_cancel(slot, &flight->bucket->lock);
    pthread_mutex_lock(&flight->bucket->lock);
    release_and_unlock(flight);
}
