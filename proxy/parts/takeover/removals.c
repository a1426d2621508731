#include "takeover/removals.h"

#include "base/assert.h"
#include "base/log.h"
#include "event/mailbox.h"
#include "takeover/invalidation_relay.h"

#include <stdlib.h>
#include <unistd.h>

struct removal {
    struct removal_notice base;
    struct message message;
    struct list_link link;
    struct mailbox *mailbox;
    struct task *waker; /* NULL: nobody waits any more */
    size_t length;
    char url[];
};

static struct slice removal_url(struct removal *removal) {
    return slice_make(removal->url, removal->length);
}

/* False: it is not known whether it is removed there. After the first failure nobody is told. */
static bool removals_say(struct removals *removals, struct slice url) {
    pthread_mutex_lock(&removals->telling);
    bool told = removals->fd >= 0 && invalidation_relay_tell(removals->fd, url);
    if (!told && removals->fd >= 0) {
        close(removals->fd);
        removals->fd = -1;
        log_warn("the process that has taken over does not hear what clients of this one remove "
                 "from the cache by POST, PUT or DELETE: retortctl cache purge removes it there");
    }
    pthread_mutex_unlock(&removals->telling);
    return told;
}

static struct removal *await_removal(struct removals *removals) {
    pthread_mutex_lock(&removals->queue.lock);
    struct list_link *link = thread_queue_await(&removals->queue);
    removals->count -= link != NULL;
    pthread_mutex_unlock(&removals->queue.lock);
    return link == NULL ? NULL : CONTAINER_OF(link, struct removal, link);
}

static void tell_removals(void *arg) {
    struct removals *removals;
    struct removal *removal;
    CAST_OBJ(removals, arg, REMOVALS_MAGIC);
    while ((removal = await_removal(removals)) != NULL) {
        removal->base.told = removals_say(removals, removal_url(removal));
        mailbox_post(removal->mailbox, &removal->message);
    }
}

/* ---- in the worker ------------------------------------------------------------------------ */

static void removal_on_done(struct message *message) {
    struct removal *removal = CONTAINER_OF(message, struct removal, message);
    removal->base.done = true;
    if (removal->waker == NULL)
        free(removal);
    else
        loop_defer(removal->mailbox->loop, removal->waker);
}

static void removal_leave(struct removal_notice *notice) {
    struct removal *removal = CONTAINER_OF(notice, struct removal, base);
    removal->waker = NULL;
    if (removal->base.done)
        free(removal);
}

static struct removal *removal_new(struct slice url) {
    struct removal *removal = xcalloc(1, sizeof *removal + url.length);
    removal->base.leave = removal_leave;
    removal->message.deliver = removal_on_done;
    removal->length = url.length;
    memcpy(removal->url, url.base, url.length);
    return removal;
}

/* Under the lock. */
static void note_removal(struct removals *removals, struct slice url) {
    if (removals->noted_count >= REMOVALS_MAX) {
        removals->noted_all = false;
        return;
    }
    list_prepend(&removals->noted, &removal_new(url)->link);
    removals->noted_count++;
}

/* Under the lock. NULL: too many wait, or there is no thread. */
static struct removal_notice *removals_send(struct removals *removals, struct slice url,
                                            struct mailbox *mailbox, struct task *waker) {
    struct removal *removal = removal_new(url);
    removal->mailbox = mailbox;
    removal->waker = waker;
    if (removals->count < REMOVALS_MAX && thread_queue_add(&removals->queue, &removal->link)) {
        removals->count++;
        return &removal->base;
    }
    free(removal);
    return NULL;
}

static struct removal_notice *removals_removed(struct removal_teller *teller, struct slice url,
                                               struct mailbox *mailbox, struct task *waker,
                                               bool *untold) {
    struct removals *removals = CONTAINER_OF(teller, struct removals, base);
    CHECK_OBJ(removals, REMOVALS_MAGIC);
    struct removal_notice *notice = NULL;
    if (atomic_load(&removals->successor) == SUCCESSOR_NONE)
        return NULL;
    pthread_mutex_lock(&removals->queue.lock);
    int successor = atomic_load(&removals->successor);
    if (successor == SUCCESSOR_READS)
        note_removal(removals, url);
    else if (successor == SUCCESSOR_SERVES)
        notice = removals_send(removals, url, mailbox, waker);
    pthread_mutex_unlock(&removals->queue.lock);
    *untold = successor == SUCCESSOR_SERVES && notice == NULL;
    return notice;
}

