/*
 * Waiters: tasks of any thread that wait for a change of something that a lock protects.
 *
 *     pthread_mutex_lock(&body->lock);
 *     if (nothing_new)
 *         waiter_add(&body->waiting, &reader->waiter, reader->mailbox, reader->task);
 *     pthread_mutex_unlock(&body->lock);
 *
 *     pthread_mutex_lock(&body->lock);                 after a change, in any thread
 *     waiters_wake(&body->waiting, own_loop);
 *     pthread_mutex_unlock(&body->lock);
 *
 *     waiter_cancel(&reader->waiter, &body->lock);     before the reader is freed
 *
 * A waiter is woken once: its slot becomes NULL and its task is deferred on its own loop. If that
 * is the loop of another thread, a message is sent there. The waiter lives until the message has
 * arrived, even if the reader has been freed.
 *
 * Threads: waiter_add and waiters_wake are called under the lock, waiter_cancel without it. Only
 * the reader's thread uses the slot.
 */
#ifndef RETORT_EVENT_WAITER_H
#define RETORT_EVENT_WAITER_H

#include "event/mailbox.h"

#include <pthread.h>

struct waiter;

void waiter_add(struct list_link *waiting, struct waiter **slot, struct mailbox *mailbox,
                struct task *task);
/* `loop` is the caller's own; NULL: it has none. */
void waiters_wake(struct list_link *waiting, const struct loop *loop);
void waiter_cancel(struct waiter **slot, pthread_mutex_t *lock);

#endif
