#include "record/inspections.h"

#include "base/assert.h"
#include "base/clocks.h"

#include <pthread.h>
#include <string.h>

/* What an inspection takes. Constant, but for the count of the sample. */
struct inspection_choice {
    _Atomic unsigned references;
    struct record_filter filter;
    struct inspection_wish wish;
};

/* BEGUN: the workers do not have its recorder yet. */
enum inspections_stage { INSPECTIONS_OVER, INSPECTIONS_BEGUN, INSPECTIONS_OPEN };

struct inspections {
    unsigned magic;
#define INSPECTIONS_MAGIC 0x1259ec75u
    /* Read without the mutex. */
    _Atomic enum inspections_stage stage;
    _Atomic uint64_t until;
    _Atomic unsigned active;          /* transactions under way that were taken */
    pthread_mutex_t lock;             /* of what follows */
    struct inspection_choice *choice; /* referenced; NULL: there was none */
    uint64_t number, left;
    struct list_link list;    /* the oldest first */
    struct list_link dropped; /* freed when the mutex is given back */
    unsigned count;
    size_t memory;
    uint64_t taken, evicted, left_out;
};

struct inspections *inspections_new(void) {
    struct inspections *store;
    ALLOC_OBJ(store, INSPECTIONS_MAGIC);
    pthread_mutex_init(&store->lock, NULL);
    list_init(&store->list);
    list_init(&store->dropped);
    return store;
}

void inspections_lock(struct inspections *store) {
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    pthread_mutex_lock(&store->lock);
}

static void free_all_inspected(struct list_link *list) {
    LIST_FOR_EACH_SAFE (link, next, list) {
        list_remove(link);
        inspected_free(CONTAINER_OF(link, struct inspected, link));
    }
}

void inspections_unlock(struct inspections *store) {
    struct list_link dropped;
    list_init(&dropped);
    list_splice(&dropped, &store->dropped);
    pthread_mutex_unlock(&store->lock);
    free_all_inspected(&dropped);
}

/* Under the mutex. */
static void inspections_unreference(struct inspections *store, struct inspected *inspected) {
    ASSERT(inspected->references > 0);
    if (--inspected->references == 0)
        list_append(&store->dropped, &inspected->link);
}

/* Under the mutex. */
static void inspections_drop(struct inspections *store, struct inspected *inspected) {
    list_remove(&inspected->link);
    store->count--;
    if (inspected->active)
        atomic_fetch_sub(&store->active, 1);
    store->memory -= inspected->cost;
    inspections_unreference(store, inspected);
}

static struct inspection_choice *choice_new(struct record_filter *filter,
                                            const struct inspection_wish *wish) {
    struct inspection_choice *choice = xcalloc(1, sizeof *choice);
    choice->references = 1;
    memcpy(&choice->filter, filter, sizeof *filter);
    memset(filter, 0, sizeof *filter);
    choice->wish = *wish;
    return choice;
}

static void choice_release(struct inspection_choice **choicep) {
    struct inspection_choice *choice = *choicep;
    *choicep = NULL;
    if (choice == NULL || atomic_fetch_sub(&choice->references, 1) > 1)
        return;
    record_filter_release(&choice->filter);
    free(choice);
}

void inspections_free(struct inspections **storep) {
    struct inspections *store = *storep;
    *storep = NULL;
    if (store == NULL)
        return;
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    free_all_inspected(&store->list);
    choice_release(&store->choice);
    pthread_mutex_destroy(&store->lock);
    FREE_OBJ(store);
}

/* Beginning and ending. */

static uint64_t inspections_now(void) {
    return clocks_milliseconds(CLOCK_MONOTONIC);
}

bool inspections_are_over(struct inspections *store) {
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    return atomic_load(&store->stage) == INSPECTIONS_OVER ||
           inspections_now() >= atomic_load(&store->until);
}

bool inspections_begin(struct inspections *store, struct record_filter *filter,
                       const struct inspection_wish *wish) {
    struct inspection_choice *former = NULL;
    inspections_lock(store);
    bool free_now = inspections_are_over(store);
    if (free_now) {
        former = store->choice;
        store->choice = choice_new(filter, wish);
        store->left = wish->transactions;
        store->number++;
        atomic_store(&store->until, inspections_now() + wish->seconds * 1000);
        atomic_store(&store->stage, INSPECTIONS_BEGUN);
    }
    inspections_unlock(store);
    choice_release(&former);
    return free_now;
}

void inspections_open(struct inspections *store) {
    enum inspections_stage begun = INSPECTIONS_BEGUN;
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    atomic_compare_exchange_strong(&store->stage, &begun, INSPECTIONS_OPEN);
}

