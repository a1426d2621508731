#include "record/inspections.h"

#include "base/assert.h"
#include "base/clocks.h"

#include <pthread.h>
#include <string.h>

struct inspections {
    unsigned magic;
#define INSPECTIONS_MAGIC 0x1259ec75u
    _Atomic bool over; /* read without the mutex */
    _Atomic uint64_t until;
    _Atomic unsigned active; /* transactions under way that were taken */
    pthread_mutex_t lock;    /* of what follows */
    struct record_filter filter;
    struct inspection_wish wish;
    uint64_t number, left;
    struct list_link list; /* the oldest first */
    unsigned count;
    size_t memory;
    uint64_t taken, evicted, left_out;
};

struct inspections *inspections_new(void) {
    struct inspections *store;
    ALLOC_OBJ(store, INSPECTIONS_MAGIC);
    store->over = true;
    pthread_mutex_init(&store->lock, NULL);
    list_init(&store->list);
    return store;
}

void inspections_lock(struct inspections *store) {
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    pthread_mutex_lock(&store->lock);
}

void inspections_unlock(struct inspections *store) {
    pthread_mutex_unlock(&store->lock);
}

/* Under the mutex. */
static void inspections_drop(struct inspections *store, struct inspected *inspected) {
    list_remove(&inspected->link);
    store->count--;
    if (inspected->active)
        atomic_fetch_sub(&store->active, 1);
    store->memory -= inspected->cost;
    inspected_free(inspected);
}

void inspections_free(struct inspections **storep) {
    struct inspections *store = *storep;
    *storep = NULL;
    if (store == NULL)
        return;
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    LIST_FOR_EACH_SAFE (link, next, &store->list)
        inspections_drop(store, CONTAINER_OF(link, struct inspected, link));
    record_filter_release(&store->filter);
    pthread_mutex_destroy(&store->lock);
    FREE_OBJ(store);
}

/* Beginning and ending. */

static uint64_t inspections_now(void) {
    return clocks_milliseconds(CLOCK_MONOTONIC);
}

bool inspections_are_over(struct inspections *store) {
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    return atomic_load(&store->over) || inspections_now() >= atomic_load(&store->until);
}

bool inspections_begin(struct inspections *store, struct record_filter *filter,
                       const struct inspection_wish *wish) {
    bool free_now = inspections_are_over(store);
    inspections_lock(store);
    if (free_now) {
        record_filter_release(&store->filter);
        memcpy(&store->filter, filter, sizeof *filter);
        memset(filter, 0, sizeof *filter);
        store->wish = *wish;
        store->left = wish->transactions;
        store->number++;
        atomic_store(&store->until, inspections_now() + wish->seconds * 1000);
        atomic_store(&store->over, false);
    }
    inspections_unlock(store);
    return free_now;
}

void inspections_stop(struct inspections *store) {
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    atomic_store(&store->over, true);
}

void inspections_state(struct inspections *store, struct inspections_state *state) {
    bool over = inspections_are_over(store);
    uint64_t now = inspections_now(), until = atomic_load(&store->until);
    inspections_lock(store);
    *state = (struct inspections_state){
        .under_way = !over,
        .number = store->number,
        .left = over ? 0 : store->left,
        .seconds_left = over || until < now ? 0 : (until - now + 999) / 1000,
        .kept = store->count,
        .memory = store->memory,
        .taken = store->taken,
        .evicted = store->evicted,
        .left_out = store->left_out,
    };
    inspections_unlock(store);
}

void inspections_note_end(struct inspections *store) {
    atomic_fetch_sub(&store->active, 1);
}

/* Room. */

/* Removes the oldest transaction that has ended, unless it is `spared`. */
static bool inspections_evict(struct inspections *store, const struct inspected *spared) {
    LIST_FOR_EACH (link, &store->list) {
        struct inspected *inspected = CONTAINER_OF(link, struct inspected, link);
        if (inspected->active || inspected == spared)
            continue;
        store->evicted++;
        inspections_drop(store, inspected);
        return true;
    }
    return false;
}

bool inspections_reserve(struct inspected *inspected, size_t bytes) {
    struct inspections *store = inspected->store;
    while (bytes > INSPECTIONS_MEMORY - store->memory && inspections_evict(store, inspected))
        ;
    if (bytes > INSPECTIONS_MEMORY - store->memory) {
        store->left_out++;
        inspected->left_out++;
        return false;
    }
    store->memory += bytes;
    inspected->cost += bytes;
    return true;
}

/* Taking. */

static bool inspections_want(struct inspections *store, const struct inspection_facts *facts) {
    const struct recorded_exchange known = {.method = facts->method, .url = facts->url};
    const char *client = store->wish.client;
    return store->left > 0 &&
           (client[0] == '\0' || slice_equal(facts->client, slice_from(client))) &&
           record_filter_fits(&store->filter, &known) && record_filter_takes(&store->filter);
}

static char *facts_copy(struct slice text) {
    size_t length = text.length < INSPECTED_URL ? text.length : INSPECTED_URL;
    char *copy = malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, text.base == NULL ? "" : text.base, length);
        copy[length] = '\0';
    }
    return copy;
}

