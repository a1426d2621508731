#include "runner/ring.h"

#include "base/assert.h"

#include <string.h>

void ring_open(struct ring *ring, struct ring_shared *shared) {
    *ring = (struct ring){.shared = shared};
}

/* The bytes between two indices; more than the ring has: one of them is forged. */
static size_t ring_distance(struct ring *ring, uint32_t from, uint32_t to) {
    uint32_t distance = to - from;
    ring->broken |= distance > RING_SIZE;
    return ring->broken ? 0 : distance;
}

size_t ring_room(struct ring *ring) {
    uint32_t taken = atomic_load_explicit(&ring->shared->taken, memory_order_acquire);
    size_t inside = ring_distance(ring, taken, ring->at);
    return ring->broken ? 0 : RING_SIZE - inside;
}

/* The pieces in front of the end of the memory, and behind it at its beginning. */
static size_t first_piece(uint32_t at, size_t length) {
    size_t left = RING_SIZE - at % RING_SIZE;
    return length < left ? length : left;
}

void ring_write(struct ring *ring, const void *bytes, size_t length) {
    size_t first = first_piece(ring->at, length);
    if (length == 0)
        return;
    memcpy(ring->shared->bytes + ring->at % RING_SIZE, bytes, first);
    memcpy(ring->shared->bytes, (const char *)bytes + first, length - first);
    ring->at += (uint32_t)length;
}

void ring_publish(struct ring *ring) {
    atomic_store_explicit(&ring->shared->written, ring->at, memory_order_release);
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
    size_t first = first_piece(ring->at, length);
    if (length == 0)
        return;
    memcpy(bytes, ring->shared->bytes + ring->at % RING_SIZE, first);
    memcpy((char *)bytes + first, ring->shared->bytes, length - first);
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
