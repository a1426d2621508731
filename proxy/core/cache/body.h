/*
 * A body in memory. One producer writes it once. Any number of consumers read it
 * (cache/body_reader.h), while the body is still arriving and afterwards.
 *
 *     struct body *body = body_new(net, BODY_SHARED, length_or_minus_one);
 *     size_t room; char *at = body_room(body, &room);   write there, then
 *     body_grow(body, count);
 *     body_finish(body, BODY_COMPLETE);                 or BODY_FAILED
 *
 * BODY_SHARED keeps all bytes: the cache stores such a body, and collapsed requests read it.
 * BODY_PASSING is for a body that is not stored. A passing body has one reader, in the writer's
 * thread. Its bytes stand in read buffers of the worker, and a buffer goes back to the worker when
 * its bytes have been read. body_room gives no space while BODY_WINDOW bytes wait; the writer's
 * task runs when there is space again. Bytes that already stand in a read buffer stay in that
 * buffer (body_pass).
 *
 * BODY_BACKED is a complete body whose bytes stand in a file. It has no pieces: body_reader_file
 * tells from where the bytes can be sent. A reader waits for these bytes as it waits for bytes
 * that have not arrived. body_copy, which may wait for the disk, is for callers that need the
 * bytes themselves.
 *
 * BODY_HELD is a complete body in memory for one reply or a few. Its maker has read the bytes into
 * one piece of memory:
 *
 *     struct body_held *held = body_held_new(length);   fill held->bytes
 *     struct body *body = body_of_held(&held, begin, count);
 *
 * This memory counts as memory of the cache while the body lives. A body that stays in the cache is
 * copied (body_compact).
 *
 * Threads: the writer belongs to one thread. Readers of a shared body may be in other threads and
 * are woken by message. Reading takes no lock: a block's address is published before the length
 * that covers it. Tasks that wait are in a list under one of BODY_LOCKS locks, which bodies share.
 * The data that only a writer needs is freed when a shared body is complete. Ownership: references;
 * the last one frees.
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

/* The file of a BODY_BACKED body, and the functions that read it. The keeper of the file has a
 * struct of its own with this as the first member. The functions are called in any thread. */
struct body_backing {
    int fd;
    bool copy;       /* the file's pages must not be handed to sockets */
    uint64_t offset; /* of the body in the file */
    size_t cost;     /* of memory */
    /* How many bytes from `position` on can be sent from the file without waiting; 0: wait. */
    size_t (*ready)(struct body_backing *backing, uint64_t position);
    /* Like body_reader_wait. */
    bool (*wait)(struct body_backing *backing, struct body *body, uint64_t position,
                 struct waiter **slot, struct mailbox *mailbox, struct task *task);
    void (*cancel)(struct body_backing *backing, struct waiter **slot);
    bool (*read)(struct body_backing *backing, uint64_t position, char *bytes, size_t length);
    void (*release)(struct body_backing *backing);
};

struct body_held {
    size_t capacity, begin; /* of `bytes`; where the body begins in them */
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
        struct body_writing *writing; /* the writer and the tasks that wait; NULL: complete */
        struct body_backing *backing; /* BODY_BACKED; owned */
        struct body_held *held;       /* BODY_HELD; owned */
    };
    struct body_block first; /* the first bytes stand in the body's own memory */
};

/* A length past BODY_EXPECTED_MOST counts as unknown. */
struct body *body_new(struct net_context *net, enum body_kind kind, int64_t expected);
/* A complete body with a copy of the bytes, which are few. Where memory is short, the function
 * takes some from the reserve (base/reserve.h). */
struct body *body_of_bytes(struct slice bytes);
/* Like body_of_bytes, without the reserve; NULL: no memory. */
struct body *body_of_many_bytes(struct slice bytes);
/* A complete body in a file. The body takes over the backing. */
struct body *body_of_file(struct body_backing *backing, uint64_t length);
/* NULL: no memory. */
struct body_held *body_held_new(size_t capacity);
void body_held_free(struct body_held **heldp);
/* A complete body with `length` bytes of *heldp from `begin` on. The body takes over *heldp, which
 * becomes NULL. */
struct body *body_of_held(struct body_held **heldp, size_t begin, size_t length);
/* Marks a BODY_BACKED body as failed because its file is damaged: its readers have to break off. */
void body_spoil(struct body *body);
/* Copies bytes of a complete body; false: they can't be read. */
bool body_copy(struct body *body, uint64_t position, char *bytes, size_t length);
struct body *body_reference(struct body *body);
void body_release(struct body **bodyp);
/* Prefetches the memory that body_release will read. */
void body_prefetch_release(const struct body *body);

/* Space to write to. NULL with *room 0: the window is full (BODY_PASSING), wait until the writer's
 * task runs. NULL with *room 1: memory is exhausted. */
char *body_room(struct body *body, size_t *room);
/* Like body_room, but gives up to `most` pieces, so that one read can fill several. Blocks are
 * added ahead only if the length is known or the body is a passing one. Returns 0 where body_room
 * returns NULL; *exhausted tells whether memory is exhausted. */
int body_rooms(struct body *body, struct iovec *pieces, int most, bool *exhausted);
/* Says that `count` bytes have been written, from the first of the pieces on. */
void body_grow(struct body *body, size_t count);
/* Adds the bytes that wait in the buffer, at least one, without a copy. Only for BODY_PASSING,
 * while the body has no unused space. The body takes over the buffer. The bytes before them in the
 * buffer may be overwritten (body_reader_front). */
void body_pass(struct body *body, struct net_buffer **bufferp);
void body_finish(struct body *body, enum body_state state);
void body_set_writer(struct body *body, struct task *writer);
/* Turns a shared body with one reader, which no other request can find, into a passing one. The
 * reader has read `consumed` bytes. */
void body_stop_keeping(struct body *body, uint64_t consumed);
/* Bytes of memory that the body takes, or will take when all expected bytes are there. */
size_t body_cost(const struct body *body);
/* Returns a reference to a body with the same bytes that takes less memory: a copy if `body` is
 * held, or if a copy would save much; otherwise `body` itself. `body` must be complete. */
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

/* The reader of a passing body has come to `position`, in `block`: frees the blocks before that
 * one, and lets the writer go on. */
void body_forget_until(struct body *body, struct body_block *block, uint64_t position);
/* True: no bytes behind `position` have arrived yet; the task will run. False: something
 * has changed. */
bool body_wait(struct body *body, uint64_t position, struct waiter **slot, struct mailbox *mailbox,
               struct task *task);
void body_stop_waiting(struct body *body, struct waiter **slot);

#endif
