/*
 * A ring: bytes from one writer to one reader, through memory that both see. The two may be threads
 * of one process, two processes, or one thread that queues bytes for later.
 *
 *     struct ring out, in;                                   each side has its own
 *     ring_open(&out, shared, bytes, size);                  the writer, on indices that began as zero
 *     if (ring_room(&out) >= length) {
 *         ring_write(&out, data, length);
 *         ring_publish(&out);                                the reader may see it from now on
 *     }
 *     if (ring_must_wake(&out)) ...                          the reader sleeps: write its eventfd
 *
 *     ring_open(&in, shared, bytes, size);                   the reader
 *     while (ring_waiting(&in) >= length) {
 *         ring_read(&in, data, length);
 *         ring_release(&in);                                 the writer has the room again
 *     }
 *     if (ring_sleep(&in)) ...                               there is nothing: the writer will wake it
 *
 * Each side writes one index, and keeps that index in memory of its own as well. So what the other
 * side writes into the shared memory can only lie about its own index, which is checked each time: an
 * index that can't be makes the ring broken, and a broken ring has neither room nor bytes. Bytes are
 * copied out before anybody looks at them, since the other side may change them at any time.
 *
 * Threads: one writer and one reader. Units: bytes.
 */
#ifndef RETORT_BASE_RING_H
#define RETORT_BASE_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { RING_LINE = 64, RING_MOST = 1 << 30 };

/* What the two sides tell each other. */
struct ring_shared {
    alignas(RING_LINE) _Atomic uint32_t written; /* bytes up to now, modulo 2^32: the writer's */
    _Atomic uint32_t writer_waits;               /* it wants to be woken when there is room */
    alignas(RING_LINE) _Atomic uint32_t taken;   /* likewise: the reader's */
    _Atomic uint32_t reader_sleeps;
};

struct ring {
    struct ring_shared *shared;
    char *bytes;
    uint32_t size, mask;
    uint32_t at; /* this side's index; bytes up to here may be unpublished */
    bool broken; /* the other side's index was impossible */
};

/* How many bytes of memory a ring of that size needs: the next power of two. */
size_t ring_memory(size_t size);
/* `bytes`: ring_memory(size) of them, where at most `size` are in use at a time. `size`: at most
 * RING_MOST. */
void ring_open(struct ring *ring, struct ring_shared *shared, char *bytes, size_t size);

/* The bytes between two indices; more than the ring has: one of them is forged. */
static inline size_t ring_distance(struct ring *ring, uint32_t from, uint32_t to) {
    uint32_t distance = to - from;
    ring->broken |= distance > ring->size;
    return ring->broken ? 0 : distance;
}

/* The pieces in front of the end of the memory, and behind it at its beginning. */
static inline size_t ring_first_piece(const struct ring *ring, size_t length) {
    size_t left = (size_t)ring->mask + 1 - (ring->at & ring->mask);
    return length < left ? length : left;
}

/* The writer. */
static inline size_t ring_room(struct ring *ring) {
    uint32_t taken = atomic_load_explicit(&ring->shared->taken, memory_order_acquire);
    size_t inside = ring_distance(ring, taken, ring->at);
    return ring->broken ? 0 : ring->size - inside;
}

/* Of at most ring_room bytes. */
static inline void ring_write(struct ring *ring, const void *bytes, size_t length) {
    size_t first = ring_first_piece(ring, length);
    if (first > 0)
        memcpy(ring->bytes + (ring->at & ring->mask), bytes, first);
    if (first < length)
        memcpy(ring->bytes, (const char *)bytes + first, length - first);
    ring->at += (uint32_t)length;
}

static inline void ring_publish(struct ring *ring) {
    atomic_store_explicit(&ring->shared->written, ring->at, memory_order_release);
}
/* Once after ring_publish: does the reader sleep? */
bool ring_must_wake(struct ring *ring);
/* There is no room for `length` bytes: the reader will wake this side. False: there is room now. */
bool ring_await_room(struct ring *ring, size_t length);

/* The reader. */
size_t ring_waiting(struct ring *ring);
void ring_read(struct ring *ring, void *bytes, size_t length); /* of at most ring_waiting */
void ring_skip(struct ring *ring, size_t length);
void ring_release(struct ring *ring);
/* Once after ring_release: does the writer wait for room? */
bool ring_must_wake_writer(struct ring *ring);
/* True: nothing is there, and the writer will wake this side. */
bool ring_sleep(struct ring *ring);
void ring_stay_awake(struct ring *ring);

#endif
