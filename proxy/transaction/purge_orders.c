#include "transaction/purge_orders.h"

#include "base/assert.h"
#include "cache/content.h"
#include "disk/disk.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct purge_orders {
    unsigned magic;
#define PURGE_ORDERS_MAGIC 0x9049e04du
    struct cache *cache;
    struct disk *disk; /* NULL: there is none */
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    bool started, stopping;
    struct purge_order *first, **last;
    unsigned count;
    _Atomic bool retired;
};

static void purge_order_free(struct purge_order *order) {
    free(order->url);
    free(order->regex);
    free(order);
}

/* ---- in the thread ------------------------------------------------------------------------ */

/* As retortctl cache delete does it. */
static void purge_one(const struct purge_orders *orders, struct purge_order *order) {
    struct cache_name name = cache_name_of(slice_make(order->url, order->url_length));
    disk_load_now(orders->disk, &name);
    uint64_t lapses = disk_lapses(orders->disk);
    uint64_t count = content_purge_name(orders->cache, &name, PURGE_REMOVE);
    uint64_t on_disk = disk_remove_surely(orders->disk, &name);
    order->count = count > on_disk ? count : on_disk; /* most objects are in both places */
    order->counted = true;
    order->kept = disk_commit(orders->disk) && disk_lapses(orders->disk) == lapses;
}

/* As retortctl cache purge does it: the disk first. */
static void purge_below(const struct purge_orders *orders, struct purge_order *order) {
    struct regexes regex;
    struct object_filter filter = {.prefix = slice_make(order->url, order->url_length)};
    if (order->regex != NULL) {
        regexes_compile(&regex, (char *[]){order->regex, NULL});
        filter.regex = &regex;
        filter.regex_text = order->regex;
    }
    order->kept = disk_purge(orders->disk, &filter, PURGE_REMOVE);
    order->counted = content_purge_soon(orders->cache, &filter, PURGE_REMOVE, &order->count);
    if (order->regex != NULL)
        regexes_release(&regex);
}

static struct purge_order *await_order(struct purge_orders *orders) {
    pthread_mutex_lock(&orders->lock);
    while (orders->first == NULL && !orders->stopping)
        pthread_cond_wait(&orders->news, &orders->lock);
    struct purge_order *order = orders->stopping ? NULL : orders->first;
    if (order != NULL) {
        orders->first = order->next;
        if (orders->first == NULL)
            orders->last = &orders->first;
        orders->count--;
    }
    pthread_mutex_unlock(&orders->lock);
    return order;
}

static void *run_orders(void *arg) {
    struct purge_orders *orders;
    struct purge_order *order;
    CAST_OBJ(orders, arg, PURGE_ORDERS_MAGIC);
    while ((order = await_order(orders)) != NULL) {
        if (order->kind == PURGE_ONE)
            purge_one(orders, order);
        else
            purge_below(orders, order);
        order->retired = atomic_load(&orders->retired);
        mailbox_post(order->mailbox, &order->message);
    }
    return NULL;
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

/* The thread inherits a mask that leaves all signals to the main thread. Called under the lock. */
static bool purge_orders_start(struct purge_orders *orders) {
    sigset_t all, before;
    if (orders->started || orders->stopping)
        return orders->started && !orders->stopping;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    orders->started = pthread_create(&orders->thread, NULL, run_orders, orders) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return orders->started;
}

struct purge_orders *purge_orders_new(struct cache *cache, struct disk *disk) {
    struct purge_orders *orders;
    ALLOC_OBJ(orders, PURGE_ORDERS_MAGIC);
    orders->cache = cache;
    orders->disk = disk;
    orders->last = &orders->first;
    pthread_mutex_init(&orders->lock, NULL);
    pthread_cond_init(&orders->news, NULL);
    return orders;
}

void purge_orders_retire(struct purge_orders *orders) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    atomic_store(&orders->retired, true);
}

struct purge_order *purge_orders_send(struct purge_orders *orders, enum purge_order_kind kind,
                                      struct slice url, struct slice regex, struct mailbox *mailbox,
                                      struct task *waker) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    struct purge_order *order = NULL;
    pthread_mutex_lock(&orders->lock);
    if (orders->count < PURGE_ORDERS_MAX && purge_orders_start(orders)) {
        order = xcalloc(1, sizeof *order);
        order->message.deliver = on_done;
        order->kind = kind;
        order->url = slice_dup(url);
        order->url_length = url.length;
        order->regex = regex.length > 0 ? slice_dup(regex) : NULL;
        order->mailbox = mailbox;
        order->waker = waker;
        *orders->last = order;
        orders->last = &order->next;
        orders->count++;
        pthread_cond_signal(&orders->news);
    }
    pthread_mutex_unlock(&orders->lock);
    return order;
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
    pthread_mutex_lock(&orders->lock);
    orders->stopping = true;
    pthread_cond_signal(&orders->news);
    pthread_mutex_unlock(&orders->lock);
    if (orders->started)
        pthread_join(orders->thread, NULL);
    orders->started = false;
}

/* The workers have ended, and with them everybody who waits. */
void purge_orders_free(struct purge_orders **ordersp) {
    struct purge_orders *orders = *ordersp;
    *ordersp = NULL;
    if (orders == NULL)
        return;
    purge_orders_stop(orders);
    while (orders->first != NULL) {
        struct purge_order *next = orders->first->next;
        purge_order_free(orders->first);
        orders->first = next;
    }
    pthread_cond_destroy(&orders->news);
    pthread_mutex_destroy(&orders->lock);
    FREE_OBJ(orders);
}
