#include "cache/flight.h"

#include "base/assert.h"

enum { BUCKETS = 1024, ALONE_SECONDS = 60, PAUSES = 4 };

struct flight {
    unsigned magic;
#define FLIGHT_MAGIC 0xf1195700u
    struct list_link link; /* in its bucket while aloft */
    struct bucket *bucket;
    struct cache_key key;
    unsigned references; /* under the bucket's lock */
    enum flight_outcome outcome;
    struct list_link followers;
};

/* After a refresh that failed; seconds 0: none. */
struct pause {
    struct cache_key key;
    time_t until, seconds;
};

struct bucket {
    pthread_mutex_t lock;
    struct list_link flights;
    /* The key of this bucket that was last found not to be stored: one is enough to let a busy page
     * that can't be stored go by. */
    struct cache_key alone;
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

static struct flight *find(struct bucket *bucket, struct cache_key key) {
    LIST_FOR_EACH (link, &bucket->flights) {
        struct flight *flight = CONTAINER_OF(link, struct flight, link);
        if (cache_key_equal(flight->key, key))
            return flight;
    }
    return NULL;
}

static struct flight *take_off(struct bucket *bucket, struct cache_key key) {
    struct flight *flight;
    ALLOC_OBJ(flight, FLIGHT_MAGIC);
    flight->bucket = bucket;
    flight->key = key;
    list_init(&flight->followers);
    list_append(&bucket->flights, &flight->link);
    return flight;
}

enum flight_role flight_join(struct flights *flights, struct cache_key key, time_t now,
                             struct flight **flightp) {
    struct bucket *bucket = &flights->buckets[key.low % BUCKETS];
    enum flight_role role = FLIGHT_ALONE;
    CHECK_OBJ(flights, FLIGHTS_MAGIC);
    pthread_mutex_lock(&bucket->lock);
    if (!(cache_key_equal(bucket->alone, key) && now < bucket->alone_until)) {
        *flightp = find(bucket, key);
        role = *flightp != NULL ? FLIGHT_FOLLOWS : FLIGHT_LEADS;
        if (*flightp == NULL)
            *flightp = take_off(bucket, key);
        (*flightp)->references++;
    }
    pthread_mutex_unlock(&bucket->lock);
    return role;
}

static struct pause *find_pause(struct bucket *bucket, struct cache_key key) {
    for (unsigned i = 0; i < PAUSES; i++)
        if (bucket->pauses[i].seconds > 0 && cache_key_equal(bucket->pauses[i].key, key))
            return &bucket->pauses[i];
    return NULL;
}

bool flight_may_refresh(struct flights *flights, struct cache_key key, time_t now) {
    struct bucket *bucket = &flights->buckets[key.low % BUCKETS];
    pthread_mutex_lock(&bucket->lock);
    const struct pause *pause = find_pause(bucket, key);
    bool may = find(bucket, key) == NULL && (pause == NULL || now >= pause->until);
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

void flight_note_failure(struct flights *flights, struct cache_key key, time_t now, time_t most) {
    struct bucket *bucket = &flights->buckets[key.low % BUCKETS];
    if (most == 0)
        return;
    pthread_mutex_lock(&bucket->lock);
    struct pause *pause = find_pause(bucket, key);
    time_t seconds = pause == NULL ? 1 : pause->seconds * 2;
    if (pause == NULL)
        pause = place_of_pause(bucket);
    pause->key = key;
    pause->seconds = seconds < most ? seconds : most;
    pause->until = now + pause->seconds;
    pthread_mutex_unlock(&bucket->lock);
}

void flight_note_success(struct flights *flights, struct cache_key key) {
    struct bucket *bucket = &flights->buckets[key.low % BUCKETS];
    pthread_mutex_lock(&bucket->lock);
    struct pause *pause = find_pause(bucket, key);
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
        bucket->alone = flight->key;
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
