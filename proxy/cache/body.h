/*
 * A body in memory: written once by one producer, read by any number of consumers while it is still
 * arriving and afterwards (cache/body_reader.h).
 *
 *     struct body *body = body_new(net, BODY_SHARED, length_or_minus_one);
 *     size_t room; char *at = body_room(body, &room);   write there, then
 *     body_grow(body, count);
 *     body_finish(body, BODY_COMPLETE);                 or BODY_FAILED
 *
 * BODY_SHARED keeps all bytes: what the cache stores, and collapsed requests read. BODY_PASSING is
 * for what is not stored: it has one reader, in the writer's thread, stands in read buffers of the
 * worker, gives them back as that has read them, and body_room gives nothing while BODY_WINDOW
 * bytes wait (the writer's waker then runs when there is room again). What has been read already
 * passes on in the buffer that it stands in (body_pass).
 *
 * BODY_BACKED is a complete one whose bytes stand in a file: body_reader_file tells from where they
 * can be sent, and a reader waits for them like for bytes that have not arrived. It has no pieces;
 * body_copy, which may wait for the disk, is for those who need the bytes themselves.
 *
 * BODY_HELD is a complete one in memory that somebody has read bytes into, for a reply or a few:
 *
 *     struct body_held *held = body_held_new(length);   fill held->bytes
 *     struct body *body = body_of_held(&held, begin, count);
 *
 * Its memory counts as the cache's while it lives; what is to stay is copied (body_compact).
 *
 * Threads: the writer belongs to one thread; readers of a shared body may be in others and are
 * woken by message. Reading takes no lock: a block's address is published before the length that
 * covers it. Those who wait stand under a lock that bodies share, one of BODY_LOCKS; what only a
 * writer needs is gone when the body is complete. Ownership: references; the last one frees.
 */
#ifndef RETORT_CACHE_BODY_H
#define RETORT_CACHE_BODY_H

#include "base/assert.h"
#include "base/slice.h"
#include "event/waiter.h"
#include "net/context.h"

#include <pthread.h>
#include <sys/uio.h>

#define BODY_EXPECTED_MOST (INT64_MAX >> 16)

enum {
    BODY_WINDOW = 256 * 1024,
    BODY_WINDOW_TIGHT = 16 * 1024, /* where connections hold much memory */
    BODY_LOCKS = 64,
    BODY_ROOMS = 4, /* pieces that body_rooms gives at most */
};

enum body_state { BODY_ARRIVING, BODY_COMPLETE, BODY_FAILED };
enum body_kind { BODY_SHARED, BODY_PASSING, BODY_BACKED, BODY_HELD };

struct body_block {
    _Atomic(struct body_block *) next;
    uint32_t capacity : 31;
    uint32_t passing : 1; /* the bytes stand in a read buffer: struct body_passing_block */
    char data[];
};

struct body_passing_block {
    struct body_block block;
    size_t offset; /* of the block's bytes in the buffer */
    struct net_buffer *buffer;
};

struct body;
struct body_writing;

/* What a body that stands in a file is made of; the first member of a struct of whoever keeps it.
 * Any thread. */
struct body_backing {
    int fd;
    bool copy;       /* the file's pages must not be handed to sockets */
    uint64_t offset; /* of the body in the file */
    size_t cost;     /* of memory */
    /* Bytes from `position` on that can be sent from the file without waiting; 0: wait. */
    size_t (*ready)(struct body_backing *backing, uint64_t position);
    /* Like body_reader_wait. */
    bool (*wait)(struct body_backing *backing, struct body *body, uint64_t position,
                 struct waiter **slot, struct mailbox *mailbox, struct task *task);
    void (*cancel)(struct body_backing *backing, struct waiter **slot);
    bool (*read)(struct body_backing *backing, uint64_t position, char *bytes, size_t length);
    void (*release)(struct body_backing *backing);
};

struct body_held {
    size_t capacity, begin; /* of bytes; where the body's begin */
    _Alignas(16) char bytes[];
};

