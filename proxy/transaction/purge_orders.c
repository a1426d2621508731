#include "transaction/purge_orders.h"

#include "base/assert.h"
#include "base/log.h"
#include "content/stored.h"
#include "disk/disk.h"
#include "transaction/told_removals.h"

#include <pthread.h>
#include <signal.h>
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
    struct disk *disk; /* NULL: there is none */
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    bool started, stopping;
    struct purge_order *first, **last;
    unsigned count, told_count; /* orders of clients that wait, and of PURGE_ELSEWHERE */
    _Atomic int successor;      /* enum purge_successor; changed under the lock */
    struct purge_order *noted;
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
    const struct content_store store = {.cache = orders->cache, .disk = orders->disk};
    order->kept = stored_delete(&store, &name, PURGE_REMOVE, &order->count) != STORED_NOT_KEPT;
    order->counted = true;
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

/* False: it is not known whether it is removed there. After the first failure nobody is told. */
static bool purge_orders_say(struct purge_orders *orders, struct slice url) {
    pthread_mutex_lock(&orders->telling);
    bool told = orders->fd >= 0 && told_removals_tell(orders->fd, url);
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
    pthread_mutex_lock(&orders->lock);
    while (orders->first == NULL && !orders->stopping)
        pthread_cond_wait(&orders->news, &orders->lock);
    struct purge_order *order = orders->stopping ? NULL : orders->first;
    if (order != NULL) {
        orders->first = order->next;
        if (orders->first == NULL)
            orders->last = &orders->first;
        if (order->kind == PURGE_ELSEWHERE)
            orders->told_count--;
        else
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
        if (order->kind == PURGE_ELSEWHERE)
            order->kept = purge_orders_say(orders, slice_make(order->url, order->url_length));
        else if (order->kind == PURGE_ONE)
            purge_one(orders, order);
        else
            purge_below(orders, order);
        order->retired = atomic_load(&orders->successor) == SUCCESSOR_SERVES;
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
    orders->fd = -1;
    pthread_mutex_init(&orders->lock, NULL);
    pthread_mutex_init(&orders->telling, NULL);
    pthread_cond_init(&orders->news, NULL);
    return orders;
}

static struct purge_order *purge_order_new(enum purge_order_kind kind, struct slice url) {
    struct purge_order *order = xcalloc(1, sizeof *order);
    order->message.deliver = on_done;
    order->kind = kind;
    order->url = slice_dup(url);
    order->url_length = url.length;
    return order;
}

/* Under the lock. */
static void purge_orders_append(struct purge_orders *orders, struct purge_order *order,
                                struct mailbox *mailbox, struct task *waker) {
    order->mailbox = mailbox;
    order->waker = waker;
    *orders->last = order;
    orders->last = &order->next;
    pthread_cond_signal(&orders->news);
}

struct purge_order *purge_orders_send(struct purge_orders *orders, enum purge_order_kind kind,
                                      struct slice url, struct slice regex, struct mailbox *mailbox,
                                      struct task *waker) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    struct purge_order *order = NULL;
    pthread_mutex_lock(&orders->lock);
    if (orders->count < PURGE_ORDERS_MAX && purge_orders_start(orders)) {
        order = purge_order_new(kind, url);
        order->regex = regex.length > 0 ? slice_dup(regex) : NULL;
        purge_orders_append(orders, order, mailbox, waker);
        orders->count++;
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

/* ---- of a takeover ------------------------------------------------------------------------- */

/* Under the lock. */
static struct purge_order *take_noted(struct purge_orders *orders) {
    struct purge_order *order = orders->noted;
    if (order != NULL) {
        orders->noted = order->next;
        orders->noted_count--;
    }
    return order;
}

static void purge_orders_become(struct purge_orders *orders, enum purge_successor successor) {
    pthread_mutex_lock(&orders->lock);
    atomic_store(&orders->successor, successor);
    orders->noted_all = true;
    pthread_mutex_unlock(&orders->lock);
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
    pthread_mutex_lock(&orders->lock);
    struct purge_order *order = take_noted(orders);
    *all = orders->noted_all;
    if (order == NULL)
        atomic_store(&orders->successor, SUCCESSOR_SERVES);
    pthread_mutex_unlock(&orders->lock);
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
    pthread_mutex_lock(&orders->lock);
    while ((order = take_noted(orders)) != NULL)
        purge_order_free(order);
    pthread_mutex_unlock(&orders->lock);
}

/* Under the lock. */
static void note_removal(struct purge_orders *orders, struct slice url) {
    if (orders->noted_count >= PURGE_TOLD_MAX) {
        orders->noted_all = false;
        return;
    }
    struct purge_order *order = purge_order_new(PURGE_ELSEWHERE, url);
    order->next = orders->noted;
    orders->noted = order;
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
    pthread_mutex_lock(&orders->lock);
    int successor = atomic_load(&orders->successor);
    if (successor == SUCCESSOR_READS) {
        note_removal(orders, url);
    } else if (successor == SUCCESSOR_SERVES) {
        *untold = orders->told_count >= PURGE_TOLD_MAX || !purge_orders_start(orders);
        if (!*untold) {
            order = purge_order_new(PURGE_ELSEWHERE, url);
            purge_orders_append(orders, order, mailbox, waker);
            orders->told_count++;
        }
    }
    pthread_mutex_unlock(&orders->lock);
    return order;
}

void purge_orders_pass_on(struct purge_orders *orders, struct slice url) {
    CHECK_OBJ(orders, PURGE_ORDERS_MAGIC);
    pthread_mutex_lock(&orders->lock);
    int successor = atomic_load(&orders->successor);
    if (successor == SUCCESSOR_READS)
        note_removal(orders, url);
    pthread_mutex_unlock(&orders->lock);
    if (successor == SUCCESSOR_SERVES)
        purge_orders_say(orders, url);
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
    purge_orders_forget(orders);
    pthread_cond_destroy(&orders->news);
    pthread_mutex_destroy(&orders->telling);
    pthread_mutex_destroy(&orders->lock);
    FREE_OBJ(orders);
}
