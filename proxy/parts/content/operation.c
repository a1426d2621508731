#include "content/operation.h"

#include "base/assert.h"
#include "content/fetch.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct content_operation *operation_of(struct service_content *base) {
    struct content_operation *operation = CONTAINER_OF(base, struct content_operation, base);
    CHECK_OBJ(operation, CONTENT_OPERATION_MAGIC);
    return operation;
}

static void operation_lock(struct content_operation *operation) {
    pthread_mutex_lock(&operation->account->room->lock);
}

static void operation_unlock(struct content_operation *operation) {
    pthread_mutex_unlock(&operation->account->room->lock);
}

struct content_operation *content_operation_new(struct content_account *account,
                                                const struct service_content_order *order) {
    struct content_operation *operation;
    int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (descriptor < 0)
        return NULL;
    ALLOC_OBJ(operation, CONTENT_OPERATION_MAGIC);
    operation->base.magic = SERVICE_CONTENT_MAGIC;
    operation->base.calls = &content_operation_calls;
    operation->base.descriptor = descriptor;
    operation->account = account;
    operation->kind = order->kind;
    operation->pinned = order->pinned;
    operation->whole = order->whole;
    operation->variant = order->variant;
    operation->seconds = order->seconds;
    operation->length = order->length;
    arena_init(&operation->arena);
    list_init(&operation->turn);
    list_append(&account->operations, &operation->link);
    account->count++;
    atomic_fetch_add(&account->numbers->open, 1);
    return operation;
}

/* Drops what is kept of an object. */
static void drop_content(struct content_operation *operation) {
    if (operation->body != NULL) {
        if (body_state(operation->body) == BODY_ARRIVING)
            body_finish(operation->body, BODY_FAILED);
        body_release(&operation->body);
    }
    object_release(&operation->object);
}

/* Under the lock. */
static void let_all(struct content_operation *operation) {
    content_account_let(operation->account, operation->held);
    operation->held = 0;
}

/* Under the lock. */
static void operation_free(struct content_operation *operation) {
    struct content_account *account = operation->account;
    drop_content(operation);
    let_all(operation);
    list_remove(&operation->turn);
    list_remove(&operation->link);
    close(operation->base.descriptor);
    arena_release(&operation->arena);
    free(operation->part);
    FREE_OBJ(operation);
    account->count--;
    atomic_fetch_sub(&account->numbers->open, 1);
    content_account_left(account);
}

/* Makes the descriptor readable, or not readable. */
static void operation_signal(struct content_operation *operation) {
    uint64_t one = 1;
    ssize_t written = write(operation->base.descriptor, &one, sizeof one);
    (void)written; /* it is readable already */
}

static void operation_silence(struct content_operation *operation) {
    uint64_t count;
    ssize_t got = read(operation->base.descriptor, &count, sizeof count);
    (void)got; /* it was not readable */
}

/* Under the lock: whoever worked on it has done so. */
static void operation_give_back(struct content_operation *operation) {
    operation->stage = CONTENT_IDLE;
    operation->fetch = NULL;
    if (operation->closed)
        operation_free(operation);
    else
        operation_signal(operation);
}

/* Under the lock. */
static void operation_settle(struct content_operation *operation,
                             enum service_content_status status, const char *why) {
    if (status == SERVICE_CONTENT_FAILED)
        atomic_fetch_add(&operation->account->numbers->failed, 1);
    snprintf(operation->why, sizeof operation->why, "%s", why);
    operation->result.status = status;
    operation->result.why = operation->why;
    if (operation->result.url.length == 0)
        operation->result.url = operation->url;
    atomic_store_explicit(&operation->base.answer, &operation->result, memory_order_release);
}

void content_operation_end(struct content_operation *operation, enum service_content_status status,
                           const char *why) {
    struct content_executor *room = operation->account->room;
    pthread_mutex_lock(&room->lock);
    operation_settle(operation, status, why);
    operation_give_back(operation);
    pthread_mutex_unlock(&room->lock);
}

void content_operation_part(struct content_operation *operation) {
    struct content_executor *room = operation->account->room;
    pthread_mutex_lock(&room->lock);
    if (operation->base.answer == NULL)
        operation_settle(operation, SERVICE_CONTENT_DONE, "");
    operation_give_back(operation);
    pthread_mutex_unlock(&room->lock);
}

bool content_operation_hold(struct content_operation *operation, size_t bytes) {
    operation_lock(operation);
    bool good = content_account_hold(operation->account, bytes);
    if (good)
        operation->held += bytes;
    operation_unlock(operation);
    return good;
}

void content_operation_let(struct content_operation *operation) {
    operation_lock(operation);
    let_all(operation);
    operation_unlock(operation);
}

void content_operation_queue(struct content_operation *operation) {
    struct content_account *account = operation->account;
    if (!content_executor_wake(account->room)) {
        operation_settle(operation, SERVICE_CONTENT_FAILED, "this process is about to end");
        operation_signal(operation);
        return;
    }
    operation->stage = CONTENT_QUEUED;
    list_append(&account->waiting, &operation->turn);
    if (list_empty(&account->turn))
        list_append(&account->room->turns, &account->turn);
}

/* Under the lock: out of the queue. */
static void operation_leave_queue(struct content_operation *operation) {
    list_remove(&operation->turn);
    if (list_empty(&operation->account->waiting))
        list_remove(&operation->account->turn);
    operation->stage = CONTENT_IDLE;
}

