/*
 * A question to the thread of another loop, whose answer the asking thread waits for.
 *
 *     static const struct question_class class = {sizeof(int), on_question, NULL};
 *
 *     int answer;
 *     if (question_ask(&worker->mailbox, &class, worker, &answer, 1000)) ...      false: too late
 *
 * Messages arrive in order. So an answer also says that all messages which the same thread posted
 * before have been delivered.
 *
 * Threads: any that has no loop, since it waits. The subject must live until the mailbox is
 * released: a question may be answered after the asking thread has stopped waiting.
 */
#ifndef RETORT_EVENT_QUESTION_H
#define RETORT_EVENT_QUESTION_H

#include "event/mailbox.h"

#include <stddef.h>

/* Made once, as a constant: what the question is. */
struct question_class {
    size_t answer_size;
    /* Fills the answer, whose bytes are 0, in the loop's thread. */
    void (*on_question)(void *subject, void *answer);
    /* Frees what an answer holds that nobody waits for any more; NULL: it holds nothing. */
    void (*release)(void *answer);
};

/* Waits for at most `patience` milliseconds. True: *answer is filled, and the caller's. */
bool question_ask(struct mailbox *mailbox, const struct question_class *class, void *subject,
                  void *answer, unsigned patience);

#endif
