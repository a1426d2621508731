/*
 * Waiters: those who wait, in whatever thread, for something that a lock protects.
 *
 *     pthread_mutex_lock(&body->lock);
 *     if (nothing_new)
 *         waiter_add(&body->waiting, &reader->waiter, reader->mailbox, reader->task);
 *     pthread_mutex_unlock(&body->lock);
 *
 *     pthread_mutex_lock(&body->lock);                 by whoever has news
 *     waiters_wake(&body->waiting, own_loop);
 *     pthread_mutex_unlock(&body->lock);
 *
 *     waiter_cancel(&reader->waiter, &body->lock);     before the one who waits goes
 *
 * A waiter is woken once: its slot becomes NULL and its task is deferred on its own loop, by a
 * message when that is another thread's. It lives on while the message is under way, even if the
 * one who waited has gone.
 *
 * Threads: add and wake under the lock; the slot belongs to the one who waits.
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