static struct inspected *inspections_add(struct inspections *store,
                                         const struct inspection_facts *facts) {
    struct inspected *inspected;
    size_t id = facts->id.length < SLICE_HEX ? facts->id.length : SLICE_HEX;
    ALLOC_OBJ(inspected, INSPECTED_MAGIC);
    inspected->store = store;
    memcpy(inspected->id, facts->id.base, id);
    inspected->at = clocks_milliseconds(CLOCK_REALTIME);
    inspected->active = true;
    inspected->masked = store->wish.masked;
    inspected->client = facts_copy(facts->client);
    inspected->method = facts_copy(facts->method);
    inspected->url = facts_copy(facts->url);
    list_append(&store->list, &inspected->link);
    store->count++;
    store->taken++;
    atomic_fetch_add(&store->active, 1);
    if (!inspections_reserve(inspected, sizeof *inspected + facts->url.length +
                                            facts->client.length + facts->method.length)) {
        inspections_drop(store, inspected);
        return NULL;
    }
    return inspected;
}

struct inspected *inspections_take(struct inspections *store,
                                   const struct inspection_facts *facts) {
    struct inspected *inspected = NULL;
    if (inspections_are_over(store))
        return NULL;
    inspections_lock(store);
    if (inspections_want(store, facts)) {
        if (store->count >= INSPECTIONS_KEPT)
            inspections_evict(store, NULL);
        if (store->count < INSPECTIONS_KEPT)
            inspected = inspections_add(store, facts);
        else
            store->left_out++;
        if (--store->left == 0)
            atomic_store(&store->over, true);
    }
    inspections_unlock(store);
    return inspected;
}

/* Their exchanges. */

/* Under the mutex. NULL: there is none. */
static struct inspected *inspections_known(struct inspections *store, struct slice id) {
    for (struct list_link *link = store->list.prev; link != &store->list; link = link->prev) {
        struct inspected *inspected = CONTAINER_OF(link, struct inspected, link);
        if (slice_equal(slice_from(inspected->id), id))
            return inspected;
    }
    return NULL;
}

/* Transactions that were taken may go on for as long as the inspection was to last. */
static bool sink_is_over(void *arg) {
    struct inspections *store;
    CAST_OBJ(store, arg, INSPECTIONS_MAGIC);
    if (inspections_now() >= atomic_load(&store->until))
        return true;
    return atomic_load(&store->over) && atomic_load(&store->active) == 0;
}

static bool sink_wants(void *arg, struct slice id) {
    struct inspections *store;
    CAST_OBJ(store, arg, INSPECTIONS_MAGIC);
    inspections_lock(store);
    const struct inspected *inspected = inspections_known(store, id);
    bool wanted = inspected != NULL && inspected->record_count < INSPECTED_RECORDS;
    inspections_unlock(store);
    return wanted;
}

static bool sink_add(struct inspections *store, struct slice id, struct inspected_record *record) {
    struct inspected *inspected = inspections_known(store, id);
    if (inspected == NULL || inspected->record_count == INSPECTED_RECORDS ||
        !inspections_reserve(inspected, record->length))
        return false;
    inspected->records[inspected->record_count++] = record;
    return true;
}

static void sink_keep(void *arg, struct slice id, char *bytes, size_t length) {
    struct inspections *store;
    CAST_OBJ(store, arg, INSPECTIONS_MAGIC);
    struct inspected_record *record = xcalloc(1, sizeof *record);
    record->references = 1;
    record->bytes = bytes;
    record->length = length;
    inspections_lock(store);
    bool kept = sink_add(store, id, record);
    inspections_unlock(store);
    if (!kept)
        inspected_record_release(&record);
}

static void sink_lose(void *arg, struct slice id) {
    struct inspections *store;
    CAST_OBJ(store, arg, INSPECTIONS_MAGIC);
    inspections_lock(store);
    struct inspected *inspected = inspections_known(store, id);
    if (inspected != NULL)
        inspected->left_out++;
    store->left_out++;
    inspections_unlock(store);
}

struct recorder_sink inspections_sink(struct inspections *store) {
    return (struct recorder_sink){sink_is_over, sink_wants, sink_keep, sink_lose, store};
}

/* Looking. */

void inspections_each(struct inspections *store,
                      void (*see)(void *arg, const struct inspected *inspected), void *arg) {
    inspections_lock(store);
    for (struct list_link *link = store->list.prev; link != &store->list; link = link->prev)
        see(arg, CONTAINER_OF(link, struct inspected, link));
    inspections_unlock(store);
}

bool inspections_find(struct inspections *store, struct slice id,
                      void (*see)(void *arg, const struct inspected *inspected), void *arg) {
    inspections_lock(store);
    const struct inspected *inspected = inspections_known(store, id);
    if (inspected != NULL)
        see(arg, inspected);
    inspections_unlock(store);
    return inspected != NULL;
}

unsigned inspections_clear(struct inspections *store) {
    unsigned count = 0;
    inspections_lock(store);
    LIST_FOR_EACH_SAFE (link, next, &store->list) {
        struct inspected *inspected = CONTAINER_OF(link, struct inspected, link);
        if (inspected->active)
            continue;
        inspections_drop(store, inspected);
        count++;
    }
    inspections_unlock(store);
    return count;
}
