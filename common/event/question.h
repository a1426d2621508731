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
#ifndef RETORT_EVENT_QUESTION_H
#define RETORT_EVENT_QUESTION_H

#include "event/mailbox.h"

#include <stddef.h>

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
