#include "cache/body.h"

#include "base/assert.h"
#include "base/reserve.h"
#include "cache/memory.h"

/* A copy is worth its cost when it saves an eighth of the memory. */
enum { COMPACT_PART = 8 };

/* The data that a body needs until all bytes have arrived. A passing body keeps it for
 * its reader. */
struct body_writing {
    unsigned magic;
#define BODY_WRITING_MAGIC 0xb0d7b0d8u
    struct body_block *last; /* the one that is written to */
    size_t used;             /* of the last block */
    struct body_block *tail; /* the last block: unused blocks may follow `last` */
    size_t ready;            /* bytes of the blocks behind `last` */
    size_t promised;         /* memory of blocks that are still to come */
    struct net_context *net; /* NULL: nobody waits, and nothing passes */
    struct task *writer;
    uint64_t consumed;        /* BODY_PASSING: by the reader */
    struct list_link waiting; /* tasks that wait for more; under the body's lock */
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

/* The capacity of the first block. A body is laid out so that it fills its memory: the first block
 * takes the bytes that do not fit in large blocks and one block of whole pages. */
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

/* Memory of a passing body does not count as memory of the cache. */
static void *get_memory(bool passing, size_t size) {
    return passing ? malloc(size) : memory_alloc_hard(size);
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

/* Announced bytes count from the start, so that other objects are evicted before the
 * bytes arrive. */
static void promise(struct body_writing *writing, size_t bytes) {
    if (bytes > writing->promised)
        memory_promise(bytes - writing->promised);
    else if (bytes < writing->promised)
        memory_take_back(writing->promised - bytes);
    writing->promised = bytes;
}

/* The memory of the blocks that will be added for the rest of the expected bytes. */
static size_t cost_of_rest(const struct body *body) {
    uint64_t rest = (uint64_t)body->expected - body->first.capacity;
    size_t pages = (size_t)(rest % BLOCK_MOST);
    return (size_t)(rest / BLOCK_MOST) * MEMORY_LARGEST +
           (pages == 0 ? 0 : memory_cost(BLOCK_HEAD + pages));
}

static const struct loop *loop_of(const struct body_writing *writing) {
    return writing->net == NULL ? NULL : writing->net->loop;
}

/* Where memory is exhausted, the new body has no room for data: body_room will report that. */
static struct body *allocate(enum body_kind kind, size_t capacity) {
    bool passing = kind == BODY_PASSING;
    struct body *body = get_memory(passing, BODY_HEAD + capacity);
    if (body == NULL) {
        capacity = 0;
        body = passing ? xmalloc(BODY_HEAD) : memory_need(BODY_HEAD);
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
    struct body_block *block = body_next_block(&body->first);
    while (block != NULL) {
        struct body_block *next = body_next_block(block);
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

/* Adds a block to the end of the chain, where readers find it. */
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

/* Adds a large buffer if so many bytes may come, otherwise a small one. */
static bool add_passing_block(struct body *body) {
    uint64_t length = placed(body);
    uint64_t rest = body->expected < 0 ? UINT64_MAX : (uint64_t)body->expected - length;
    bool small = rest <= NET_BUFFER_SIZE || (body->expected < 0 && length < NET_BUFFER_LARGE) ||
                 body->writing->net->pressure != NET_EASY;
    struct net_context *net = body->writing->net;
    if (rest == 0)
        return false;
    struct net_buffer *buffer = small ? net_buffer_try(net) : net_buffer_take_large(net);
    if (buffer == NULL)
        return false;
    link_buffer(body->writing, buffer, rest < buffer->capacity ? (size_t)rest : buffer->capacity);
    return true;
}

static bool body_add_block(struct body *body) {
    if (body->kind == BODY_PASSING)
        return add_passing_block(body);
    size_t capacity = block_capacity(body);
    struct body_block *block = capacity == 0 ? NULL : memory_alloc_hard(BLOCK_HEAD + capacity);
    if (block == NULL)
        return false;
    size_t cost = memory_cost(BLOCK_HEAD + capacity), promised = body->writing->promised;
    promise(body->writing, promised > cost ? promised - cost : 0);
    link_block(body->writing, block, false, capacity);
    return true;
}

/* Steps to the next block when this one is full; false: there is no next block. */
static bool body_step(struct body_writing *writing) {
    struct body_block *next = body_next_block(writing->last);
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
    uint64_t most = body->writing->net->pressure == NET_EASY ? BODY_WINDOW : BODY_WINDOW_TIGHT;
    return waiting < most ? most - waiting : 0;
}

int body_rooms(struct body *body, struct iovec *pieces, int most, bool *exhausted) {
    CHECK_OBJ(body, BODY_MAGIC);
    struct body_writing *writing = body->writing;
    uint64_t left = window(body);
    *exhausted = false;
    if (left == 0)
        return 0;
    if (!body_step(writing) && (!body_add_block(body) || !body_step(writing))) {
        *exhausted = true;
        return 0;
    }
    struct body_block *block = writing->last;
    size_t used = writing->used, piece;
    bool ahead = body->expected >= 0 || body->kind == BODY_PASSING;
    int count = 0;
    do {
        piece = block->capacity - used;
        pieces[count++] = (struct iovec){body_block_data(block) + used, piece};
        left -= piece < left ? piece : left;
        used = 0;
        if (count < most && left > 0 && ahead && body_next_block(block) == NULL)
            ahead = body_add_block(body);
    } while (count < most && left > 0 && (block = body_next_block(block)) != NULL);
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

/* Makes the bytes that have arrived visible to readers. The reader of a passing body is in
 * this thread. */
static void body_publish(struct body *body, size_t count) {
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
        bool stands = body_step(writing);
        ASSERT(stands);
        size_t piece = writing->last->capacity - writing->used;
        if (piece > left)
            piece = left;
        writing->used += piece;
        left -= piece;
    }
    body_publish(body, count);
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
    for (struct body_block *block = body_next_block((struct body_block *)&body->first);
         block != NULL; block = body_next_block(block))
        cost += memory_cost(size_of_block(block));
    return cost;
}

/* Copies the bytes of a complete body into a new body that expects as many. NULL: not all bytes
 * could be copied. */
static struct body *body_copy_piece(struct body *body) {
    uint64_t length = body_length(body);
    struct body *compact = body_new(NULL, BODY_SHARED, (int64_t)length);
    bool whole = true;
    size_t room;
    while (whole && body_length(compact) < length) {
        char *at = body_room(compact, &room);
        whole = at != NULL && body_copy(body, body_length(compact), at, room);
        if (whole)
            body_grow(compact, room);
    }
    body_finish(compact, whole ? BODY_COMPLETE : BODY_FAILED);
    if (!whole)
        body_release(&compact);
    return compact;
}

struct body *body_of_bytes(struct slice bytes) {
    struct body *body;
    while ((body = body_of_many_bytes(bytes)) == NULL)
        reserve_spend(bytes.length);
    return body;
}

struct body *body_of_many_bytes(struct slice bytes) {
    struct body *body = body_new(NULL, BODY_SHARED, (int64_t)bytes.length);
    size_t room;
    while (bytes.length > 0) {
        char *at = body_room(body, &room);
        if (at == NULL) {
            body_finish(body, BODY_FAILED);
            body_release(&body);
            return NULL;
        }
        memcpy(at, bytes.base, room);
        body_grow(body, room);
        bytes.base += room;
        bytes.length -= room;
    }
    body_finish(body, BODY_COMPLETE);
    return body;
}

/* A body that is complete from the start and has no blocks of its own. */
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

/* The memory comes from malloc. When one held body is freed before the next is made, both get the
 * same memory, which is still in the processor's caches. Memory of the cache would go back to the
 * system, page by page. */
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

static void copy_blocks(struct body *body, uint64_t position, char *bytes, size_t length) {
    struct body_block *block = &body->first;
    while (position >= block->capacity) {
        position -= block->capacity;
        block = body_next_block(block);
    }
    for (; length > 0; block = body_next_block(block), position = 0) {
        size_t piece = block->capacity - (size_t)position;
        if (piece > length)
            piece = length;
        memcpy(bytes, body_block_data(block) + position, piece);
        bytes += piece;
        length -= piece;
    }
}

bool body_copy(struct body *body, uint64_t position, char *bytes, size_t length) {
    CHECK_OBJ(body, BODY_MAGIC);
    if (position + length > body_length(body))
        return false;
    if (body->kind == BODY_BACKED)
        return body->backing->read(body->backing, position, bytes, length);
    if (body->kind == BODY_HELD)
        memcpy(bytes, body->held->bytes + body->held->begin + position, length);
    else if (length > 0)
        copy_blocks(body, position, bytes, length);
    return true;
}

struct body *body_compact(struct body *body) {
    size_t cost = body_cost(body);
    ASSERT(body_state(body) == BODY_COMPLETE);
    struct body *compact = NULL;
    if (body->kind == BODY_HELD ||
        (body->expected < 0 && cost - body_length(body) > cost / COMPACT_PART + sizeof *body))
        compact = body_copy_piece(body);
    return compact != NULL ? compact : body_reference(body);
}

void body_stop_keeping(struct body *body, uint64_t consumed) {
    CHECK_OBJ(body, BODY_MAGIC);
    body->kind = BODY_PASSING;
    promise(body->writing, 0);
    body->writing->consumed = consumed;
}

/* Frees all blocks before `kept`, except the first block of the body. */
static void free_until(struct body *body, struct body_block *kept) {
    struct body_block *block = body_next_block(&body->first);
    if (kept == &body->first)
        return;
    while (block != kept) {
        struct body_block *next = body_next_block(block);
        free_block(block, body->writing->net);
        block = next;
    }
    atomic_store_explicit(&body->first.next, block, memory_order_relaxed);
}

void body_forget_until(struct body *body, struct body_block *block, uint64_t position) {
    struct body_writing *writing = body->writing;
    writing->consumed = position;
    free_until(body, block);
    if (writing->writer != NULL)
        loop_defer(writing->net->loop, writing->writer);
}

bool body_wait(struct body *body, uint64_t position, struct waiter **slot, struct mailbox *mailbox,
               struct task *task) {
    if (body->kind == BODY_BACKED)
        return body->backing->wait(body->backing, body, position, slot, mailbox, task);
    pthread_mutex_lock(lock_of(body));
    bool news = atomic_load_explicit(&body->length, memory_order_seq_cst) > position ||
                atomic_load_explicit(&body->state, memory_order_seq_cst) != BODY_ARRIVING;
    if (!news)
        waiter_add(&body->writing->waiting, slot, mailbox, task);
    pthread_mutex_unlock(lock_of(body));
    return !news;
}

void body_stop_waiting(struct body *body, struct waiter **slot) {
    if (body->kind == BODY_BACKED)
        body->backing->cancel(body->backing, slot);
    else
        waiter_cancel(slot, lock_of(body));
}
