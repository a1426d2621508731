#include "transaction/purge_orders.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/threads.h"
#include "cache/stored.h"
#include "transaction/invalidation_relay.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum purge_successor {
    SUCCESSOR_NONE,
    SUCCESSOR_READS, /* the disks, and does not serve yet: removals are noted */
    SUCCESSOR_SERVES,
};

struct purge_orders {
    unsigned magic;
#define PURGE_ORDERS_MAGIC 0x9049e04du
    struct cache *cache;
    struct second_level *second_level; /* NULL: there is none */
    struct thread_queue queue;         /* its lock is for what follows, too */
    unsigned count, told_count;        /* orders of clients that wait, and of PURGE_ELSEWHERE */
    _Atomic int successor;             /* enum purge_successor; changed under the lock */
    struct list_link noted;
    unsigned noted_count;
    bool noted_all;          /* there was room for each */
    pthread_mutex_t telling; /* for fd; taken alone */
    int fd;                  /* where the successor hears; -1: nowhere */
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
    const struct content_store store = {.cache = orders->cache,
                                        .second_level = orders->second_level};
    order->kept = stored_delete(&store, &name, PURGE_REMOVE, &order->count) != STORED_NOT_KEPT;
    order->counted = true;
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
    order->kept =
        removal_of_all(orders->cache, orders->second_level, &filter, PURGE_REMOVE, &found);
    order->counted = found.counted;
    order->count = found.count;
    if (order->regex != NULL)
        regexes_release(&regex);
}

/* False: it is not known whether it is removed there. After the first failure nobody is told. */
static bool purge_orders_say(struct purge_orders *orders, struct slice url) {
    pthread_mutex_lock(&orders->telling);
    bool told = orders->fd >= 0 && invalidation_relay_tell(orders->fd, url);
    if (!told && orders->fd >= 0) {
        close(orders->fd);
        orders->fd = -1;
        log_warn("the process that has taken over does not hear what clients of this one remove "
                 "from the cache by POST, PUT or DELETE: retortctl cache purge removes it there");
    }
    pthread_mutex_unlock(&orders->telling);
    return told;
}

static struct purge_order *await_order(struct purge_orders *orders) {
    struct purge_order *order = NULL;
    pthread_mutex_lock(&orders->queue.lock);
    struct list_link *link = thread_queue_await(&orders->queue);
    if (link != NULL) {
        order = CONTAINER_OF(link, struct purge_order, link);
        (*(order->kind == PURGE_ELSEWHERE ? &orders->told_count : &orders->count))--;
    }
    pthread_mutex_unlock(&orders->queue.lock);
    return order;
}

