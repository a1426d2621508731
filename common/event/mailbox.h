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
#include <stddef.h>

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

/*
 * A question to the thread of another loop. The asking thread waits for the answer.
 *
 *     static const struct question_class class = {sizeof(int), on_question, NULL};
 *
 *     int answer;
 *     if (question_ask(&worker->mailbox, &class, worker, &answer, 1000)) ...      false: timed out
 *
 * Messages arrive in order. So when the answer comes, all messages that the same thread posted
 * before have been delivered too.
 *
 * Threads: any thread without a loop, because question_ask blocks. The subject must live until the
 * mailbox is released: a question may be answered after the asking thread has stopped waiting.
 */

/* Describes a kind of question. It is a constant. */
struct question_class {
    size_t answer_size;
    /* Fills in the answer, in the loop's thread. All bytes of the answer are 0 before. */
    void (*on_question)(void *subject, void *answer);
    /* Frees the contents of an answer that nobody waits for any more. NULL: nothing to free. */
    void (*release)(void *answer);
};

/* Waits for at most `patience` milliseconds. True: *answer is filled in and belongs to the caller.
 */
bool question_ask(struct mailbox *mailbox, const struct question_class *class, void *subject,
                  void *answer, unsigned patience);

#endif
