#include "cache/body.h"

#include "base/assert.h"

struct body *body_new(struct loop *loop, enum body_kind kind, int64_t expected) {
    struct body *body;
    ALLOC_OBJ(body, BODY_MAGIC);
    atomic_init(&body->references, 1);
    body->kind = kind;
    body->expected = expected;
    body->loop = loop;
    pthread_mutex_init(&body->lock, NULL);
    list_init(&body->waiting);
    return body;
}

struct body *body_reference(struct body *body) {
    CHECK_OBJ(body, BODY_MAGIC);
    atomic_fetch_add_explicit(&body->references, 1, memory_order_relaxed);
    return body;
}

static struct body_block *next_block(struct body_block *block) {
    return atomic_load_explicit(&block->next, memory_order_acquire);
}

void body_release(struct body **bodyp) {
    struct body *body = *bodyp;
    *bodyp = NULL;
    if (body == NULL)
        return;
    CHECK_OBJ(body, BODY_MAGIC);
    if (atomic_fetch_sub_explicit(&body->references, 1, memory_order_acq_rel) != 1)
        return;
    ASSERT(list_empty(&body->waiting));
    struct body_block *block = atomic_load(&body->first);
    while (block != NULL) {
        struct body_block *next = next_block(block);
        free(block);
        block = next;
    }
    pthread_mutex_destroy(&body->lock);
    FREE_OBJ(body);
}

/* Blocks grow with the body, so that a small one wastes little and a large one has few. */
static size_t block_size(const struct body *body) {
    uint64_t length = atomic_load_explicit(&body->length, memory_order_relaxed);
    size_t size = BODY_BLOCK_MIN;
    if (body->expected >= 0) {
        uint64_t rest = (uint64_t)body->expected - length;
        return rest < BODY_BLOCK_MAX ? (size_t)rest : BODY_BLOCK_MAX;
    }
    while (size < length && size < BODY_BLOCK_MAX)
        size *= 2;
    return size;
}

static bool add_block(struct body *body) {
    size_t size = block_size(body);
    struct body_block *block = size == 0 ? NULL : malloc(sizeof *block + size);
    if (block == NULL)
        return false;
    atomic_init(&block->next, NULL);
    block->capacity = size;
    if (body->last == NULL)
        atomic_store_explicit(&body->first, block, memory_order_release);
    else
        atomic_store_explicit(&body->last->next, block, memory_order_release);
    body->last = block;
    body->used = 0;
    body->allocated += sizeof *block + size;
    return true;
}

char *body_room(struct body *body, size_t *room) {
    CHECK_OBJ(body, BODY_MAGIC);
    uint64_t length = atomic_load_explicit(&body->length, memory_order_relaxed);
    *room = 0;
    if (body->kind == BODY_PASSING && length - body->consumed >= BODY_WINDOW)
        return NULL;
    if ((body->last == NULL || body->used == body->last->capacity) && !add_block(body)) {
        *room = 1;
        return NULL;
    }
    *room = body->last->capacity - body->used;
    return body->last->data + body->used;
}

static void wake_readers(struct body *body) {
    pthread_mutex_lock(&body->lock);
    waiters_wake(&body->waiting, body->loop);
    pthread_mutex_unlock(&body->lock);
}

void body_grow(struct body *body, size_t count) {
    ASSERT(body->last != NULL && count <= body->last->capacity - body->used);
    body->used += count;
    uint64_t length = atomic_load_explicit(&body->length, memory_order_relaxed);
    atomic_store_explicit(&body->length, length + count, memory_order_seq_cst);
    wake_readers(body);
}

void body_finish(struct body *body, enum body_state state) {
    CHECK_OBJ(body, BODY_MAGIC);
    body->writer = NULL;
    atomic_store_explicit(&body->state, (int)state, memory_order_seq_cst);
    wake_readers(body);
}

void body_set_writer(struct body *body, struct task *writer) {
    body->writer = writer;
}

size_t body_cost(const struct body *body) {
    return sizeof *body + body->allocated;
}

struct body *body_of_bytes(struct slice bytes) {
    struct body *body = body_new(NULL, BODY_SHARED, (int64_t)bytes.length);
    size_t room;
    while (bytes.length > 0) {
        char *at = body_room(body, &room);
        ASSERT(at != NULL);
        memcpy(at, bytes.base, room);
        body_grow(body, room);
        bytes.base += room;
        bytes.length -= room;
    }
    body_finish(body, BODY_COMPLETE);
    return body;
}

