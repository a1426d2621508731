#include "event/mailbox.h"

#include "base/assert.h"
#include "base/threads.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void deliver_all(struct mailbox *mailbox) {
    struct message *newest = atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
    struct message *oldest = NULL;
    while (newest != NULL) {
        struct message *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct message *message = oldest;
        oldest = message->next;
        message->deliver(message);
    }
}

static void mailbox_on_event(struct event *event, uint32_t events) {
    struct mailbox *mailbox = CONTAINER_OF(event, struct mailbox, event);
    uint64_t count;
    /* The read comes first: a post after it makes the descriptor ready again. */
    ssize_t got = read(event->fd, &count, sizeof count);
    (void)got;
    (void)events;
    deliver_all(mailbox);
}

bool mailbox_init(struct mailbox *mailbox, struct loop *loop) {
    atomic_init(&mailbox->newest, NULL);
    mailbox->loop = loop;
    event_init(&mailbox->event);
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0)
        return false;
    if (loop_add(loop, &mailbox->event, fd, EPOLLIN, mailbox_on_event))
        return true;
    close(fd);
    return false;
}

void mailbox_release(struct mailbox *mailbox) {
    int fd = mailbox->event.fd;
    deliver_all(mailbox);
    loop_remove(mailbox->loop, &mailbox->event);
    close(fd);
}

void mailbox_post(struct mailbox *mailbox, struct message *message) {
    struct message *newest = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
    do {
        message->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &newest, message,
                                                    memory_order_release, memory_order_relaxed));
    if (newest != NULL)
        return; /* the first message in the box has made the descriptor ready */
    uint64_t one = 1;
    ssize_t put = write(mailbox->event.fd, &one, sizeof one);
    (void)put; /* fails only on overflow, and then the descriptor is ready already */
}

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
    question->message.deliver = question_on_delivery;
    question->class = class;
    question->subject = subject;
    pthread_cond_init(&question->wake, NULL);
    pthread_mutex_init(&question->lock, NULL);
    atomic_init(&question->holders, 2);
    return question;
}

bool question_ask(struct mailbox *mailbox, const struct question_class *class, void *subject,
                  void *answer, unsigned patience) {
    struct question *question = question_new(class, subject);
    uint64_t deadline = threads_in(patience);
    mailbox_post(mailbox, &question->message);
    pthread_mutex_lock(&question->lock);
    while (!question->answered && threads_wait(&question->wake, &question->lock, deadline))
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
