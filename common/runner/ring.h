/*
 * A ring: bytes from one writer to one reader, through memory that both see. The two may be threads of
 * one process, or two processes.
 *
 *     struct ring out, in;                                   each side has its own
 *     ring_open(&out, shared);                               the writer, on memory that began as zero
 *     if (ring_room(&out) >= length) {
 *         ring_write(&out, bytes, length);
 *         ring_publish(&out);                                the reader may see it from now on
 *     }
 *     if (ring_must_wake(&out)) ...                          the reader sleeps: write its eventfd
 *
 *     ring_open(&in, shared);                                the reader
 *     while (ring_waiting(&in) >= length) {
 *         ring_read(&in, bytes, length);
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
#ifndef RETORT_RUNNER_RING_H
#define RETORT_RUNNER_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RING_SIZE = 128 * 1024, RING_LINE = 64 }; /* a power of two */

struct ring_shared {
    alignas(RING_LINE) _Atomic uint32_t written; /* bytes up to now, modulo 2^32: the writer's */
    _Atomic uint32_t writer_waits;               /* it wants to be woken when there is room */
    alignas(RING_LINE) _Atomic uint32_t taken;   /* likewise: the reader's */
    _Atomic uint32_t reader_sleeps;
    alignas(RING_LINE) char bytes[RING_SIZE];
};

struct ring {
    struct ring_shared *shared;
    uint32_t at; /* this side's index; bytes up to here may be unpublished */
    bool broken; /* the other side's index was impossible */
};

void ring_open(struct ring *ring, struct ring_shared *shared);

/* The writer. */
size_t ring_room(struct ring *ring);
void ring_write(struct ring *ring, const void *bytes, size_t length); /* of at most ring_room */
void ring_publish(struct ring *ring);
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