static bool removals_are_elsewhere(const struct removal_teller *teller) {
    const struct removals *removals = CONTAINER_OF(teller, struct removals, base);
    return atomic_load(&removals->successor) == SUCCESSOR_SERVES;
}

/* ---- the life ----------------------------------------------------------------------------- */

void removals_init(struct removals *removals) {
    INIT_OBJ(removals, REMOVALS_MAGIC);
    removals->base = (struct removal_teller){removals_removed, removals_are_elsewhere};
    removals->fd = -1;
    list_init(&removals->noted);
    thread_queue_init(&removals->queue, 1, tell_removals, removals, "rt-tell-removal");
    pthread_mutex_init(&removals->telling, NULL);
}

void removals_stop(struct removals *removals) {
    CHECK_OBJ(removals, REMOVALS_MAGIC);
    thread_queue_end(&removals->queue, THREADS_DROP);
    thread_queue_join(&removals->queue);
}

void removals_release(struct removals *removals) {
    struct list_link *link;
    removals_stop(removals);
    while ((link = thread_queue_pop(&removals->queue)) != NULL)
        free(CONTAINER_OF(link, struct removal, link));
    removals_forget(removals);
    pthread_mutex_destroy(&removals->telling);
    thread_queue_release(&removals->queue);
}

/* ---- of a takeover ------------------------------------------------------------------------- */

/* Under the lock. */
static struct removal *take_noted(struct removals *removals) {
    struct list_link *link = list_first(&removals->noted);
    if (link == NULL)
        return NULL;
    list_remove(link);
    removals->noted_count--;
    return CONTAINER_OF(link, struct removal, link);
}

static void removals_become(struct removals *removals, enum removals_successor successor) {
    pthread_mutex_lock(&removals->queue.lock);
    atomic_store(&removals->successor, successor);
    removals->noted_all = true;
    pthread_mutex_unlock(&removals->queue.lock);
}

void removals_note(struct removals *removals) {
    CHECK_OBJ(removals, REMOVALS_MAGIC);
    removals_become(removals, SUCCESSOR_READS);
}

static void set_successor_fd(struct removals *removals, int fd) {
    pthread_mutex_lock(&removals->telling);
    if (removals->fd >= 0)
        close(removals->fd);
    removals->fd = fd;
    pthread_mutex_unlock(&removals->telling);
}

/* The list is empty at the moment that the state changes, so none is forgotten. */
static struct removal *next_noted_or_serves(struct removals *removals, bool *all) {
    pthread_mutex_lock(&removals->queue.lock);
    struct removal *removal = take_noted(removals);
    *all = removals->noted_all;
    if (removal == NULL)
        atomic_store(&removals->successor, SUCCESSOR_SERVES);
    pthread_mutex_unlock(&removals->queue.lock);
    return removal;
}

bool removals_tell(struct removals *removals, int fd) {
    CHECK_OBJ(removals, REMOVALS_MAGIC);
    struct removal *removal;
    bool told = true, all;
    set_successor_fd(removals, fd);
    while ((removal = next_noted_or_serves(removals, &all)) != NULL) {
        told = told && removals_say(removals, removal_url(removal));
        free(removal);
    }
    return told && all;
}

void removals_forget(struct removals *removals) {
    CHECK_OBJ(removals, REMOVALS_MAGIC);
    struct removal *removal;
    removals_become(removals, SUCCESSOR_NONE);
    set_successor_fd(removals, -1);
    pthread_mutex_lock(&removals->queue.lock);
    while ((removal = take_noted(removals)) != NULL)
        free(removal);
    pthread_mutex_unlock(&removals->queue.lock);
}

void removals_pass_on(struct removals *removals, struct slice url) {
    CHECK_OBJ(removals, REMOVALS_MAGIC);
    pthread_mutex_lock(&removals->queue.lock);
    int successor = atomic_load(&removals->successor);
    if (successor == SUCCESSOR_READS)
        note_removal(removals, url);
    pthread_mutex_unlock(&removals->queue.lock);
    if (successor == SUCCESSOR_SERVES)
        removals_say(removals, url);
}