struct body {
    unsigned magic;
#define BODY_MAGIC 0xb0d7b0d7u
    _Atomic unsigned references;
    int64_t expected : 48; /* the whole length where it was known beforehand, else -1 */
    _Atomic uint8_t state;
    uint8_t kind;
    _Atomic uint64_t length; /* bytes that have arrived */
    union {
        struct body_writing *writing; /* the writer's, and those who wait; NULL: it is complete */
        struct body_backing *backing; /* BODY_BACKED; owned */
        struct body_held *held;       /* BODY_HELD; owned */
    };
    struct body_block first; /* the first bytes stand in the body's own memory */
};

/* A length past BODY_EXPECTED_MOST counts as unknown. */
struct body *body_new(struct net_context *net, enum body_kind kind, int64_t expected);
/* Complete from the start, a copy of the bytes, which are few: draws on the reserve. */
struct body *body_of_bytes(struct slice bytes);
/* The same; NULL: no memory. */
struct body *body_of_many_bytes(struct slice bytes);
/* Complete from the start, in a file; the backing passes over. */
struct body *body_of_file(struct body_backing *backing, uint64_t length);
/* NULL: no memory. */
struct body_held *body_held_new(size_t capacity);
void body_held_free(struct body_held **heldp);
/* Complete from the start: `length` bytes from `begin` on. */
struct body *body_of_held(struct body_held **heldp, size_t begin, size_t length);
/* What was taken for complete turns out to be damaged: those who read it have to break off. */
void body_spoil(struct body *body);
/* Copies bytes of a complete body; false: they can't be read. */
bool body_copy(struct body *body, uint64_t position, char *bytes, size_t length);
struct body *body_reference(struct body *body);
void body_release(struct body **bodyp);
/* Has the processor fetch what that will look at. */
void body_prefetch_release(const struct body *body);

/* Space to write to. NULL with *room 0: the window is full (BODY_PASSING), wait for the waker. NULL
 * with *room 1: memory is exhausted. */
char *body_room(struct body *body, size_t *room);
/* The same in up to `most` pieces, for one read that fills many, where the length is known or the
 * body passes. 0: as NULL above; *exhausted tells which. */
int body_rooms(struct body *body, struct iovec *pieces, int most, bool *exhausted);
/* So many bytes stand there now, from the first of the pieces on. */
void body_grow(struct body *body, size_t count);
/* The bytes that wait in the buffer, at least one, pass on as they stand; BODY_PASSING, before
 * body_room was asked. What the buffer holds before them may be overwritten (body_reader_front). */
void body_pass(struct body *body, struct net_buffer **bufferp);
void body_finish(struct body *body, enum body_state state);
void body_set_writer(struct body *body, struct task *writer);
/* A shared body with one reader, which nobody else can find, becomes a passing one. */
void body_stop_keeping(struct body *body, uint64_t consumed);
/* Bytes of memory that it takes, or will take when all that is expected is there. */
size_t body_cost(const struct body *body);
/* A complete body of unknown beginnings, or one that is held, takes more than it needs: a copy that
 * does not, or, where that would not save much, another reference. */
struct body *body_compact(struct body *body);

static inline uint64_t body_length(const struct body *body) {
    return atomic_load_explicit(&body->length, memory_order_acquire);
}

static inline enum body_state body_state(const struct body *body) {
    return (enum body_state)atomic_load_explicit(&body->state, memory_order_acquire);
}

/* For body_reader. */

static inline struct body_block *body_next_block(struct body_block *block) {
    return atomic_load_explicit(&block->next, memory_order_acquire);
}

static inline char *body_block_data(struct body_block *block) {
    if (!block->passing)
        return block->data;
    struct body_passing_block *passing = CONTAINER_OF(block, struct body_passing_block, block);
    return passing->buffer->data + passing->offset;
}

/* The reader of a passing body has come there: the blocks before go, and the writer goes on. */
void body_forget_until(struct body *body, struct body_block *block, uint64_t position);
/* True: there is nothing behind `position` yet, the task will run. False: something has changed. */
bool body_wait(struct body *body, uint64_t position, struct waiter **slot, struct mailbox *mailbox,
               struct task *task);
void body_stop_waiting(struct body *body, struct waiter **slot);

#endif
