/*
 * A mailbox: other threads use it to send messages to the thread of a loop. Threads exchange
 * messages and share no structures.
 *
 *     struct greeting { struct message message; int number; };
 *     static void on_greeting(struct message *message) {
 *         ... free(CONTAINER_OF(message, struct greeting, message));
 *     }
 *     greeting->message.deliver = on_greeting;
 *     mailbox_post(&worker->mailbox, &greeting->message);       from any thread
 *
 * deliver runs in the receiving thread, and owns the message from then on. Messages of one sender
 * are delivered in the order in which they were posted. Posting takes one atomic exchange, and one
 * write(2) when the box was empty. A mailbox must live until its senders have made their last post.
 * mailbox_release delivers the messages that are still inside.
 */
#ifndef RETORT_EVENT_MAILBOX_H
#define RETORT_EVENT_MAILBOX_H

#include "event/loop.h"

#include <stdatomic.h>

struct message {
    struct message *next;
    void (*deliver)(struct message *message);
};

struct mailbox {
    _Atomic(struct message *) newest;
    struct loop *loop;
    struct event event;
};

bool mailbox_init(struct mailbox *mailbox, struct loop *loop);
void mailbox_release(struct mailbox *mailbox);
void mailbox_post(struct mailbox *mailbox, struct message *message);

#endif
