#include "access/purge_orders.h"

#include "base/assert.h"
#include "base/threads.h"
#include "transaction/transaction.h"

#include <stdlib.h>

struct purge_orders {
    unsigned magic;
#define PURGE_ORDERS_MAGIC 0x9049e04du
    struct thread_queue queue; /* its lock is for the next one, too */
    unsigned count;            /* that wait */
    void *const *parts;        /* what the parts keep for the process */
};

static void purge_order_free(struct purge_order *order) {
    free(order->url);
    free(order->regex);
    free(order);
}

/* ---- in the thread ------------------------------------------------------------------------ */

/* Tells the other nodes of a fleet, and waits for none of them: they know it, or vouch for nothing, a lease later. */
static void tell_fleet(const struct purge_orders *orders, struct purge_order *order,
                       const struct object_filter *filter) {
    struct removal_spread spread = {.told = false};
    const struct removal_order removal = {
        .url = slice_make(filter == NULL ? order->url : NULL, order->url_length),
        .filter = filter,
        .action = PURGE_REMOVE,
        .in_passing = true,
    };
    PARTS_FOR_EACH (number, spread)
        part_table[number]->spread(orders->parts[number], &removal, 0, &spread);
    order->untold = spread.error[0] != '\0' && !spread.told;
}

/* As retortctl cache delete does it. */
static void purge_one(const struct purge_orders *orders, struct purge_order *order) {
    struct cache_name name = cache_name_of(slice_make(order->url, order->url_length));
    order->kept =
        stored_delete(&order->store, &name, PURGE_REMOVE, &order->count) != STORED_NOT_KEPT;
    order->counted = true;
    tell_fleet(orders, order, NULL);
}

/* As retortctl cache purge does it. */
static void purge_below(const struct purge_orders *orders, struct purge_order *order) {
    struct regexes regex;
    struct removal_found found;
    struct object_filter filter = {.prefix = slice_make(order->url, order->url_length)};
    if (order->regex != NULL) {
        regexes_compile(&regex, (char *[]){order->regex, NULL});
        filter.regex = &regex;
        filter.regex_text = order->regex;
    }
    order->kept = removal_of_all(order->store.cache, order->store.second_level, &filter,
                                 PURGE_REMOVE, &found);
    order->counted = found.counted;
    order->count = found.count;
    tell_fleet(orders, order, &filter);
    if (order->regex != NULL)
        regexes_release(&regex);
}

static struct purge_order *await_order(struct purge_orders *orders) {
    pthread_mutex_lock(&orders->queue.lock);
    struct list_link *link = thread_queue_await(&orders->queue);
    orders->count -= link != NULL;
    pthread_mutex_unlock(&orders->queue.lock);
    return link == NULL ? NULL : CONTAINER_OF(link, struct purge_order, link);
}

static void run_orders(void *arg) {
    struct purge_orders *orders;
    struct purge_order *order;
    CAST_OBJ(orders, arg, PURGE_ORDERS_MAGIC);
    while ((order = await_order(orders)) != NULL) {
        if (order->kind == PURGE_ONE)
            purge_one(orders, order);
        else
            purge_below(orders, order);
        mailbox_post(order->mailbox, &order->message);
    }
}

/* ---- in the worker ------------------------------------------------------------------------ */

static void on_done(struct message *message) {
    struct purge_order *order = CONTAINER_OF(message, struct purge_order, message);
    order->done = true;
    if (order->waker == NULL)
        purge_order_free(order);
    else
        loop_defer(order->mailbox->loop, order->waker);
}

struct purge_orders *purge_orders_new(void *const *parts) {
    struct purge_orders *orders;
    ALLOC_OBJ(orders, PURGE_ORDERS_MAGIC);
    orders->parts = parts;
    thread_queue_init(&orders->queue, 1, run_orders, orders, "rt-purge");
    return orders;
}

struct purge_order *purge_orders_send(struct purge_orders *orders, enum purge_order_kind kind,
                                      struct slice url, struct slice regex,
                                      struct transaction *transaction) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    struct purge_order *order = xcalloc(1, sizeof *order);
    order->message.deliver = on_done;
    order->kind = kind;
    order->url = slice_dup(url);
    order->url_length = url.length;
    order->regex = regex.length > 0 ? slice_dup(regex) : NULL;
    order->store.cache = transaction->host->cache;
    order->store.second_level = transaction->host->second_level;
    order->mailbox = transaction->host->mailbox;
    order->waker = &transaction->task;
    pthread_mutex_lock(&orders->queue.lock);
    bool sent = orders->count < PURGE_ORDERS_MAX && thread_queue_add(&orders->queue, &order->link);
    orders->count += sent;
    pthread_mutex_unlock(&orders->queue.lock);
    if (sent)
        return order;
    purge_order_free(order);
    return NULL;
}

void purge_order_leave(struct purge_order **orderp) {
    struct purge_order *order = *orderp;
    *orderp = NULL;
    if (order == NULL)
        return;
    order->waker = NULL;
    if (order->done)
        purge_order_free(order);
}

void purge_orders_stop(struct purge_orders *orders) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    thread_queue_end(&orders->queue, THREADS_DROP);
    thread_queue_join(&orders->queue);
}

/* The workers have ended, and with them everybody who waits. */
void purge_orders_free(struct purge_orders **ordersp) {
    struct purge_orders *orders = *ordersp;
    struct list_link *link;
    *ordersp = NULL;
    if (orders == NULL)
        return;
    purge_orders_stop(orders);
    while ((link = thread_queue_pop(&orders->queue)) != NULL)
        purge_order_free(CONTAINER_OF(link, struct purge_order, link));
    thread_queue_release(&orders->queue);
    FREE_OBJ(orders);
}
