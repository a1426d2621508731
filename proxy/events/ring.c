#include "events/ring.h"

#include "base/assert.h"
#include "log/line.h"

#include <stdatomic.h>
#include <string.h>

/* LARGEST: room that any event fits in. LINE: bytes of a line of the processor's cache, so that the
 * two threads do not take theirs from each other. */
enum { ALIGN = 8, LARGEST = sizeof(struct event_head) + LOG_LINE_MAX, LINE = 64 };

/* An event begins below `size` and is in one piece, which may reach beyond it. Head and tail are
 * equal when the ring is empty. */
/* What the latest consumer with a bit has lost. */
struct ring_loss {
    _Atomic uint64_t since; /* its first watch; 0: it is being written */
    _Atomic uint64_t count;
};

struct event_ring {
    unsigned magic;
#define EVENT_RING_MAGIC 0xe4e47219u
    size_t size;
    char *bytes;
    _Alignas(LINE) _Atomic size_t head; /* where the worker writes next */
    struct ring_loss lost[EVENT_CONSUMERS_MOST];
    _Alignas(LINE) _Atomic size_t tail; /* where the reader reads next */
};

struct event_ring *event_ring_new(size_t size) {
    struct event_ring *ring = aligned_alloc(LINE, sizeof *ring);
    ASSERT(size >= EVENT_RING_LEAST);
    if (ring == NULL)
        return NULL;
    INIT_OBJ(ring, EVENT_RING_MAGIC);
    ring->size = size;
    ring->bytes = malloc(size + LARGEST);
    if (ring->bytes == NULL)
        FREE_OBJ(ring);
    return ring;
}

void event_ring_free(struct event_ring **ringp) {
    struct event_ring *ring = *ringp;
    *ringp = NULL;
    if (ring == NULL)
        return;
    CHECK_OBJ(ring, EVENT_RING_MAGIC);
    free(ring->bytes);
    FREE_OBJ(ring);
}

/* The place behind an event. */
static size_t ring_behind(const struct event_ring *ring, size_t at, size_t length) {
    size_t next = at + sizeof(struct event_head) + ((length + ALIGN - 1) & ~(size_t)(ALIGN - 1));
    return next >= ring->size ? 0 : next;
}

char *event_ring_begin(struct event_ring *ring) {
    CHECK_OBJ(ring, EVENT_RING_MAGIC);
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    size_t end = head + LARGEST + ALIGN;
    bool room = head < tail ? end < tail : end < ring->size || tail > 0;
    return room ? ring->bytes + head + sizeof(struct event_head) : NULL;
}

void event_ring_end(struct event_ring *ring, const struct event_head *head) {
    size_t at = atomic_load_explicit(&ring->head, memory_order_relaxed);
    ASSERT(head->length <= LOG_LINE_MAX);
    memcpy(ring->bytes + at, head, sizeof *head);
    atomic_store_explicit(&ring->head, ring_behind(ring, at, head->length), memory_order_release);
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

bool event_ring_next(struct event_ring *ring, struct event_head *head, const char **line) {
    CHECK_OBJ(ring, EVENT_RING_MAGIC);
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    if (tail == atomic_load_explicit(&ring->head, memory_order_acquire))
        return false;
    memcpy(head, ring->bytes + tail, sizeof *head);
    *line = ring->bytes + tail + sizeof *head;
    return true;
}

void event_ring_took(struct event_ring *ring) {
    struct event_head head;
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    memcpy(&head, ring->bytes + tail, sizeof head);
    atomic_store_explicit(&ring->tail, ring_behind(ring, tail, head.length), memory_order_release);
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
