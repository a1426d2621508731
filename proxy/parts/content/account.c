#include "content/account.h"

#include "base/assert.h"
#include "base/log.h"
#include "cache/stored.h"
#include "content/fetch.h"

#include <stdlib.h>

struct content_account *content_account_open(struct content_executor *room, const char *name,
                                             const struct content_limits *limits,
                                             struct content_numbers *numbers) {
    struct content_account *account;
    ALLOC_OBJ(account, CONTENT_ACCOUNT_MAGIC);
    account->room = room;
    account->name = xstrdup(name);
    account->limits = *limits;
    account->numbers = content_numbers_reference(numbers);
    list_init(&account->turn);
    list_init(&account->operations);
    list_init(&account->waiting);
    pthread_mutex_lock(&room->lock);
    list_append(&room->accounts, &account->link);
    pthread_mutex_unlock(&room->lock);
    return account;
}

void content_account_left(struct content_account *account) {
    if (!account->closed || account->count > 0)
        return;
    list_remove(&account->link);
    list_remove(&account->turn);
    content_numbers_release(&account->numbers);
    free(account->name);
    FREE_OBJ(account);
}

void content_account_close(struct content_account **accountp) {
    struct content_account *account = *accountp;
    *accountp = NULL;
    if (account == NULL)
        return;
    CHECK_OBJ(account, CONTENT_ACCOUNT_MAGIC);
    struct content_executor *room = account->room;
    pthread_mutex_lock(&room->lock);
    if (account->count > 0)
        log_warn("service %s: it has stopped and left %u operations on content open; please report "
                 "this bug of the service",
                 account->name, account->count);
    LIST_FOR_EACH_SAFE (link, next, &account->operations) {
        struct content_operation *operation = CONTAINER_OF(link, struct content_operation, link);
        if (!operation->closed)
            content_operation_close(operation);
    }
    account->closed = true;
    content_account_left(account);
    pthread_mutex_unlock(&room->lock);
}

bool content_account_hold(struct content_account *account, size_t bytes) {
    if (bytes > account->limits.memory - account->held)
        return false;
    account->held += bytes;
    atomic_fetch_add(&account->numbers->held_bytes, bytes);
    return true;
}

void content_account_let(struct content_account *account, size_t bytes) {
    account->held -= bytes;
    atomic_fetch_sub(&account->numbers->held_bytes, bytes);
}

/* Why the order can't be carried out; NULL: it can. */
static const char *order_fault(const struct service_content_order *order) {
    if (order->url.length > CONTENT_URL_MOST)
        return "the URL is longer than 64 KB";
    if (order->head.length > CONTENT_HEAD_MOST)
        return "the head is longer than 64 KB";
    if (order->kind == SERVICE_CONTENT_EXPIRE && (order->seconds < 0 || order->seconds > INT32_MAX))
        return "the lifetime is not from 0 to 2147483647 seconds";
    if (order->kind == SERVICE_CONTENT_INJECT &&
        (order->seconds < SERVICE_CONTENT_BY_HEAD || order->seconds > INT32_MAX))
        return "the lifetime is not from 0 to 2147483647 seconds, and not "
               "SERVICE_CONTENT_BY_HEAD";
    return NULL;
}

static bool is_change(enum service_content_kind kind) {
    return kind != SERVICE_CONTENT_QUERY && kind != SERVICE_CONTENT_READ;
}

static void account_refuse(struct content_operation *operation, const char *why) {
    atomic_fetch_add(&operation->account->numbers->refused, 1);
    content_operation_end(operation, SERVICE_CONTENT_REFUSED, why);
}

static void begin_fetch(struct content_operation *operation,
                        const struct service_content_order *order) {
    const struct requester *requester = NULL;
    struct content_executor *room = operation->account->room;
    if (order->exchange != NULL) {
        requester = order->exchange->requester;
        if (requester == NULL) {
            account_refuse(operation,
                           "only a service that runs in a worker can fetch for its client");
            return;
        }
    }
    pthread_mutex_lock(&room->lock);
    const char *why =
        content_fetch_begin(operation, requester, order->kind == SERVICE_CONTENT_VALIDATE);
    pthread_mutex_unlock(&room->lock);
    if (why != NULL)
        account_refuse(operation, why);
}

static void begin_inject(struct content_operation *operation,
                         const struct service_content_order *order) {
    bool known = order->length != SERVICE_LENGTH_UNKNOWN;
    if (known && order->length > operation->account->limits.object) {
        account_refuse(operation, "the object is larger than service.content_object allows");
        return;
    }
    /* Memory that is only announced is not reserved: other objects would make way for nothing. */
    operation->body = body_new(NULL, BODY_SHARED, order->whole ? (int64_t)order->length : -1);
    if (!order->whole)
        return;
    if (operation->base.calls->give(&operation->base, order->body) == order->body.length)
        operation->base.calls->done(&operation->base);
}

static void operation_begin(struct content_operation *operation,
                            const struct service_content_order *order) {
    struct content_executor *room = operation->account->room;
    const char *fault = order_fault(order);
    if (fault == NULL) {
        operation->url = content_url(order->url, &operation->arena);
        operation->head_text = arena_slice(&operation->arena, order->head);
        if (operation->url.base == NULL)
            fault = "this is not a URL that can be stored: write http://HOST/PATH";
    }
    if (fault != NULL)
        account_refuse(operation, fault);
    else if (order->kind == SERVICE_CONTENT_FETCH || order->kind == SERVICE_CONTENT_VALIDATE)
        begin_fetch(operation, order);
    else if (order->kind == SERVICE_CONTENT_INJECT)
        begin_inject(operation, order);
    else {
        pthread_mutex_lock(&room->lock);
        content_operation_queue(operation);
        pthread_mutex_unlock(&room->lock);
    }
}

struct service_content *content_account_start(struct content_account *account,
                                              const struct service_content_order *order) {
    struct content_operation *operation = NULL;
    CHECK_OBJ(account, CONTENT_ACCOUNT_MAGIC);
    struct content_executor *room = account->room;
    pthread_mutex_lock(&room->lock);
    bool ending = room->ending && is_change(order->kind);
    if (account->count < account->limits.operations && !account->closed)
        operation = content_operation_new(account, order);
    pthread_mutex_unlock(&room->lock);
    if (operation == NULL) {
        atomic_fetch_add(&account->numbers->refused, 1);
        return NULL;
    }
    atomic_fetch_add(&account->numbers->started, 1);
    if (ending)
        account_refuse(operation, "this process is about to end");
    else
        operation_begin(operation, order);
    return &operation->base;
}
