#include "cache/body.h"

#include "base/assert.h"
#include "cache/memory.h"

/* Worth a copy: when an eighth of the memory would be saved. */
enum { COMPACT_PART = 8 };

/* What is needed until all has arrived. A passing body keeps it for the sake of its reader. */
struct body_writing {
    unsigned magic;
#define BODY_WRITING_MAGIC 0xb0d7b0d8u
    struct body_block *last; /* the one that is written to */
    size_t used;             /* of the last block */
    struct body_block *tail; /* the last one there is: rooms may stand ready behind `last` */
    size_t ready;            /* bytes of those */
    size_t promised;         /* memory of blocks that are still to come */
    struct net_context *net; /* NULL: nobody waits, and nothing passes */
    struct task *writer;
    uint64_t consumed;        /* BODY_PASSING: by the reader */
    struct list_link waiting; /* for more; under the body's lock */
};

static pthread_mutex_t locks[BODY_LOCKS] = {[0 ... BODY_LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t *lock_of(const struct body *body) {
    return &locks[(uintptr_t)body / 64 % BODY_LOCKS];
}

enum {
    BODY_HEAD = offsetof(struct body, first.data),
    BLOCK_HEAD = offsetof(struct body_block, data),
    BLOCK_MOST = MEMORY_LARGEST - BLOCK_HEAD, /* of data */
    FIRST_MOST = MEMORY_PAGE - BODY_HEAD,
};

/* The first block's share. A body is laid out so that it fills its memory: what is left over when
 * the rest stands in large blocks and a block of whole pages. */
static size_t first_capacity(int64_t expected) {
    if (expected < 0)
        return FIRST_MOST;
    size_t rest = (size_t)(expected % BLOCK_MOST);
    if (rest <= FIRST_MOST)
        return rest;
    size_t left = rest - ((rest + BLOCK_HEAD) / MEMORY_PAGE * MEMORY_PAGE - BLOCK_HEAD);
    return left <= FIRST_MOST / 2 ? left : 0;
}

static size_t size_of_body(const struct body *body) {
    return BODY_HEAD + (size_t)body->first.capacity;
}

static size_t size_of_block(const struct body_block *block) {
    return BLOCK_HEAD + (size_t)block->capacity;
}

/* What passes by does not count as the cache's. */
static void *get_memory(bool passing, size_t size) {
    return passing ? malloc(size) : memory_alloc(size);
}

static void free_memory(bool passing, void *at, size_t size) {
    if (passing)
        free(at);
    else
        memory_free(at, size);
}

static void free_block(struct body_block *block, struct net_context *net) {
    if (!block->passing) {
        memory_free(block, size_of_block(block));
        return;
    }
    struct body_passing_block *passing = CONTAINER_OF(block, struct body_passing_block, block);
    net_buffer_give(net, &passing->buffer);
    free(passing);
}

static char *data_of(struct body_block *block) {
    if (!block->passing)
        return block->data;
    struct body_passing_block *passing = CONTAINER_OF(block, struct body_passing_block, block);
    return passing->buffer->data + passing->offset;
}

/* What is announced counts from the start, so that others go before it has arrived. */
static void promise(struct body_writing *writing, size_t bytes) {
    if (bytes > writing->promised)
        memory_promise(bytes - writing->promised);
    else if (bytes < writing->promised)
        memory_take_back(writing->promised - bytes);
    writing->promised = bytes;
}

/* The blocks that will be added for the rest of what is expected. */
static size_t cost_of_rest(const struct body *body) {
    uint64_t rest = (uint64_t)body->expected - body->first.capacity;
    size_t pages = (size_t)(rest % BLOCK_MOST);
    return (size_t)(rest / BLOCK_MOST) * MEMORY_LARGEST +
           (pages == 0 ? 0 : memory_cost(BLOCK_HEAD + pages));
}

static const struct loop *loop_of(const struct body_writing *writing) {
    return writing->net == NULL ? NULL : writing->net->loop;
}

/* Without room for data when there is none: body_room will say so. */
static struct body *allocate(enum body_kind kind, size_t capacity) {
    bool passing = kind == BODY_PASSING;
    struct body *body = get_memory(passing, BODY_HEAD + capacity);
    if (body == NULL) {
        capacity = 0;
        body = get_memory(passing, BODY_HEAD);
        ASSERT(body != NULL);
    }
    memset(body, 0, BODY_HEAD);
    body->magic = BODY_MAGIC;
    body->first.capacity = (uint32_t)capacity & INT32_MAX;
    body->first.passing = passing;
    return body;
}

struct body *body_new(struct net_context *net, enum body_kind kind, int64_t expected) {
    expected = expected <= BODY_EXPECTED_MOST ? expected : -1;
    struct body *body = allocate(kind, kind == BODY_PASSING ? 0 : first_capacity(expected));
    atomic_init(&body->references, 1);
    body->kind = (uint8_t)kind;
    body->expected = expected;
    body->writing = xmalloc(sizeof *body->writing); /* malloc keeps some at hand, calloc does not */
    INIT_OBJ(body->writing, BODY_WRITING_MAGIC);
    body->writing->net = net;
    body->writing->last = body->writing->tail = &body->first;
    list_init(&body->writing->waiting);
    if (kind == BODY_SHARED && expected >= 0)
        promise(body->writing, cost_of_rest(body));
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

void body_prefetch_release(const struct body *body) {
    if (!body->first.passing)
        memory_prefetch_free(body, size_of_body(body));
}

void body_release(struct body **bodyp) {
    struct body *body = *bodyp;
    *bodyp = NULL;
    if (body == NULL)
        return;
    CHECK_OBJ(body, BODY_MAGIC);
    if (atomic_fetch_sub_explicit(&body->references, 1, memory_order_acq_rel) != 1)
        return;
    struct net_context *net = NULL;
    if (body->kind == BODY_BACKED) {
        body->backing->release(body->backing);
    } else if (body->kind == BODY_HELD) {
        body_held_free(&body->held);
    } else if (body->writing != NULL) {
        ASSERT(list_empty(&body->writing->waiting));
        net = body->writing->net;
        promise(body->writing, 0);
        FREE_OBJ(body->writing);
    }
    struct body_block *block = next_block(&body->first);
    while (block != NULL) {
        struct body_block *next = next_block(block);
        free_block(block, net);
        block = next;
    }
    body->magic = 0;
    free_memory(body->first.passing, body, size_of_body(body));
}

/* Bytes that have a place already, though they have not all arrived. */
static uint64_t placed(const struct body *body) {
    const struct body_writing *writing = body->writing;
    return atomic_load_explicit(&body->length, memory_order_relaxed) +
           (writing->last->capacity - writing->used) + writing->ready;
}

/* Blocks grow with a body whose length is not known, so that a small one wastes little and a large
 * one has few. */
static size_t block_capacity(const struct body *body) {
    uint64_t length = placed(body);
    size_t size = MEMORY_PAGE;
    if (body->expected >= 0) {
        uint64_t rest = (uint64_t)body->expected - length;
        return rest == 0 || rest % BLOCK_MOST != 0 ? (size_t)(rest % BLOCK_MOST) : BLOCK_MOST;
    }
    while (size < length && size < MEMORY_LARGEST)
        size *= 2;
    return size - BLOCK_HEAD;
}

/* At the end of the chain, for whoever reads. */
static void link_block(struct body_writing *writing, struct body_block *block, bool passing,
                       size_t capacity) {
    atomic_init(&block->next, NULL);
    block->capacity = (uint32_t)capacity & INT32_MAX;
    block->passing = passing;
    atomic_store_explicit(&writing->tail->next, block, memory_order_release);
    writing->tail = block;
    writing->ready += capacity;
}

static void link_buffer(struct body_writing *writing, struct net_buffer *buffer, size_t capacity) {
    struct body_passing_block *passing = xmalloc(sizeof *passing);
    passing->buffer = buffer;
    passing->offset = buffer->begin;
    link_block(writing, &passing->block, true, capacity);
}

/* A large buffer, where so much may come. */
static bool add_passing_block(struct body *body) {
    uint64_t length = placed(body);
    uint64_t rest = body->expected < 0 ? UINT64_MAX : (uint64_t)body->expected - length;
    bool small = rest <= NET_BUFFER_SIZE || (body->expected < 0 && length < NET_BUFFER_LARGE);
    struct net_context *net = body->writing->net;
    if (rest == 0)
        return false;
    struct net_buffer *buffer = small ? net_buffer_take(net) : net_buffer_take_large(net);
    if (buffer == NULL)
        return false;
    link_buffer(body->writing, buffer, rest < buffer->capacity ? (size_t)rest : buffer->capacity);
    return true;
}

static bool add_block(struct body *body) {
    if (body->kind == BODY_PASSING)
        return add_passing_block(body);
    size_t capacity = block_capacity(body);
    struct body_block *block = capacity == 0 ? NULL : memory_alloc(BLOCK_HEAD + capacity);
    if (block == NULL)
        return false;
    size_t cost = memory_cost(BLOCK_HEAD + capacity), promised = body->writing->promised;
    promise(body->writing, promised > cost ? promised - cost : 0);
    link_block(body->writing, block, false, capacity);
    return true;
}

/* On to the next block, when this one is full; false when there is none. */
static bool step(struct body_writing *writing) {
    struct body_block *next = next_block(writing->last);
    if (writing->used < writing->last->capacity)
        return true;
    if (next == NULL)
        return false;
    writing->last = next;
    writing->used = 0;
    writing->ready -= next->capacity;
    return true;
}

/* Bytes that may be written before the reader has to read some. */
static uint64_t window(const struct body *body) {
    if (body->kind != BODY_PASSING)
        return UINT64_MAX;
    uint64_t waiting =
        atomic_load_explicit(&body->length, memory_order_relaxed) - body->writing->consumed;
    return waiting < BODY_WINDOW ? BODY_WINDOW - waiting : 0;
}

int body_rooms(struct body *body, struct iovec *pieces, int most, bool *exhausted) {
    CHECK_OBJ(body, BODY_MAGIC);
    struct body_writing *writing = body->writing;
    uint64_t left = window(body);
    *exhausted = false;
    if (left == 0)
        return 0;
    if (!step(writing) && (!add_block(body) || !step(writing))) {
        *exhausted = true;
        return 0;
    }
    struct body_block *block = writing->last;
    size_t used = writing->used, piece;
    bool ahead = body->expected >= 0 || body->kind == BODY_PASSING;
    int count = 0;
    do {
        piece = block->capacity - used;
        pieces[count++] = (struct iovec){data_of(block) + used, piece};
        left -= piece < left ? piece : left;
        used = 0;
        if (count < most && left > 0 && ahead && next_block(block) == NULL)
            ahead = add_block(body);
    } while (count < most && left > 0 && (block = next_block(block)) != NULL);
    return count;
}

char *body_room(struct body *body, size_t *room) {
    struct iovec piece;
    bool exhausted;
    if (body_rooms(body, &piece, 1, &exhausted) == 0) {
        *room = exhausted;
        return NULL;
    }
    *room = piece.iov_len;
    return piece.iov_base;
}

/* What has arrived may be read from now on. The reader of a passing body is in this thread. */
static void publish(struct body *body, size_t count) {
    struct body_writing *writing = body->writing;
    uint64_t length = atomic_load_explicit(&body->length, memory_order_relaxed);
    atomic_store_explicit(&body->length, length + count, memory_order_seq_cst);
    if (body->kind == BODY_PASSING && list_empty(&writing->waiting))
        return;
    pthread_mutex_lock(lock_of(body));
    waiters_wake(&writing->waiting, loop_of(writing));
    pthread_mutex_unlock(lock_of(body));
}

void body_grow(struct body *body, size_t count) {
    struct body_writing *writing = body->writing;
    size_t left = count;
    while (left > 0) {
        bool stands = step(writing);
        ASSERT(stands);
        size_t piece = writing->last->capacity - writing->used;
        if (piece > left)
            piece = left;
        writing->used += piece;
        left -= piece;
    }
    publish(body, count);
}

void body_pass(struct body *body, struct net_buffer **bufferp) {
    struct net_buffer *buffer = *bufferp;
    struct body_writing *writing = body->writing;
    *bufferp = NULL;
    CHECK_OBJ(body, BODY_MAGIC);
    ASSERT(body->kind == BODY_PASSING && placed(body) == body_length(body));
    size_t count = net_buffer_bytes(buffer).length;
    link_buffer(writing, buffer, count);
    body_grow(body, count);
}

void body_finish(struct body *body, enum body_state state) {
    CHECK_OBJ(body, BODY_MAGIC);
    struct body_writing *writing = body->writing;
    writing->writer = NULL;
    promise(writing, 0);
    pthread_mutex_lock(lock_of(body));
    atomic_store_explicit(&body->state, (uint8_t)state, memory_order_seq_cst);
    waiters_wake(&writing->waiting, loop_of(writing));
    if (body->kind == BODY_SHARED)
        FREE_OBJ(body->writing);
    pthread_mutex_unlock(lock_of(body));
}

void body_set_writer(struct body *body, struct task *writer) {
    body->writing->writer = writer;
}

static size_t size_of_held(const struct body_held *held) {
    return sizeof *held + held->capacity;
}

size_t body_cost(const struct body *body) {
    size_t cost = memory_cost(size_of_body(body));
    if (body->kind == BODY_BACKED)
        return cost + body->backing->cost;
    if (body->kind == BODY_HELD)
        return cost + size_of_held(body->held);
    if (body->expected >= 0)
        return cost + cost_of_rest(body);
    for (struct body_block *block = next_block((struct body_block *)&body->first); block != NULL;
         block = next_block(block))
        cost += memory_cost(size_of_block(block));
    return cost;
}

/* The bytes of one that is complete, into another that expects as many. */
static struct body *copy(struct body *body) {
    struct body *compact = body_new(NULL, BODY_SHARED, (int64_t)body_length(body));
    struct body_reader reader;
    struct iovec piece;
    size_t bytes, room;
    body_reader_open(&reader, body, NULL, NULL);
    while (body_reader_pieces(&reader, &piece, 1, &bytes) > 0) {
        char *at = body_room(compact, &room);
        if (at == NULL)
            break;
        if (bytes > room)
            bytes = room;
        memcpy(at, piece.iov_base, bytes);
        body_grow(compact, bytes);
        body_reader_advance(&reader, bytes);
    }
    bool whole = body_reader_at_end(&reader);
    body_reader_close(&reader);
    body_finish(compact, whole ? BODY_COMPLETE : BODY_FAILED);
    if (!whole)
        body_release(&compact);
    return compact;
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

/* Complete from the start, and not in blocks of its own. */
static struct body *new_elsewhere(enum body_kind kind, uint64_t length) {
    struct body *body = allocate(kind, 0);
    atomic_init(&body->references, 1);
    body->kind = (uint8_t)kind;
    body->expected = (int64_t)length;
    atomic_init(&body->length, length);
    atomic_init(&body->state, BODY_COMPLETE);
    return body;
}

struct body *body_of_file(struct body_backing *backing, uint64_t length) {
    struct body *body = new_elsewhere(BODY_BACKED, length);
    body->backing = backing;
    return body;
}

/* malloc's memory: one that is freed before the next is asked for is the same, and in the
 * processor's caches; the cache's would go back to the system, page by page. */
struct body_held *body_held_new(size_t capacity) {
    struct body_held *held = malloc(sizeof *held + capacity);
    if (held == NULL)
        return NULL;
    *held = (struct body_held){.capacity = capacity};
    memory_promise(size_of_held(held));
    return held;
}

void body_held_free(struct body_held **heldp) {
    struct body_held *held = *heldp;
    *heldp = NULL;
    if (held == NULL)
        return;
    memory_take_back(size_of_held(held));
    free(held);
}

struct body *body_of_held(struct body_held **heldp, size_t begin, size_t length) {
    struct body *body = new_elsewhere(BODY_HELD, length);
    ASSERT(length <= (*heldp)->capacity && begin <= (*heldp)->capacity - length);
    body->held = *heldp;
    body->held->begin = begin;
    *heldp = NULL;
    return body;
}

void body_spoil(struct body *body) {
    CHECK_OBJ(body, BODY_MAGIC);
    ASSERT(body->kind == BODY_BACKED);
    atomic_store_explicit(&body->state, BODY_FAILED, memory_order_seq_cst);
}

static bool read_pieces(struct body *body, uint64_t position, char *bytes, size_t length) {
    struct body_reader reader;
    struct iovec piece;
    size_t got;
    body_reader_open(&reader, body, NULL, NULL);
    body_reader_choose(&reader, position, length);
    while (length > 0 && body_reader_pieces(&reader, &piece, 1, &got) > 0) {
        memcpy(bytes, piece.iov_base, got);
        body_reader_advance(&reader, got);
        bytes += got;
        length -= got;
    }
    body_reader_close(&reader);
    return length == 0;
}

bool body_copy(struct body *body, uint64_t position, char *bytes, size_t length) {
    CHECK_OBJ(body, BODY_MAGIC);
    if (body->kind == BODY_BACKED)
        return position + length <= body_length(body) &&
               body->backing->read(body->backing, position, bytes, length);
    return read_pieces(body, position, bytes, length);
}

struct body *body_compact(struct body *body) {
    size_t cost = body_cost(body);
    ASSERT(body_state(body) == BODY_COMPLETE);
    struct body *compact = NULL;
    if (body->kind == BODY_HELD ||
        (body->expected < 0 && cost - body_length(body) > cost / COMPACT_PART + sizeof *body))
        compact = copy(body);
    return compact != NULL ? compact : body_reference(body);
}

/* A passing body gives back the blocks that its reader has left behind, but for the first. */
static void free_until(struct body *body, struct body_block *kept) {
    struct body_block *block = next_block(&body->first);
    if (kept == &body->first)
        return;
    while (block != kept) {
        struct body_block *next = next_block(block);
        free_block(block, body->writing->net);
        block = next;
    }
    atomic_store_explicit(&body->first.next, block, memory_order_relaxed);
}

void body_stop_keeping(struct body *body, uint64_t consumed) {
    CHECK_OBJ(body, BODY_MAGIC);
    body->kind = BODY_PASSING;
    promise(body->writing, 0);
    body->writing->consumed = consumed;
}

void body_reader_open(struct body_reader *reader, struct body *body, struct task *task,
                      struct mailbox *mailbox) {
    memset(reader, 0, sizeof *reader);
    reader->body = body_reference(body);
    reader->block = &body->first;
    reader->task = task;
    reader->mailbox = mailbox;
    reader->end = UINT64_MAX;
}

static bool has_blocks(const struct body *body) {
    return body->kind < BODY_BACKED;
}

void body_reader_choose(struct body_reader *reader, uint64_t first, uint64_t count) {
    if (has_blocks(reader->body))
        reader->skip = first;
    else
        reader->position = first;
    reader->end = first + count;
}

void body_reader_close(struct body_reader *reader) {
    if (reader->body == NULL)
        return;
    if (reader->body->kind == BODY_BACKED)
        reader->body->backing->cancel(reader->body->backing, &reader->waiter);
    else
        waiter_cancel(&reader->waiter, lock_of(reader->body));
    body_release(&reader->body);
}

/* Steps to the next block when this one is read out; false when there is none yet. */
static bool reach_block(struct body_reader *reader) {
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

/* All of it at once, if it is in memory. */
static int held_piece(const struct body_reader *reader, struct iovec *piece, size_t *bytes,
                      uint64_t left) {
    struct body_held *held = reader->body->held;
    if (reader->body->kind != BODY_HELD)
        return 0;
    *bytes = (size_t)left;
    *piece = (struct iovec){held->bytes + held->begin + reader->position, (size_t)left};
    return 1;
}

int body_reader_pieces(struct body_reader *reader, struct iovec *pieces, int most, size_t *bytes) {
    int count = 0;
    *bytes = 0;
    skip(reader);
    uint64_t left = available(reader);
    if (left == 0)
        return 0;
    if (!has_blocks(reader->body))
        return held_piece(reader, pieces, bytes, left);
    if (!reach_block(reader))
        return 0;
    struct body_block *block = reader->block;
    size_t offset = reader->offset;
    while (count < most && left > 0) {
        size_t piece = block->capacity - offset;
        if (piece > left)
            piece = (size_t)left;
        pieces[count++] = (struct iovec){data_of(block) + offset, piece};
        *bytes += piece;
        left -= piece;
        if (left > 0) {
            block = next_block(block);
            offset = 0;
        }
    }
    return count;
}

char *body_reader_front(struct body_reader *reader, size_t length) {
    if (!reader->block->passing || reader->body->kind != BODY_PASSING || !reach_block(reader) ||
        reader->offset > 0 || !reader->block->passing)
        return NULL;
    struct body_passing_block *passing =
        CONTAINER_OF(reader->block, struct body_passing_block, block);
    return passing->offset < length ? NULL : passing->buffer->data + passing->offset - length;
}

void body_reader_advance(struct body_reader *reader, size_t bytes) {
    struct body *body = reader->body;
    reader->position += bytes;
    if (!has_blocks(body))
        return;
    while (bytes > 0 && reach_block(reader)) {
        size_t piece = reader->block->capacity - reader->offset;
        if (piece > bytes)
            piece = bytes;
        reader->offset += piece;
        bytes -= piece;
    }
    if (body->kind != BODY_PASSING)
        return;
    struct body_writing *writing = body->writing;
    writing->consumed = reader->position;
    free_until(body, reader->block);
    if (writing->writer != NULL)
        loop_defer(writing->net->loop, writing->writer);
}

size_t body_reader_file(struct body_reader *reader, int *fd, off_t *offset, bool *copy) {
    uint64_t left = available(reader);
    if (reader->body->kind != BODY_BACKED || left == 0)
        return 0;
    struct body_backing *backing = reader->body->backing;
    if (reader->position >= reader->ready_until)
        reader->ready_until = reader->position + backing->ready(backing, reader->position);
    uint64_t count = reader->ready_until - reader->position;
    *fd = backing->fd;
    *copy = backing->copy;
    *offset = (off_t)(backing->offset + reader->position);
    return (size_t)(count < left ? count : left);
}

bool body_reader_wait(struct body_reader *reader) {
    struct body *body = reader->body;
    if (reader->waiter != NULL)
        return true;
    if (body->kind == BODY_BACKED)
        return body->backing->wait(body->backing, body, reader->position, &reader->waiter,
                                   reader->mailbox, reader->task);
    pthread_mutex_lock(lock_of(body));
    bool news = atomic_load_explicit(&body->length, memory_order_seq_cst) > reader->position ||
                atomic_load_explicit(&body->state, memory_order_seq_cst) != BODY_ARRIVING;
    if (!news)
        waiter_add(&body->writing->waiting, &reader->waiter, reader->mailbox, reader->task);
    pthread_mutex_unlock(lock_of(body));
    return !news;
}
