#include "event/waiter.h"

#include "base/assert.h"

struct waiter {
    unsigned magic;
#define WAITER_MAGIC 0x3a17e400u
    struct list_link link; /* protected by the lock */
    bool linked;           /* protected by the lock */
    struct message message;
    struct mailbox *mailbox;
    struct task *task;
    struct waiter **slot; /* NULL: nobody waits any more; used by the waiting thread alone */
};

static void waiter_on_news(struct message *message) {
    struct waiter *waiter = CONTAINER_OF(message, struct waiter, message);
    CHECK_OBJ(waiter, WAITER_MAGIC);
    if (waiter->slot != NULL) {
        *waiter->slot = NULL;
        loop_defer(waiter->mailbox->loop, waiter->task);
    }
    FREE_OBJ(waiter);
}

void waiter_add(struct list_link *waiting, struct waiter **slot, struct mailbox *mailbox,
                struct task *task) {
    struct waiter *waiter;
    ASSERT(*slot == NULL);
    ALLOC_OBJ(waiter, WAITER_MAGIC);
    waiter->message.deliver = waiter_on_news;
    waiter->mailbox = mailbox;
    waiter->task = task;
    waiter->slot = slot;
    waiter->linked = true;
    list_append(waiting, &waiter->link);
    *slot = waiter;
}

void waiters_wake(struct list_link *waiting, const struct loop *loop) {
    struct list_link *link;
    while ((link = list_first(waiting)) != NULL) {
        struct waiter *waiter = CONTAINER_OF(link, struct waiter, link);
        list_remove(link);
        waiter->linked = false;
        /* The message is posted under the lock, so that waiter_cancel sees either the link or the
         * message. */
        if (waiter->mailbox->loop == loop)
            waiter_on_news(&waiter->message);
        else
            mailbox_post(waiter->mailbox, &waiter->message);
    }
}

void waiter_cancel(struct waiter **slot, pthread_mutex_t *lock) {
    struct waiter *waiter = *slot;
    if (waiter == NULL)
        return;
    *slot = NULL;
    pthread_mutex_lock(lock);
    bool linked = waiter->linked;
    list_remove(&waiter->link);
    pthread_mutex_unlock(lock);
    if (linked)
        FREE_OBJ(waiter);
    else
        waiter->slot = NULL; /* the delivery of its message to this thread frees the waiter */
}
