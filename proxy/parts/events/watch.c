#include "events/watch.h"

#include "base/assert.h"
#include "base/ring.h"

#include <stdatomic.h>

/* Room that any event fits in. */
enum { LARGEST = sizeof(struct event_head) + LOG_LINE_MAX };

/* What the latest consumer with a bit has lost. */
struct ring_loss {
    _Atomic uint64_t since; /* its first watch; 0: it is being written */
    _Atomic uint64_t count;
};

struct event_ring {
    unsigned magic;
#define EVENT_RING_MAGIC 0xe4e47219u
    struct ring_shared shared;
    struct ring out; /* the worker's */
    struct ring_loss lost[EVENT_CONSUMERS_MOST];
    struct {
        struct event_head head;
        char line[LOG_LINE_MAX];
    } next;                             /* that the worker writes */
    _Alignas(RING_LINE) struct ring in; /* the reader's */
};

struct event_ring *event_ring_new(size_t size) {
    struct event_ring *ring = aligned_alloc(RING_LINE, sizeof *ring);
    char *bytes = malloc(ring_memory(size));
    ASSERT(size >= EVENT_RING_LEAST);
    if (ring == NULL || bytes == NULL) {
        free(ring);
        free(bytes);
        return NULL;
    }
    INIT_OBJ(ring, EVENT_RING_MAGIC);
    ring_open(&ring->out, &ring->shared, bytes, size);
    ring_open(&ring->in, &ring->shared, bytes, size);
    return ring;
}

void event_ring_free(struct event_ring **ringp) {
    struct event_ring *ring = *ringp;
    *ringp = NULL;
    if (ring == NULL)
        return;
    CHECK_OBJ(ring, EVENT_RING_MAGIC);
    free(ring->in.bytes);
    FREE_OBJ(ring);
}

char *event_ring_begin(struct event_ring *ring) {
    CHECK_OBJ(ring, EVENT_RING_MAGIC);
    return ring_room(&ring->out) >= LARGEST ? ring->next.line : NULL;
}

void event_ring_end(struct event_ring *ring, const struct event_head *head) {
    ASSERT(head->length <= LOG_LINE_MAX);
    ring->next.head = *head;
    ring_write(&ring->out, &ring->next, sizeof *head + head->length);
    ring_publish(&ring->out);
}

void event_ring_lose(struct event_ring *ring, unsigned consumer, uint64_t since) {
    struct ring_loss *loss = &ring->lost[consumer];
    if (atomic_load(&loss->since) != since) {
        atomic_store(&loss->since, 0);
        atomic_store(&loss->count, 0);
        atomic_store(&loss->since, since);
    }
    atomic_fetch_add(&loss->count, 1);
}

bool event_ring_take(struct event_ring *ring, struct event_head *head, char line[LOG_LINE_MAX]) {
    CHECK_OBJ(ring, EVENT_RING_MAGIC);
    if (ring_waiting(&ring->in) == 0)
        return false;
    ring_read(&ring->in, head, sizeof *head);
    ring_read(&ring->in, line, head->length);
    ring_release(&ring->in);
    return true;
}

/* A worker never comes back to an earlier watch. So the count is that of `since` where that is there
 * before and after. */
uint64_t event_ring_lost(const struct event_ring *ring, unsigned consumer, uint64_t since) {
    const struct ring_loss *loss = &ring->lost[consumer];
    if (atomic_load(&loss->since) != since)
        return 0;
    uint64_t count = atomic_load(&loss->count);
    return atomic_load(&loss->since) == since ? count : 0;
}

struct event_watch *event_watch_new(uint64_t number, struct event_ring *const *rings) {
    struct event_watch *watch;
    ALLOC_OBJ(watch, EVENT_WATCH_MAGIC);
    watch->users = 1;
    watch->number = number;
    watch->rings = rings;
    return watch;
}

void event_watch_add(struct event_watch *watch, unsigned consumer, struct event_filter *filter,
                     uint64_t since) {
    CHECK_OBJ(watch, EVENT_WATCH_MAGIC);
    watch->filters[consumer] = event_filter_reference(filter);
    watch->since[consumer] = since;
}

struct event_watch *event_watch_reference(struct event_watch *watch) {
    if (watch == NULL)
        return NULL;
    CHECK_OBJ(watch, EVENT_WATCH_MAGIC);
    atomic_fetch_add(&watch->users, 1);
    return watch;
}

void event_watch_release(struct event_watch **watchp) {
    struct event_watch *watch = *watchp;
    *watchp = NULL;
    if (watch == NULL)
        return;
    CHECK_OBJ(watch, EVENT_WATCH_MAGIC);
    if (atomic_fetch_sub(&watch->users, 1) > 1)
        return;
    for (unsigned i = 0; i < EVENT_CONSUMERS_MOST; i++)
        event_filter_release(&watch->filters[i]);
    FREE_OBJ(watch);
}