void inspections_stop(struct inspections *store) {
    CHECK_OBJ(store, INSPECTIONS_MAGIC);
    atomic_store(&store->stage, INSPECTIONS_OVER);
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

/* NULL: none is taken. Referenced. */
static struct inspection_choice *inspections_choice(struct inspections *store) {
    struct inspection_choice *choice = NULL;
    inspections_lock(store);
    if (store->left > 0) {
        choice = store->choice;
        atomic_fetch_add(&choice->references, 1);
    }
    inspections_unlock(store);
    return choice;
}

static bool choice_fits(struct inspection_choice *choice, const struct inspection_facts *facts) {
    const struct recorded_exchange known = {.method = facts->method, .url = facts->url};
    const char *client = choice->wish.client;
    return (client[0] == '\0' || slice_equal(facts->client, slice_from(client))) &&
           record_filter_fits(&choice->filter, &known) && record_filter_takes(&choice->filter);
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

static struct inspected *facts_inspected(struct inspections *store,
                                         const struct inspection_facts *facts, bool masked) {
    struct inspected *inspected;
    size_t id = facts->id.length < SLICE_HEX ? facts->id.length : SLICE_HEX;
    ALLOC_OBJ(inspected, INSPECTED_MAGIC);
    list_init(&inspected->link);
    inspected->store = store;
    inspected->references = 1;
    memcpy(inspected->id, facts->id.base, id);
    inspected->at = clocks_milliseconds(CLOCK_REALTIME);
    inspected->active = true;
    inspected->masked = masked;
    inspected->client = facts_copy(facts->client);
    inspected->method = facts_copy(facts->method);
    inspected->url = facts_copy(facts->url);
    return inspected;
}

/* Under the mutex. False: there is no room for it. */
static bool inspections_add(struct inspections *store, struct inspected *inspected, size_t cost) {
    if (store->count >= INSPECTIONS_KEPT && !inspections_evict(store, NULL)) {
        store->left_out++;
        return false;
    }
    if (!inspections_reserve(inspected, cost))
        return false;
    list_append(&store->list, &inspected->link);
    store->count++;
    store->taken++;
    atomic_fetch_add(&store->active, 1);
    return true;
}

/* False: there is no room for it, or others were taken meanwhile. */
static bool inspections_enter(struct inspections *store, const struct inspection_choice *choice,
                              struct inspected *inspected, size_t cost) {
    bool entered = false;
    inspections_lock(store);
    if (store->choice == choice && store->left > 0 &&
        atomic_load(&store->stage) == INSPECTIONS_OPEN) {
        entered = inspections_add(store, inspected, cost);
        if (--store->left == 0)
            atomic_store(&store->stage, INSPECTIONS_OVER);
    }
    inspections_unlock(store);
    return entered;
}

struct inspected *inspections_take(struct inspections *store,
                                   const struct inspection_facts *facts) {
    struct inspected *inspected = NULL;
    size_t cost =
        sizeof *inspected + facts->url.length + facts->client.length + facts->method.length;
    if (inspections_are_over(store) || atomic_load(&store->stage) != INSPECTIONS_OPEN)
        return NULL;
    struct inspection_choice *choice = inspections_choice(store);
    if (choice != NULL && choice_fits(choice, facts)) {
        inspected = facts_inspected(store, facts, choice->wish.masked);
        if (!inspections_enter(store, choice, inspected, cost)) {
            inspected_free(inspected);
            inspected = NULL;
        }
    }
    choice_release(&choice);
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
    return atomic_load(&store->stage) == INSPECTIONS_OVER && atomic_load(&store->active) == 0;
}

static bool sink_wants(void *arg, struct slice id, bool *masked) {
    struct inspections *store;
    CAST_OBJ(store, arg, INSPECTIONS_MAGIC);
    inspections_lock(store);
    const struct inspected *inspected = inspections_known(store, id);
    bool wanted = inspected != NULL && inspected->record_count < INSPECTED_RECORDS;
    if (wanted)
        *masked = inspected->masked;
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

/* Under the mutex. */
static struct inspected *inspected_reference(struct inspected *inspected) {
    inspected->references++;
    return inspected;
}

/* Gives the reference back. */
static void inspections_show(struct inspections *store, struct inspected *inspected,
                             void (*see)(void *arg, const struct inspected *inspected), void *arg) {
    inspections_lock(store);
    const struct inspected copy = *inspected;
    inspections_unlock(store);
    see(arg, &copy);
    inspections_lock(store);
    inspections_unreference(store, inspected);
    inspections_unlock(store);
}

void inspections_each(struct inspections *store,
                      void (*see)(void *arg, const struct inspected *inspected), void *arg) {
    struct inspected *all[INSPECTIONS_KEPT];
    unsigned count = 0;
    inspections_lock(store);
    for (struct list_link *link = store->list.prev; link != &store->list; link = link->prev)
        all[count++] = inspected_reference(CONTAINER_OF(link, struct inspected, link));
    inspections_unlock(store);
    for (unsigned i = 0; i < count; i++)
        inspections_show(store, all[i], see, arg);
}

bool inspections_find(struct inspections *store, struct slice id,
                      void (*see)(void *arg, const struct inspected *inspected), void *arg) {
    inspections_lock(store);
    struct inspected *inspected = inspections_known(store, id);
    if (inspected != NULL)
        inspected_reference(inspected);
    inspections_unlock(store);
    if (inspected != NULL)
        inspections_show(store, inspected, see, arg);
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