void content_operation_close(struct content_operation *operation) {
    operation->closed = true;
    if (operation->stage == CONTENT_BUSY) {
        if (operation->fetch != NULL)
            content_fetch_cancel(operation->fetch);
        return;
    }
    if (operation->stage == CONTENT_QUEUED)
        operation_leave_queue(operation);
    operation_free(operation);
}

void content_operation_stop(struct content_operation *operation) {
    if (operation->stage == CONTENT_BUSY ||
        (operation->stage == CONTENT_IDLE && operation->kind != SERVICE_CONTENT_READ))
        return; /* a worker ends it, or its service has it */
    if (operation->stage == CONTENT_QUEUED)
        operation_leave_queue(operation);
    operation->broken = true;
    object_release(&operation->object);
    if (operation->base.answer == NULL)
        operation_settle(operation, SERVICE_CONTENT_FAILED, "this process is about to end");
    operation_signal(operation);
}

/* What services call. */

static void operation_close(struct service_content *base) {
    struct content_operation *operation = operation_of(base);
    struct content_executor *room = operation->account->room;
    pthread_mutex_lock(&room->lock);
    content_operation_close(operation);
    pthread_mutex_unlock(&room->lock);
}

static void refuse_body(struct content_operation *operation, const char *why) {
    operation_lock(operation);
    drop_content(operation);
    let_all(operation);
    atomic_fetch_add(&operation->account->numbers->refused, 1);
    operation_settle(operation, SERVICE_CONTENT_REFUSED, why);
    operation_signal(operation);
    operation_unlock(operation);
}

/* False: memory is exhausted. */
static bool body_take(struct body *body, struct slice bytes) {
    while (bytes.length > 0) {
        size_t room;
        char *at = body_room(body, &room);
        if (at == NULL)
            return false;
        size_t count = room < bytes.length ? room : bytes.length;
        memcpy(at, bytes.base, count);
        body_grow(body, count);
        bytes = slice_make(bytes.base + count, bytes.length - count);
    }
    return true;
}

static size_t operation_give(struct service_content *base, struct slice bytes) {
    struct content_operation *operation = operation_of(base);
    uint64_t most = operation->account->limits.object;
    if (operation->body == NULL || operation->base.answer != NULL ||
        operation->stage != CONTENT_IDLE)
        return 0;
    if (bytes.length > most || operation->given > most - bytes.length)
        refuse_body(operation, "the object is larger than service.content_object allows");
    else if (operation->length != SERVICE_LENGTH_UNKNOWN &&
             bytes.length > operation->length - operation->given)
        refuse_body(operation, "the object has more bytes than it was said to have");
    else if (!content_operation_hold(operation, bytes.length))
        refuse_body(operation, "the operations of this service hold more bytes than "
                               "service.content_memory allows");
    else if (!body_take(operation->body, bytes))
        refuse_body(operation, "there is not enough memory now: try again later");
    else {
        operation->given += bytes.length;
        return bytes.length;
    }
    return 0;
}

static void operation_done(struct service_content *base) {
    struct content_operation *operation = operation_of(base);
    if (operation->body == NULL || operation->base.answer != NULL ||
        operation->stage != CONTENT_IDLE)
        return;
    if (operation->length != SERVICE_LENGTH_UNKNOWN && operation->given != operation->length) {
        refuse_body(operation, "the object has fewer bytes than it was said to have");
        return;
    }
    body_finish(operation->body, BODY_COMPLETE);
    operation_lock(operation);
    content_operation_queue(operation);
    operation_unlock(operation);
}

/* Under the lock. */
static enum service_content_flow operation_take_part(struct content_operation *operation, char *out,
                                                     size_t capacity, size_t *got) {
    size_t there = operation->part_end - operation->part_begin;
    if (operation->stage != CONTENT_IDLE)
        return SERVICE_CONTENT_WAIT;
    if (there > 0) {
        *got = there < capacity ? there : capacity;
        memcpy(out, operation->part + operation->part_begin, *got);
        operation->part_begin += *got;
        atomic_fetch_add(&operation->account->numbers->read_bytes, *got);
        return SERVICE_CONTENT_BYTES;
    }
    if (operation->broken)
        return SERVICE_CONTENT_BROKEN;
    if (operation->position == operation->result.size)
        return SERVICE_CONTENT_END;
    operation_silence(operation);
    content_operation_queue(operation);
    return operation->stage == CONTENT_QUEUED ? SERVICE_CONTENT_WAIT : SERVICE_CONTENT_BROKEN;
}

static enum service_content_flow operation_take(struct service_content *base, char *out,
                                                size_t capacity, size_t *got) {
    struct content_operation *operation = operation_of(base);
    operation_lock(operation);
    const struct service_content_answer *answer = operation->base.answer;
    enum service_content_flow flow = SERVICE_CONTENT_WAIT;
    if (answer != NULL && (operation->kind != SERVICE_CONTENT_READ || operation->whole ||
                           answer->status != SERVICE_CONTENT_DONE))
        flow = SERVICE_CONTENT_BROKEN;
    else if (answer != NULL)
        flow = operation_take_part(operation, out, capacity, got);
    operation_unlock(operation);
    return flow;
}

const struct service_content_calls content_operation_calls = {
    .give = operation_give,
    .done = operation_done,
    .take = operation_take,
    .close = operation_close,
};