/* A passing body gives back the blocks that its reader has left behind. */
static void free_until(struct body *body, struct body_block *kept) {
    struct body_block *block = atomic_load_explicit(&body->first, memory_order_relaxed);
    while (block != kept && block != NULL && block != body->last) {
        struct body_block *next = next_block(block);
        body->allocated -= sizeof *block + block->capacity;
        free(block);
        block = next;
    }
    atomic_store_explicit(&body->first, block, memory_order_relaxed);
}

void body_stop_keeping(struct body *body, uint64_t consumed) {
    CHECK_OBJ(body, BODY_MAGIC);
    body->kind = BODY_PASSING;
    body->consumed = consumed;
}

void body_reader_open(struct body_reader *reader, struct body *body, struct task *task,
                      struct mailbox *mailbox) {
    memset(reader, 0, sizeof *reader);
    reader->body = body_reference(body);
    reader->task = task;
    reader->mailbox = mailbox;
    reader->end = UINT64_MAX;
}

void body_reader_choose(struct body_reader *reader, uint64_t first, uint64_t count) {
    reader->skip = first;
    reader->end = first + count;
}

void body_reader_close(struct body_reader *reader) {
    if (reader->body == NULL)
        return;
    waiter_cancel(&reader->waiter, &reader->body->lock);
    body_release(&reader->body);
}

/* Steps to the next block when this one is read out; false when there is none yet. */
static bool reach_block(struct body_reader *reader) {
    if (reader->block == NULL)
        reader->block = atomic_load_explicit(&reader->body->first, memory_order_acquire);
    if (reader->block == NULL)
        return false;
    if (reader->offset < reader->block->capacity)
        return true;
    struct body_block *next = next_block(reader->block);
    if (next == NULL)
        return false;
    reader->block = next;
    reader->offset = 0;
    return true;
}

/* Bytes that have arrived, are wanted, and have not been read. */
static uint64_t available(const struct body_reader *reader) {
    uint64_t length = body_length(reader->body);
    if (length > reader->end)
        length = reader->end;
    return length - reader->position;
}

static void skip(struct body_reader *reader) {
    uint64_t arrived = body_length(reader->body) - reader->position;
    if (reader->skip == 0)
        return;
    uint64_t count = reader->skip < arrived ? reader->skip : arrived;
    reader->skip -= count;
    body_reader_advance(reader, (size_t)count);
}

int body_reader_pieces(struct body_reader *reader, struct iovec *pieces, int most, size_t *bytes) {
    int count = 0;
    *bytes = 0;
    skip(reader);
    uint64_t left = available(reader);
    if (left == 0 || !reach_block(reader))
        return 0;
    struct body_block *block = reader->block;
    size_t offset = reader->offset;
    while (count < most && left > 0) {
        size_t piece = block->capacity - offset;
        if (piece > left)
            piece = (size_t)left;
        pieces[count++] = (struct iovec){block->data + offset, piece};
        *bytes += piece;
        left -= piece;
        if (left > 0) {
            block = next_block(block);
            offset = 0;
        }
    }
    return count;
}

void body_reader_advance(struct body_reader *reader, size_t bytes) {
    struct body *body = reader->body;
    reader->position += bytes;
    while (bytes > 0 && reach_block(reader)) {
        size_t piece = reader->block->capacity - reader->offset;
        if (piece > bytes)
            piece = bytes;
        reader->offset += piece;
        bytes -= piece;
    }
    if (body->kind != BODY_PASSING)
        return;
    body->consumed = reader->position;
    free_until(body, reader->block);
    if (body->writer != NULL)
        loop_defer(body->loop, body->writer);
}

bool body_reader_wait(struct body_reader *reader) {
    struct body *body = reader->body;
    if (reader->waiter != NULL)
        return true;
    pthread_mutex_lock(&body->lock);
    bool news = atomic_load_explicit(&body->length, memory_order_seq_cst) > reader->position ||
                atomic_load_explicit(&body->state, memory_order_seq_cst) != BODY_ARRIVING;
    if (!news)
        waiter_add(&body->waiting, &reader->waiter, reader->mailbox, reader->task);
    pthread_mutex_unlock(&body->lock);
    return !news;
}
