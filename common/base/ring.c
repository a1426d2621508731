#include "base/ring.h"

#include "base/assert.h"

#include <string.h>

size_t ring_memory(size_t size) {
    size_t memory = 1;
    while (memory < size)
        memory *= 2;
    return memory;
}

void ring_open(struct ring *ring, struct ring_shared *shared, char *bytes, size_t size) {
    ASSERT(size > 0 && size <= RING_MOST);
    *ring = (struct ring){
        .shared = shared,
        .bytes = bytes,
        .size = (uint32_t)size,
        .mask = (uint32_t)ring_memory(size) - 1,
    };
}

/* The index was written before, and the flag is read behind it; the other side does it in the opposite
 * order. So one of the two sees what the other has done. */
static bool take_flag(_Atomic uint32_t *flag) {
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(flag, memory_order_relaxed) != 0 && atomic_exchange(flag, 0) != 0;
}

bool ring_must_wake(struct ring *ring) {
    return take_flag(&ring->shared->reader_sleeps);
}

bool ring_await_room(struct ring *ring, size_t length) {
    atomic_store(&ring->shared->writer_waits, 1);
    atomic_thread_fence(memory_order_seq_cst);
    return ring_room(ring) < length;
}

size_t ring_waiting(struct ring *ring) {
    uint32_t written = atomic_load_explicit(&ring->shared->written, memory_order_acquire);
    return ring_distance(ring, ring->at, written);
}

void ring_read(struct ring *ring, void *bytes, size_t length) {
    size_t first = ring_first_piece(ring, length);
    if (length == 0)
        return;
    memcpy(bytes, ring->bytes + (ring->at & ring->mask), first);
    memcpy((char *)bytes + first, ring->bytes, length - first);
    ring->at += (uint32_t)length;
}

void ring_skip(struct ring *ring, size_t length) {
    ring->at += (uint32_t)length;
}

void ring_release(struct ring *ring) {
    atomic_store_explicit(&ring->shared->taken, ring->at, memory_order_release);
}

bool ring_must_wake_writer(struct ring *ring) {
    return take_flag(&ring->shared->writer_waits);
}

bool ring_sleep(struct ring *ring) {
    atomic_store(&ring->shared->reader_sleeps, 1);
    atomic_thread_fence(memory_order_seq_cst);
    return ring_waiting(ring) == 0;
}

void ring_stay_awake(struct ring *ring) {
    atomic_store_explicit(&ring->shared->reader_sleeps, 0, memory_order_relaxed);
}