static void run_orders(void *arg) {
    struct purge_orders *orders;
    struct purge_order *order;
    CAST_OBJ(orders, arg, PURGE_ORDERS_MAGIC);
    while ((order = await_order(orders)) != NULL) {
        if (order->kind == PURGE_ELSEWHERE)
            order->kept = purge_orders_say(orders, slice_make(order->url, order->url_length));
        else if (order->kind == PURGE_ONE)
            purge_one(orders, order);
        else
            purge_below(orders, order);
        order->retired = atomic_load(&orders->successor) == SUCCESSOR_SERVES;
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

struct purge_orders *purge_orders_new(struct cache *cache, struct second_level *second_level) {
    struct purge_orders *orders;
    ALLOC_OBJ(orders, PURGE_ORDERS_MAGIC);
    orders->cache = cache;
    orders->second_level = second_level;
    orders->fd = -1;
    list_init(&orders->noted);
    thread_queue_init(&orders->queue, 1, run_orders, orders, "rt-purge");
    pthread_mutex_init(&orders->telling, NULL);
    return orders;
}

static struct purge_order *purge_order_new(enum purge_order_kind kind, struct slice url,
                                           struct mailbox *mailbox, struct task *waker) {
    struct purge_order *order = xcalloc(1, sizeof *order);
    order->message.deliver = on_done;
    order->kind = kind;
    order->url = slice_dup(url);
    order->url_length = url.length;
    order->mailbox = mailbox;
    order->waker = waker;
    return order;
}

/* Under the lock. `count`: how many of its kind wait. NULL: too many do, or there is no thread. */
static struct purge_order *purge_orders_append(struct purge_orders *orders,
                                               struct purge_order *order, unsigned *count,
                                               unsigned most) {
    if (*count < most && thread_queue_add(&orders->queue, &order->link)) {
        ++*count;
        return order;
    }
    purge_order_free(order);
    return NULL;
}

struct purge_order *purge_orders_send(struct purge_orders *orders, enum purge_order_kind kind,
                                      struct slice url, struct slice regex, struct mailbox *mailbox,
                                      struct task *waker) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    struct purge_order *order = purge_order_new(kind, url, mailbox, waker);
    order->regex = regex.length > 0 ? slice_dup(regex) : NULL;
    pthread_mutex_lock(&orders->queue.lock);
    order = purge_orders_append(orders, order, &orders->count, PURGE_ORDERS_MAX);
    pthread_mutex_unlock(&orders->queue.lock);
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

/* ---- of a takeover ------------------------------------------------------------------------- */

/* Under the lock. */
static struct purge_order *take_noted(struct purge_orders *orders) {
    struct list_link *link = list_first(&orders->noted);
    if (link == NULL)
        return NULL;
    list_remove(link);
    orders->noted_count--;
    return CONTAINER_OF(link, struct purge_order, link);
}

static void purge_orders_become(struct purge_orders *orders, enum purge_successor successor) {
    pthread_mutex_lock(&orders->queue.lock);
    atomic_store(&orders->successor, successor);
    orders->noted_all = true;
    pthread_mutex_unlock(&orders->queue.lock);
}

void purge_orders_note(struct purge_orders *orders) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    purge_orders_become(orders, SUCCESSOR_READS);
}

static void set_successor_fd(struct purge_orders *orders, int fd) {
    pthread_mutex_lock(&orders->telling);
    if (orders->fd >= 0)
        close(orders->fd);
    orders->fd = fd;
    pthread_mutex_unlock(&orders->telling);
}

/* The list is empty at the moment that the state changes, so none is forgotten. */
static struct purge_order *next_noted_or_serves(struct purge_orders *orders, bool *all) {
    pthread_mutex_lock(&orders->queue.lock);
    struct purge_order *order = take_noted(orders);
    *all = orders->noted_all;
    if (order == NULL)
        atomic_store(&orders->successor, SUCCESSOR_SERVES);
    pthread_mutex_unlock(&orders->queue.lock);
    return order;
}

bool purge_orders_tell(struct purge_orders *orders, int fd) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    struct purge_order *order;
    bool told = true, all;
    set_successor_fd(orders, fd);
    while ((order = next_noted_or_serves(orders, &all)) != NULL) {
        told = told && purge_orders_say(orders, slice_make(order->url, order->url_length));
        purge_order_free(order);
    }
    return told && all;
}

void purge_orders_forget(struct purge_orders *orders) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    struct purge_order *order;
    purge_orders_become(orders, SUCCESSOR_NONE);
    set_successor_fd(orders, -1);
    pthread_mutex_lock(&orders->queue.lock);
    while ((order = take_noted(orders)) != NULL)
        purge_order_free(order);
    pthread_mutex_unlock(&orders->queue.lock);
}

/* Under the lock. */
static void note_removal(struct purge_orders *orders, struct slice url) {
    if (orders->noted_count >= PURGE_TOLD_MAX) {
        orders->noted_all = false;
        return;
    }
    list_prepend(&orders->noted, &purge_order_new(PURGE_ELSEWHERE, url, NULL, NULL)->link);
    orders->noted_count++;
}

struct purge_order *purge_orders_removed(struct purge_orders *orders, struct slice url,
                                         struct mailbox *mailbox, struct task *waker,
                                         bool *untold) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    struct purge_order *order = NULL;
    *untold = false;
    if (atomic_load(&orders->successor) == SUCCESSOR_NONE)
        return NULL;
    pthread_mutex_lock(&orders->queue.lock);
    int successor = atomic_load(&orders->successor);
    if (successor == SUCCESSOR_READS) {
        note_removal(orders, url);
    } else if (successor == SUCCESSOR_SERVES) {
        order = purge_order_new(PURGE_ELSEWHERE, url, mailbox, waker);
        order = purge_orders_append(orders, order, &orders->told_count, PURGE_TOLD_MAX);
        *untold = order == NULL;
    }
    pthread_mutex_unlock(&orders->queue.lock);
    return order;
}

void purge_orders_pass_on(struct purge_orders *orders, struct slice url) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    pthread_mutex_lock(&orders->queue.lock);
    int successor = atomic_load(&orders->successor);
    if (successor == SUCCESSOR_READS)
        note_removal(orders, url);
    pthread_mutex_unlock(&orders->queue.lock);
    if (successor == SUCCESSOR_SERVES)
        purge_orders_say(orders, url);
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
    purge_orders_forget(orders);
    pthread_mutex_destroy(&orders->telling);
    thread_queue_release(&orders->queue);
    FREE_OBJ(orders);
}
