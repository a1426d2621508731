#include "event/question.h"

#include "base/assert.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* Shared by both threads; the last one to leave frees it. */
struct question {
    struct message message;
    const struct question_class *class;
    void *subject;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool answered;
    _Atomic unsigned holders;
    bool taken; /* the answer belongs to the asking thread */
    max_align_t answer[];
};

static void question_leave(struct question *question) {
    if (atomic_fetch_sub(&question->holders, 1) != 1)
        return;
    if (!question->taken && question->class->release != NULL)
        question->class->release(question->answer);
    pthread_cond_destroy(&question->wake);
    pthread_mutex_destroy(&question->lock);
    free(question);
}

static void question_on_delivery(struct message *message) {
    struct question *question = CONTAINER_OF(message, struct question, message);
    question->class->on_question(question->subject, question->answer);
    pthread_mutex_lock(&question->lock);
    question->answered = true;
    pthread_cond_signal(&question->wake);
    pthread_mutex_unlock(&question->lock);
    question_leave(question);
}

static struct question *question_new(const struct question_class *class, void *subject) {
    struct question *question = xcalloc(1, sizeof *question + class->answer_size);
    pthread_condattr_t attributes;
    question->message.deliver = question_on_delivery;
    question->class = class;
    question->subject = subject;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&question->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&question->lock, NULL);
    atomic_init(&question->holders, 2);
    return question;
}

static struct timespec question_deadline(unsigned milliseconds) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += milliseconds / 1000;
    time.tv_nsec += (long)(milliseconds % 1000) * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

bool question_ask(struct mailbox *mailbox, const struct question_class *class, void *subject,
                  void *answer, unsigned patience) {
    struct question *question = question_new(class, subject);
    const struct timespec deadline = question_deadline(patience);
    mailbox_post(mailbox, &question->message);
    pthread_mutex_lock(&question->lock);
    while (!question->answered &&
           pthread_cond_timedwait(&question->wake, &question->lock, &deadline) == 0)
        continue;
    bool answered = question->answered;
    if (answered) {
        memcpy(answer, question->answer, class->answer_size);
        question->taken = true;
    }
    pthread_mutex_unlock(&question->lock);
    question_leave(question);
    return answered;
}
